// Runs that are marked to be compared stay marked when their list is drawn anew, and over a reload.
const key = `ticks ${location.pathname}`;

const boxes = () => /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll(".ticked input")]);

function restore() {
  const kept = new Set(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
  for (const box of boxes()) box.checked = kept.has(box.value);
}

document.addEventListener("change", ({ target }) => {
  if (!(target instanceof Element) || !target.matches(".ticked input")) return;
  const marked = boxes().filter((box) => box.checked);
  sessionStorage.setItem(key, JSON.stringify(marked.map((box) => box.value)));
});
document.addEventListener("htmx:after:swap", restore);
restore();
