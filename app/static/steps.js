// Items that are put in order by arrow keys or buttons. Without this script each place has a list to choose from.
import { within } from "./dom.js";

export function setUpSteps(page) {
  for (const group of page?.querySelectorAll("[data-order]:not([data-ready])") ?? []) setUp(group);
}

function setUp(group) {
  group.dataset.ready = "yes";
  for (const each of group.querySelectorAll(".with-script")) each.hidden = false;
  for (const each of group.querySelectorAll(".without-script")) each.hidden = true;
  for (const item of group.querySelectorAll(".steps > li")) {
    item.querySelector("input").disabled = group.hasAttribute("data-untouched"); // no answer before it is touched
    item.querySelector("[data-step]").replaceWith(asButton(item.querySelector("[data-step]")));
  }
  group.addEventListener("click", (event) => {
    const button = within(event, "[data-move]");
    if (button) move(button.closest("li"), Number(button.dataset.move), button);
    if (within(event, "[data-as-shown]")) touch(group, "The order stands as it is shown.");
  });
  group.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const step = within(event, ".step");
    if (!by || !step) return;
    event.preventDefault();
    move(step.closest("li"), by, step);
  });
}

/** What the server gave as an order; nothing where nobody has moved an item. */
export function givenOrder(group) {
  if (group.hasAttribute("data-untouched")) return "";
  return [...group.querySelectorAll(".steps input")].map((input) => input.value).join(", ");
}

/** Put the items in the order of these ids. */
export function arrange(group, ids) {
  const inputs = [...group.querySelectorAll(".steps input")];
  if (ids.length !== inputs.length) return;
  group.removeAttribute("data-untouched");
  for (const id of ids) {
    const input = inputs.find((each) => each.value === id);
    if (!input) continue;
    input.disabled = false;
    input.closest("ol").append(input.closest("li"));
  }
}

// What can be moved has to be reachable by Tab; Enter on it checks, which study.js does.
function asButton(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "step";
  button.setAttribute("aria-description", "arrow keys move this step");
  button.append(...text.childNodes);
  return button;
}

function move(item, by, focused) {
  const other = by < 0 ? item.previousElementSibling : item.nextElementSibling;
  if (!other) return;
  if (by < 0) other.before(item);
  else other.after(item);
  focused.focus(); // moving a node in the page takes its focus away
  const items = [...item.parentElement.children];
  const place = `now ${items.indexOf(item) + 1} of ${items.length}`;
  touch(item.closest("[data-order]"), `${item.querySelector(".step").textContent}: ${place}`);
}

// From here on what stands there is an answer: somebody moved an item, or said that none has to be.
function touch(group, words) {
  group.removeAttribute("data-untouched");
  for (const input of group.querySelectorAll(".steps input")) input.disabled = false;
  group.querySelector("[data-as-shown]")?.parentElement.remove();
  group.dispatchEvent(new Event("change", { bubbles: true }));
  group.querySelector("[data-moved]").textContent = words;
}
