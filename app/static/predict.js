// A slider and a text field that are the same value, and how sure one is. Without script the text field is enough.
import { fieldsOf, within } from "./dom.js";
import { askBeforeEnter } from "./enter.js";
import { quantityText, readQuantity } from "./units.js";

const form = document.querySelector("[data-predict]");

function setUp(item) {
  const text = item.querySelector(".box input");
  const range = item.querySelector("input[type=range]");
  const maximum = Number(item.dataset.maximum);
  /** @type {import("./units.js").Units} */
  const units = JSON.parse(item.dataset.units);
  const steps = Number(range.max);
  const said = (value) => quantityText(value, units);
  const read = () => readQuantity(text.value, units);
  item.querySelector(".range").hidden = false;
  item.querySelector(".scale").hidden = false;

  const show = (value) => {
    const empty = text.value.trim() === "";
    item.toggleAttribute("data-empty", empty);
    range.parentElement.style.setProperty("--f", value === null ? 0 : Math.min(1, value / maximum));
    range.setAttribute("aria-valuetext", empty ? "not set" : text.value);
    const sure = item.querySelector(".sure input:checked");
    const span = item.querySelector("[data-said]");
    span.textContent =
      value === null ? "" : sure ? `${said(value / sure.value)} to ${said(value * sure.value)}` : "how sure?";
    count();
  };
  range.addEventListener("input", () => {
    const value = (maximum * range.value) / steps;
    text.value = said(value);
    show(value);
  });
  text.addEventListener("input", () => {
    const value = read();
    if (value !== null) range.value = Math.round((steps * value) / maximum);
    show(value);
  });
  for (const radio of item.querySelectorAll(".sure input")) radio.addEventListener("change", () => show(read()));
  const start = read();
  if (start !== null) range.value = Math.round((steps * start) / maximum);
  show(start);
}

function count() {
  const items = [...form.querySelectorAll(".preds > li")];
  const set = items.filter((item) => !item.hasAttribute("data-empty")).length;
  form.querySelector("[data-count]").textContent = `${set} of ${items.length} set.`;
}

for (const item of form.querySelectorAll(".preds > li")) setUp(item);

askBeforeEnter("[data-predict]", () => {
  const blank = [...form.querySelectorAll(".preds > li[data-empty] h3")].map((title) => title.firstChild.textContent);
  if (!blank.length) return "";
  return `Still blank: ${blank.join("; ")}. Enter once more locks what there is and runs.`;
});

// Turning a knob asks for the same page with it turned; the numbers go along.
form.addEventListener("change", (event) => {
  if (!within(event, "[data-knob]")) return;
  const query = fieldsOf(form);
  query.delete("key");
  location.replace(`${location.pathname}?${query}`);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit(form.querySelector("[data-lock]"));
  }
});
