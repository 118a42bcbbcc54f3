// The editor of own cards: the preview follows what is typed, rendered by the server. Without script a button asks for it.
import { fieldsOf } from "./dom.js";

const form = document.querySelector("[data-own]");
const state = document.querySelector("[data-state]");
let timer = 0;
let asked = 0;

function showKind() {
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== form.elements.kind.value;
}

async function preview() {
  const turn = ++asked;
  const body = fieldsOf(form);
  const reply = await fetch(form.dataset.preview, { method: "POST", body, headers: { "HX-Request": "true" } }).catch(
    () => null,
  );
  if (turn !== asked) return;
  state.textContent = reply?.ok ? "" : "The server does not answer; this is an earlier state.";
  if (!reply?.ok) return;
  const fresh = document.createElement("template");
  fresh.innerHTML = await reply.text();
  const part = document.querySelector('[data-part="preview"]');
  part.replaceChildren(...fresh.content.querySelector('[data-part="preview"]').childNodes);
}

for (const button of form.querySelectorAll("[data-without-script]")) button.hidden = true;
form.addEventListener("input", () => {
  showKind();
  clearTimeout(timer);
  timer = setTimeout(preview, 250);
});
// What was typed must not go with the page: the browser asks before it leaves an unsaved card. Compared with what the
// server sent, not with what is there now: somebody may have typed before this script was loaded.
let sent = false;
const isTyped = (field) => {
  if (field.type === "radio" || field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (field.tagName === "SELECT") return [...field.options].some((each) => each.selected !== each.defaultSelected);
  return field.type !== "hidden" && "defaultValue" in field && field.value !== field.defaultValue;
};
const isUnsaved = () => "unsaved" in form.dataset || [...form.elements].some(isTyped);
form.addEventListener("submit", () => {
  sent = true;
});
window.addEventListener("beforeunload", (event) => {
  if (!sent && isUnsaved()) event.preventDefault();
});
if ([...form.elements].some(isTyped)) preview();
showKind();
