// The form of a run: choices that cannot work beside the others are greyed out and say why, as it is filled in.
import { fieldsOf, sayUnder } from "./dom.js";

const form = /** @type {HTMLFormElement | null} */ (document.querySelector("[data-offer]"));
let asked = 0;

/** @type {Record<string, Record<string, Record<string, string>>>} */
let follows = {};

/**
 * @param {string} name
 * @param {Record<string, string>} refused
 */
function mark(name, refused) {
  const field = form.elements.namedItem(name);
  if (!(field instanceof HTMLSelectElement)) return;
  /** @type {Map<string, string[]>} */
  const byReason = new Map();
  for (const option of field.options) {
    const why = (refused[option.value] ?? "").split(" Accepted: ")[0];
    option.dataset.name ??= option.text;
    option.disabled = why !== "";
    option.text = why ? `${option.dataset.name}: ${why}` : option.dataset.name;
    if (why) byReason.set(why, [...(byReason.get(why) ?? []), option.dataset.name.split(",")[0]]);
  }
  // which devices are there is said by their names: a line only where the chosen one will not do
  if (name === "device" && !refused[field.value]) return sayUnder(field, "");
  const isAll = byReason.size === 1 && [...byReason.values()][0].length === field.options.length - 1;
  const said = [...byReason].map(([why, names]) => (isAll ? why : `${names.join(", ")}: ${why}`));
  sayUnder(field, said.join(" "));
}

const NOT_YET = "This cannot run yet: see the fields.";

/**
 * A link to a field, by its label.
 * @param {string} name
 */
function linkTo(name) {
  const field = form.elements.namedItem(name);
  const label = document.querySelector(`label[for="f-${CSS.escape(name)}"]`);
  if (!(field instanceof HTMLElement) || !label) return null;
  const link = document.createElement("a");
  link.href = `#${field.id}`;
  link.textContent = label.textContent;
  link.addEventListener("click", () => field.focus()); // a browser goes to a fragment without the focus
  return link;
}

/** @param {HTMLElement[]} links */
function inARow(links) {
  return links.flatMap((link, index) => [index === 0 ? "" : index === links.length - 1 ? " and " : ", ", link]);
}

async function ask() {
  const turn = ++asked;
  const reply = await fetch(form.dataset.offer, { method: "POST", body: fieldsOf(form) }).catch(() => null);
  if (turn !== asked || !reply?.ok) return; // without an answer everything stays on offer, and is refused when sent
  const { refused, wrong, idle, words, written, ...more } = await reply.json();
  follows = more.follows;
  const inWords = document.querySelector("[data-words]");
  const links = Object.keys(wrong).map(linkTo).filter(Boolean);
  inWords.replaceChildren(
    ...(links.length ? ["This cannot run yet: see ", ...inARow(links), "."] : [words || NOT_YET]),
  );
  const text = /** @type {HTMLTextAreaElement} */ (document.querySelector("[data-written]"));
  const isOurs = text.dataset.kept === undefined; // else it is a run that the fields cannot say
  if (isOurs && written && text.value === (text.dataset.shown ?? text.defaultValue) && !text.closest("details").open) {
    text.value = text.dataset.shown = written;
  }
  const reasons = new Set(); // each is said once, at the first field that it is true of
  for (const field of form.elements) {
    if (field instanceof HTMLSelectElement) mark(field.name, refused[field.name] ?? {});
    const isTyped = field instanceof HTMLInputElement && field.type !== "hidden";
    const isText = isTyped && !field.name.startsWith("value.");
    if (isTyped || wrong[field.getAttribute("name")]) {
      const words = wrong[field.getAttribute("name")] ?? "";
      sayUnder(field, words, words !== "");
    }
    if ((field instanceof HTMLSelectElement || isText) && field !== document.activeElement) {
      const why = idle[field.name] ?? "";
      field.disabled = why !== ""; // it is not sent then: as the form has it, it stands
      if (why) sayUnder(field, reasons.has(why) ? "\u00a0" : why);
      reasons.add(why);
    }
  }
}

/** A choice that needs another field to follow takes it along: interleaving needs two stages a rank. */
function follow(event) {
  const then = follows[event.target.name]?.[event.target.value] ?? {};
  for (const [name, value] of Object.entries(then)) {
    const field = form.elements.namedItem(name);
    if (!(field instanceof HTMLInputElement)) continue;
    field.disabled = false;
    field.value = value;
  }
}

function nameButton() {
  const isSaid = [...form.querySelectorAll("input[name^='value.']")].some((field) => field.value.trim() !== "");
  const button = /** @type {HTMLElement} */ (form.querySelector("[data-run]"));
  button.dataset.run ||= button.textContent;
  button.textContent = isSaid ? "Lock and run" : button.dataset.run;
}

/** What theory said of the form as it was says nothing of what it is now. */
function forget(event) {
  if (!event.target.name.startsWith("value.")) document.getElementById("expected").replaceChildren();
}

if (form) {
  form.addEventListener("change", (event) => {
    forget(event);
    follow(event);
    ask();
  });
  form.addEventListener("input", forget);
  form.addEventListener("input", nameButton);
  nameButton();
  ask();
}
