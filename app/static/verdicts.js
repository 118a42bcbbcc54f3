// What a submission came to: the server draws it, also while it is judged, and is asked anew with each chunk of events.
import { within } from "./dom.js";
import { setUpFilms } from "./film.js";

const IN_SIGHT_PX = 160; // of a verdict its heading and what follows at once

/** The results panel of a page. */
export class Verdicts {
  /**
   * @param {HTMLElement} results where they are shown
   * @param {HTMLElement} said what is said aloud
   * @param {(found: Element) => void} ended told of what is shown at the end
   */
  constructor(results, said, ended) {
    this.results = results;
    this.said = said;
    this.ended = ended;
    this.turn = 0;
    /** @type {EventSource | null} */
    this.source = null;
    results.addEventListener("submit", (event) => this.cancel(event));
    setUpFilms(results);
    const open = /** @type {HTMLElement | null} */ (results.querySelector("[data-result][data-ended=no]"));
    if (open) this.follow(open.dataset.result);
  }

  /** Nothing once another was handed in. @param {string} id @returns {Promise<Element | null>} */
  async show(id) {
    const mine = ++this.turn;
    const address = `/labs/submissions/${id}${this.results.dataset.query ?? ""}`;
    const reply = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (mine !== this.turn || !reply?.ok) return null;
    const holder = document.createElement("div");
    holder.innerHTML = await reply.text();
    const found = holder.querySelector("[data-result]");
    if (mine !== this.turn || !found) return null;
    const hadFocus = this.results.contains(document.activeElement);
    this.results.replaceChildren(found);
    setUpFilms(this.results);
    if (hadFocus) /** @type {HTMLElement | null} */ (found.querySelector("[data-cancel] button, h3"))?.focus();
    return found;
  }

  /** @param {string} id */
  follow(id) {
    this.source?.close();
    const mine = new EventSource(`/api/v1/labs/submissions/${id}/events`);
    this.source = mine;
    mine.addEventListener("chunk", () => this.show(id));
    mine.addEventListener("end", async () => {
      mine.close();
      const found = await this.show(id);
      if (!found) return;
      const outcome = found.querySelector("[data-outcome]");
      this.said.textContent = outcome.textContent.trim();
      const { top } = outcome.getBoundingClientRect();
      if (top < 0 || top > innerHeight - IN_SIGHT_PX) outcome.scrollIntoView({ block: "center" });
      this.ended(found);
    });
  }

  /** @param {SubmitEvent} event */
  async cancel(event) {
    const form = within(event, "[data-cancel]");
    if (!form) return;
    event.preventDefault();
    const id = form.dataset.cancel;
    await fetch(`/api/v1/labs/submissions/${id}/cancel`, { method: "POST" }).catch(() => null);
    this.said.textContent = "Being taken back";
    await this.show(id);
  }
}
