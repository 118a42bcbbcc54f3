// A live number opens where it comes from: beside the text when there is room, below its paragraph otherwise.
// Without this script the link leads to the same derivation as a page of its own.
import { fieldsOf, within } from "./dom.js";

let open = null; // { link, panel }

export function closeDerivation({ refocus = true } = {}) {
  if (!open) return;
  const { link, panel } = open;
  open = null;
  panel.remove();
  link.setAttribute("aria-expanded", "false");
  if (refocus) link.focus();
}

// null when the server does not answer
async function fetchDerived(address) {
  const reply = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!reply) return null;
  const holder = document.createElement("div");
  holder.innerHTML = await reply.text();
  return holder.querySelector(".derivation") && holder;
}

// Only the newest click counts: a second one on the same link closes what the first one is still asking for.
let asking = null;

async function openDerivation(link) {
  const again = (open?.link ?? asking?.link) === link;
  closeDerivation({ refocus: again });
  asking = again ? null : { link };
  if (again) return;
  const mine = asking;
  const panel = (await fetchDerived(link.href))?.querySelector(".derivation");
  if (asking !== mine) return;
  asking = null;
  if (!panel) {
    location.assign(link.href); // the browser says what is wrong
    return;
  }
  place(panel, link);
  link.setAttribute("aria-expanded", "true");
  open = { link, panel };
  panel.querySelector("input, select, button")?.focus({ preventScroll: true });
  panel.scrollIntoView({ block: "nearest" });
}

function place(panel, link) {
  const block = link.closest("p, li, td, dd, table, figure, .given") ?? link.parentElement;
  const holder = link.closest("[data-margin]");
  const room = holder && innerWidth >= 1181;
  if (!room) {
    (block.closest("table, ul, ol, dl") ?? block).after(panel);
    return;
  }
  panel.classList.add("margin");
  panel.style.top = `${link.getBoundingClientRect().top - holder.getBoundingClientRect().top - 24}px`;
  holder.append(panel);
}

// Editing an input recomputes in place; what is out of range is said at its field by the server.
let timer = 0;
function onInput(event) {
  const form = within(event, ".derivation form");
  if (!form) return;
  clearTimeout(timer);
  timer = setTimeout(() => recompute(form), 200);
}

let turn = 0;
async function recompute(form) {
  clearTimeout(timer);
  const mine = ++turn;
  const query = fieldsOf(form);
  const fresh = await fetchDerived(`${form.getAttribute("action")}?${query}`);
  if (!fresh || mine !== turn) return; // a newer question is under way
  // only what is computed changes: the field being typed in keeps its text, caret and focus
  const around = form.closest("[data-derived]") ?? form.closest(".derivation");
  for (const part of around.querySelectorAll("[data-part]")) {
    const now = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    if (now) part.innerHTML = now.innerHTML;
  }
  for (const field of form.querySelectorAll("input[aria-describedby]")) {
    const error = document.getElementById(field.getAttribute("aria-describedby"));
    field.setAttribute("aria-invalid", String(Boolean(error?.textContent)));
  }
}

export function openLiveNumbers(scope) {
  scope.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = within(event, "a[data-live]");
    if (link) {
      event.preventDefault();
      openDerivation(link);
    }
    if (within(event, "[data-close-derivation]")) closeDerivation();
  });
  scope.addEventListener("input", onInput);
  scope.addEventListener("submit", (event) => {
    const form = within(event, ".derivation form");
    if (form) {
      event.preventDefault();
      recompute(form);
    }
  });
  scope.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      closeDerivation();
    }
    // a link that acts like a button answers to space as well
    if (event.key === " " && within(event, "a[data-live]")) {
      event.preventDefault();
      openDerivation(event.target);
    }
  });
}
