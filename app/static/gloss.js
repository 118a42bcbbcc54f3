// A marked term says what it means: on hover, on focus, on a tap. Without script its title does.
import { within } from "./dom.js";

const popover = document.createElement("div");
popover.id = "gloss";
popover.className = "gloss-says";
popover.setAttribute("role", "tooltip");
popover.hidden = true;

let shown = null;

function show(term) {
  if (shown === term) return;
  hide();
  if (term.title) {
    term.dataset.says = term.title; // the browser's own tip would show a second time
    term.removeAttribute("title");
  }
  shown = term;
  (term.closest("main, dialog") ?? document.body).append(popover); // a swapped page may have taken it away
  popover.textContent = term.dataset.says;
  popover.hidden = false;
  term.setAttribute("aria-describedby", popover.id);
  place(term);
}

function hide() {
  shown?.removeAttribute("aria-describedby");
  shown = null;
  popover.hidden = true;
}

// Below the term, above it where there is no room, never over the edge.
function place(term) {
  const box = term.getBoundingClientRect();
  const edge = 8;
  const left = Math.min(Math.max(edge, box.left), document.documentElement.clientWidth - popover.offsetWidth - edge);
  const isLow = box.bottom + popover.offsetHeight + edge > innerHeight;
  const top = isLow ? box.top - popover.offsetHeight - 6 : box.bottom + 6;
  popover.style.left = `${left + scrollX}px`;
  popover.style.top = `${top + scrollY}px`;
}

const termOf = (event) => within(event, ".gloss");

document.addEventListener("pointerover", (event) => {
  const term = termOf(event);
  if (term) show(term);
  else if (shown && shown !== document.activeElement && !within(event, "#gloss")) hide();
});
document.addEventListener("focusin", (event) => (termOf(event) ? show(termOf(event)) : hide()));
document.addEventListener("focusout", (event) => termOf(event) && hide());
document.addEventListener("click", (event) => termOf(event) && show(termOf(event)));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && shown) {
    event.preventDefault();
    hide();
  }
});
