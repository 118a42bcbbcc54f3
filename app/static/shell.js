// The shell's own behaviour: theme, keys between rooms, dialogs, live numbers.
import { typing, within } from "./dom.js";
import { openLiveNumbers } from "./live.js";

const root = document.documentElement;
const isDark = () =>
  root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

function labelThemeButtons() {
  for (const button of document.querySelectorAll("[data-theme-toggle]"))
    button.textContent = isDark() ? "Light" : "Dark";
}

function toggleTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  labelThemeButtons();
  document.dispatchEvent(new CustomEvent("themechange")); // canvas charts read their colours again
}

// What is folded on a phone and open where there is room; where something in it is wrong it stays open.
const narrow = matchMedia("(max-width: 720px)");
function fold() {
  for (const each of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details[data-fold]")))
    each.open = !narrow.matches || each.hasAttribute("data-wrong");
}
narrow.addEventListener("change", fold);
fold();

// g, then a room's letter. A pending g is forgotten after a second.
let pendingGo = -Infinity;
function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  if (performance.now() - pendingGo < 1000) {
    pendingGo = -Infinity;
    const link = document.querySelector(`.nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
      return;
    }
  }
  if (event.key === "g") pendingGo = performance.now();
  if (event.key === "?") openDialog("keys");
}

// Ctrl + Enter hands in a form that says so, from any of its fields.
function onSend(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
  const form = /** @type {HTMLFormElement | null} */ (within(event, "form[data-ctrl-enter]"));
  if (!form) return;
  event.preventDefault();
  form.requestSubmit();
}

/** @param {string} id */
function openDialog(id) {
  /** @type {HTMLDialogElement} */ (document.getElementById(id)).showModal();
}

function onClick(event) {
  const on = (selector) => within(event, selector);
  if (on("[data-theme-toggle]")) toggleTheme();
  if (on("[data-keys]")) openDialog("keys");
  if (on("[data-more]")) openDialog("more");
  if (on("[data-print]")) print();
  const copy = on("[data-copy]");
  if (copy) copyText(copy);
  if (event.target instanceof HTMLDialogElement) event.target.close(); // the backdrop
}

async function copyText(button) {
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 1500);
}

document.addEventListener("keydown", onKey);
document.addEventListener("keydown", onSend);
document.addEventListener("click", onClick);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  labelThemeButtons();
  document.dispatchEvent(new CustomEvent("themechange"));
});
for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-print]")))
  button.hidden = false;
labelThemeButtons();
openLiveNumbers(document);
