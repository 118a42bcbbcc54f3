// The form of a sweep: how many runs it comes to and how long they take, and what is wrong where, as it is filled in.
import { fieldsOf, sayUnder } from "./dom.js";

const QUIET_MS = 250;
const form = /** @type {HTMLFormElement | null} */ (document.querySelector("[data-sweep]"));
let asked = 0;
let pause = 0;

async function ask() {
  const turn = ++asked;
  const reply = await fetch(form.dataset.sweep, { method: "POST", body: fieldsOf(form) }).catch(() => null);
  if (turn !== asked || !reply?.ok) return; // without an answer it is refused when it is sent
  const { runs, words, alike, wrong, empty } = await reply.json();
  form.querySelector("[data-run]").textContent = runs ? `Run all ${runs}` : "Run them all";
  form.querySelector("[data-words]").textContent = words;
  form.querySelector("[data-alike]").textContent = alike;
  for (const field of form.elements) {
    const isText = field instanceof HTMLTextAreaElement || (field instanceof HTMLInputElement && field.type === "text");
    if (!isText) continue;
    // what is being typed, or has not been yet, is not wrong before it is sent; what is right again is told at once
    const isOpen = field === document.activeElement || empty.includes(field.name);
    const isNew = field.name in wrong && !field.hasAttribute("aria-invalid");
    if (!(isOpen && isNew)) sayUnder(field, wrong[field.name] ?? "", field.name in wrong);
  }
}

if (form) {
  form.addEventListener("change", ask);
  form.addEventListener("input", () => {
    clearTimeout(pause);
    pause = window.setTimeout(ask, QUIET_MS);
  });
  ask();
}
