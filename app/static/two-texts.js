// Two tabs, or two devices, that each have a text of their own of one thing: one is chosen, the other stays at hand.
import { Asides } from "./asides.js";

/**
 * What a page does with its text: says it, puts another in its place (Ctrl+Z takes that out again), reads what the server
 * keeps (null where there is no telling), and keeps its own. What the server has may be a text that this page sent itself
 * (`isOwn`), and a text may hold more than is `shown` to read.
 * @typedef {{ text: () => string, put: (code: string) => void, focus: () => void,
 *   read: () => Promise<{ code: string, version: string } | null>, save: () => void,
 *   isUnsaved: () => boolean, mark: (unsaved: boolean) => void, say: (words: string) => void,
 *   isOwn?: (code: string) => boolean, shown?: (code: string) => string, hasUndo: boolean }} Page
 */

export class TwoTexts {
  /**
   * @param {HTMLElement} panel where the other text is shown
   * @param {HTMLInputElement} version of the text that is typed over
   * @param {string} key names what is set aside among what the browser keeps
   * @param {Page} page
   */
  constructor(panel, version, key, page) {
    this.panel = panel;
    this.version = version;
    this.page = page;
    this.asides = new Asides(key);
    /** @type {{ code: string, version: string } | null} what another tab saved, until one of the two is chosen */
    this.theirs = null;
    const on = (name, act) => panel.querySelector(`[data-${name}]`).addEventListener("click", () => act.call(this));
    on("keep", () => this.#choose(true));
    on("take", () => this.#choose(false));
    on("swap", this.#swap);
    on("forget", this.#forget);
    document.addEventListener("visibilitychange", () => this.#catchUp());
    addEventListener("focus", () => this.#catchUp());
    addEventListener("pageshow", (event) => event.persisted && this.#catchUp());
    addEventListener("pagehide", () => {
      if (page.isUnsaved() || this.theirs) this.asides.put(page.text()); // whether it is saved, nobody is left to hear
    });
    this.asides.drop(page.text());
    if (panel.hidden) this.#show(); // else the page came with another text, and differs
  }

  /** The server has `code` now, and calls it `version`. */
  kept(code, version) {
    this.version.value = version;
    // a save that comes late may be of a text that was set aside since: the server will not have that for long
    if (code === this.page.text()) this.asides.drop(code);
    this.#show();
  }

  /** The server has another text than was typed over. */
  async differ() {
    const found = await this.page.read();
    if (found && this.page.isOwn?.(found.code)) {
      this.version.value = found.version;
      this.page.mark(true);
      this.page.save();
      return;
    }
    this.theirs = found;
    this.page.say(this.theirs ? "Not saved" : "Not saved: another text was saved elsewhere");
    this.#show();
  }

  #show() {
    const text = this.theirs ? this.theirs.code : this.asides.newest;
    this.panel.hidden = text === undefined;
    if (text === undefined) return;
    const says = this.panel.querySelector("[data-other-says]");
    const noun = this.panel.dataset.noun; // what it is called that there are two of
    const words = this.theirs
      ? `Another ${noun} was saved in the meantime, in another tab or on another device. Yours is below and not saved. Choose one; the other stays at hand.`
      : `There is another ${noun} that was not kept.`;
    if (says.textContent !== words) says.textContent = words;
    this.panel.querySelector("pre").textContent = this.page.shown?.(text) ?? text;
    /** @type {HTMLElement} */ (this.panel.querySelector("[data-differ]")).hidden = !this.theirs;
    /** @type {HTMLElement} */ (this.panel.querySelector("[data-aside]")).hidden = Boolean(this.theirs);
  }

  /** Ask which of the two is meant. */
  ask() {
    /** @type {HTMLElement} */ (this.panel.querySelector("[data-keep]")).focus();
  }

  #choose(mine) {
    const found = this.theirs;
    this.theirs = null;
    this.version.value = found.version;
    this.asides.put(mine ? found.code : this.page.text());
    if (!mine) this.page.put(found.code);
    this.#saved();
  }

  #swap() {
    const found = this.asides.newest;
    this.asides.drop(found);
    this.asides.put(this.page.text());
    this.page.put(found);
    this.#saved();
  }

  #saved() {
    this.page.mark(true);
    this.page.save();
    this.#show();
    this.page.focus();
  }

  #forget() {
    this.asides.drop(this.asides.newest);
    this.#show();
    this.page.focus();
  }

  /** Back at this tab with nothing typed: what was saved elsewhere is what goes on. */
  async #catchUp() {
    const isBusy = () => document.visibilityState !== "visible" || this.page.isUnsaved() || this.theirs;
    if (isBusy()) return;
    const before = this.version.value;
    const found = await this.page.read();
    if (!found || isBusy() || found.version === before || this.version.value !== before) return;
    this.page.put(found.code);
    this.page.mark(false);
    this.version.value = found.version;
    this.page.say(`As it was saved elsewhere${this.page.hasUndo ? "; Ctrl+Z brings back what was here" : ""}`);
  }
}
