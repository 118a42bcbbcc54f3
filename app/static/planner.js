// The form recomputes as it changes; the address follows, so that a plan can be sent and gone back to.
import { fieldsOf } from "./dom.js";

const form = document.querySelector("[data-plan]");
let timer = 0;
let asked = 0;

async function recompute() {
  const address = `${form.getAttribute("action")}?${fieldsOf(form)}`;
  const turn = ++asked;
  const reply = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (turn !== asked) return;
  if (!reply?.ok) {
    document.querySelector('[role="status"]').textContent =
      "The server does not answer; these figures are of an earlier form.";
    return;
  }
  const fresh = document.createElement("div");
  fresh.innerHTML = await reply.text();
  // only what is computed changes: the form keeps its focus and caret
  for (const part of document.querySelectorAll("[data-part]")) {
    const now = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    if (now) part.innerHTML = now.innerHTML;
  }
  for (const part of form.querySelectorAll("[data-shown]")) {
    part.hidden = fresh.querySelector(`[data-shown="${part.dataset.shown}"]`).hidden;
  }
  form.elements.sequence.placeholder = fresh.querySelector("#f-sequence").placeholder;
  for (const field of form.querySelectorAll(".field")) {
    const error = field.querySelector(".error");
    const input = field.querySelector("input, select");
    field.classList.toggle("bad", error !== null);
    input.setAttribute("aria-invalid", String(error !== null));
    if (error) input.setAttribute("aria-describedby", error.id);
    else input.removeAttribute("aria-describedby");
  }
  history.replaceState(null, "", address);
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(recompute, 150);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  recompute();
});
