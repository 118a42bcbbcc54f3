// A field that leaves of a long page only what contains all its words: groups without any go, those with some open.
import "./folds.js";

const list = /** @type {HTMLElement} */ (document.querySelector("[data-sift]"));
const holder = /** @type {HTMLElement} */ (list.querySelector(".sift"));
const field = holder.querySelector("input");
const status = holder.querySelector("[role=status]");
const items = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[data-sift-item]")]);
const groups = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[data-sift-group]")].reverse()); // inner first
const texts = items.map((item) => `${item.dataset.siftItem} ${item.textContent}`.toLowerCase());

function sift() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  items.forEach((item, index) => {
    item.hidden = !words.every((word) => texts[index].includes(word));
    found += item.hidden ? 0 : 1;
    if (item instanceof HTMLDetailsElement) item.open = words.length > 0 && !item.hidden;
  });
  for (const group of groups) {
    group.hidden = !group.querySelector("[data-sift-item]:not([hidden])");
    if (group instanceof HTMLDetailsElement) group.open = words.length > 0 && !group.hidden;
  }
  status.textContent = words.length ? `${found || "None"} of ${items.length}` : "";
}

holder.hidden = false;
field.addEventListener("input", sift);
field.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !field.value) return;
  field.value = "";
  sift();
});
if (field.value) sift(); // kept by the browser over a reload
