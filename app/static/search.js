// Search from anywhere: / opens it, results come while one types, arrows walk them, Enter goes there.
import { typing, within } from "./dom.js";

const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("search"));

function openSearch() {
  const own = document.querySelector("main [data-search] input");
  if (own) {
    own.focus();
    own.select();
    return;
  }
  if (!dialog || dialog.open) return;
  dialog.showModal();
  dialog.querySelector("input").select();
}

// Only the answer to the newest question is shown.
let turn = 0;
let timer = 0;

async function ask(form) {
  const mine = ++turn;
  const query = new URLSearchParams({ q: form.elements.q.value });
  const reply = await fetch(`/search/results?${query}`).catch(() => null);
  if (mine !== turn) return;
  const holder = form.querySelector("[data-results]");
  if (reply?.ok) holder.innerHTML = await reply.text();
  else holder.textContent = "The server does not answer. Enter asks again.";
  if (!form.closest("dialog")) history.replaceState(null, "", `/search?${query}`);
}

const hits = (form) => [...form.querySelectorAll("[data-hit]")];

function walk(form, step) {
  const found = hits(form);
  const at = found.indexOf(document.activeElement) + step;
  if (at < 0) form.elements.q.focus();
  else found[Math.min(at, found.length - 1)]?.focus();
}

function onFormKey(event, form) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    walk(form, event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape" && dialog.contains(form)) {
    event.preventDefault(); // the browser would only empty the field
    dialog.close();
  } else if (event.key === "Enter" && event.target === form.elements.q) {
    event.preventDefault();
    goToFirst(form);
  } else if (
    event.key.length === 1 &&
    !event.ctrlKey &&
    !event.metaKey &&
    !event.altKey &&
    within(event, "[data-hit]")
  ) {
    form.elements.q.focus(); // typing on goes back into the question
  }
}

// What is shown may still answer an earlier question: Enter waits for the answer to this one.
async function goToFirst(form) {
  clearTimeout(timer);
  await ask(form);
  const first = hits(form)[0];
  if (first) leave(first);
}

function leave(link) {
  const isHere = new URL(link.href).pathname === location.pathname;
  if (isHere) dialog?.close(); // a place on this page: the dialog must not stay in front of it
  link.click();
}

document.addEventListener("input", (event) => {
  const form = within(event, "[data-search]");
  if (!form) return;
  clearTimeout(timer);
  timer = setTimeout(() => ask(form), 80);
});

document.addEventListener("keydown", (event) => {
  const form = within(event, "[data-search]");
  if (form) onFormKey(event, form);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "/" && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    openSearch();
  }
});

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  const opener = within(event, "[data-open-search]");
  if (opener && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    opener.closest("dialog")?.close();
    openSearch();
  }
  if (within(event, "#search [data-hit]") && !event.ctrlKey && !event.metaKey) dialog.close();
});
