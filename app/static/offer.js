// The form of a run: choices that cannot work beside the others are greyed out and say why, as it is filled in.
import { fieldsOf } from "./dom.js";

const form = /** @type {HTMLFormElement | null} */ (document.querySelector("[data-offer]"));
let asked = 0;

/**
 * @param {string} name
 * @param {Record<string, string>} refused
 */
function mark(name, refused) {
  const field = form.elements.namedItem(name);
  if (!(field instanceof HTMLSelectElement)) return;
  for (const option of field.options) {
    const why = refused[option.value] ?? "";
    option.dataset.name ??= option.text;
    option.disabled = why !== "";
    option.text = why ? `${option.dataset.name}: ${why}` : option.dataset.name;
  }
  const names = [...field.options].filter((option) => option.disabled).map((option) => option.dataset.name);
  say(field, names.length ? `Not with the rest: ${names.join("; ")}. The list says why.` : "");
}

/**
 * Under a field, instead of its help; nothing brings the help back.
 * @param {Element} field
 * @param {string} words
 * @param {boolean} [isWrong]
 */
function say(field, words, isWrong = false) {
  const help = document.getElementById(field.getAttribute("aria-describedby") ?? "");
  if (!help) return;
  help.dataset.help ??= help.className === "error" ? "" : help.textContent;
  help.textContent = words || help.dataset.help;
  help.className = isWrong ? "error" : "help";
  field.closest(".field").classList.toggle("bad", isWrong);
  field.toggleAttribute("aria-invalid", isWrong);
}

async function ask() {
  const turn = ++asked;
  const reply = await fetch(form.dataset.offer, { method: "POST", body: fieldsOf(form) }).catch(() => null);
  if (turn !== asked || !reply?.ok) return; // without an answer everything stays on offer, and is refused when sent
  const { refused, wrong } = await reply.json();
  for (const field of form.elements) {
    if (field instanceof HTMLSelectElement) mark(field.name, refused[field.name] ?? {});
    const isText = field instanceof HTMLInputElement && field.type !== "hidden";
    if (isText || wrong[field.getAttribute("name")]) {
      const words = wrong[field.getAttribute("name")] ?? "";
      say(field, words, words !== "");
    }
  }
}

if (form) {
  form.addEventListener("change", ask);
  ask();
}
