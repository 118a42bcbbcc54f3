// The first minute: a diamond that is dragged or typed, locked once, and what it left out. Without this script the
// form and the page after it say the same. Nothing is computed here: what each GPU holds is asked of the server.
import { typing } from "./dom.js";

const page = document.body;
const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-guess]"));
const field = /** @type {HTMLInputElement} */ (form.querySelector("[name=guess]"));
const range = /** @type {HTMLInputElement} */ (form.querySelector("input[type=range]"));
const line = /** @type {HTMLElement} */ (form.querySelector(".line"));
const part = (name, from = document) => /** @type {HTMLElement} */ (from.querySelector(`[data-fill="${name}"]`));

// ---- the guess --------------------------------------------------------------------------------------------------

/** The text as a plain number of GB; null where the server has to read it. */
function typedGb() {
  const text = field.value.trim().replace(/\s*GB$/i, "");
  const value = /^\d+([.,]\d+)?$/.test(text) ? Number(text.replace(",", ".")) : 0;
  return value > 0 ? value : null;
}

/** @param {number} gb */
const share = (gb) => Math.min(1, Math.max(0, Math.log10(gb) / Number(range.max)));

function show(gb) {
  delete page.dataset.empty;
  line.style.setProperty("--f", String(share(gb)));
  range.setAttribute("aria-valuetext", `${field.value} GB`);
  fit();
}

/** There is nothing to lock before there is a guess; the server reads whatever was typed. */
function allow() {
  const button = /** @type {HTMLButtonElement | null} */ (part("act").querySelector("button"));
  if (button) button.disabled = !field.value.trim();
}

function fit() {
  allow();
  field.style.width = `${Math.max(1, field.value.length) + 0.15}ch`;
}

range.addEventListener("input", () => {
  const gb = 10 ** Number(range.value);
  field.value = String(gb < 10 ? Math.round(gb * 10) / 10 : Math.round(gb));
  show(gb);
});
field.addEventListener("input", () => {
  const gb = typedGb();
  fit();
  if (gb === null) return;
  range.value = String(share(gb) * Number(range.max));
  show(gb);
});
range.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  form.requestSubmit();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!("locked" in page.dataset)) lock();
});

// ---- from the lock to the finding ---------------------------------------------------------------------------------

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const PAUSE = 750; // milliseconds between two terms: each is seen to land
/** @type {number[]} */
let timers = [];
/** @type {(() => void) | null} */
let end = null;

async function lock() {
  const body = new URLSearchParams({ guess: field.value });
  const reply = await fetch("/first", { method: "POST", body }).catch(() => null);
  const fresh = reply ? new DOMParser().parseFromString(await reply.text(), "text/html") : null;
  if (!fresh || !("told" in fresh.body.dataset)) {
    const said = fresh?.querySelector("#guess-error")?.textContent;
    document.querySelector("#guess-error").textContent =
      said || "Your guess was not locked: the server does not answer.";
    field.focus();
    return;
  }
  document.querySelector("#guess-error").textContent = "";
  const typed = /** @type {HTMLInputElement} */ (fresh.querySelector("[name=guess]"));
  field.value = typed.value;
  field.readOnly = true;
  range.disabled = true;
  fit();
  line.style.cssText = part("line", fresh).style.cssText;
  line.querySelector(".far").textContent = fresh.querySelector(".far").textContent;
  part("act").innerHTML = part("act", fresh).innerHTML;
  part("after").innerHTML = part("after", fresh).innerHTML;
  page.dataset.locked = "";
  end = () => {
    timers.forEach(clearTimeout);
    timers = [];
    end = null;
    tell(fresh);
  };
  if (isStill()) {
    end();
    return;
  }
  page.dataset.built = "0";
  for (const step of [1, 2, 3])
    timers.push(setTimeout(() => (page.dataset.built = String(step)), 450 + (step - 1) * PAUSE));
  timers.push(setTimeout(() => end?.(), 450 + 3 * PAUSE + 200));
}

/** @param {Document} fresh */
function tell(fresh) {
  delete page.dataset.built;
  page.dataset.told = "";
  for (const name of ["title", "says"]) part(name).textContent = part(name, fresh).textContent;
  document.title = fresh.title;
  part("title").focus({ preventScroll: true });
  page.dataset.free = "";
  setUpKnobs();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") end?.();
});

// ---- GPUs and ZeRO ------------------------------------------------------------------------------------------------

/**
 * What each GPU holds: heights in percent, then words. By part, and all of them last.
 * @typedef {object} State
 * @property {string[]} heights
 * @property {string[]} per_parameter
 * @property {string[]} held
 * @property {[string, string]} says
 */

async function setUpKnobs() {
  const turn = /** @type {HTMLFormElement | null} */ (document.querySelector("[data-turn]"));
  const reply = turn && (await fetch("/first/states").catch(() => null));
  if (!turn || !reply?.ok) return;
  /** @type {State[][]} */
  const states = await reply.json();
  const ranks = /** @type {HTMLInputElement} */ (turn.querySelector("[name=ranks]"));
  const stages = /** @type {HTMLInputElement[]} */ ([...turn.querySelectorAll("[name=stage]")]);
  const redraw = () => {
    const chosen = stages.find((each) => each.checked) ?? stages[0];
    const count = Number(ranks.value);
    draw(turn, states[count - 1][Number(chosen.value)], count, chosen);
    ranks.style.setProperty("--f", String((count - 1) / (Number(ranks.max) - 1)));
  };
  redraw(); // whoever was faster than the numbers sees what was asked for
  turn.addEventListener("input", redraw);
  turn.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const wanted = stages.find((each) => each.value === event.key);
    if (!wanted) return;
    wanted.checked = true;
    redraw();
  });
}

/**
 * @param {HTMLElement} turn
 * @param {State} state
 * @param {number} count
 * @param {HTMLInputElement} chosen
 */
function draw(turn, state, count, chosen) {
  const box = document.querySelector("[data-gpus]");
  while (box.children.length > count) box.lastElementChild.remove();
  while (box.children.length < count) box.append(box.firstElementChild.cloneNode(true));
  box.classList.toggle("many", count > 24);
  box.classList.toggle("some", count > 12 && count <= 24);
  for (const column of box.children)
    state.heights.forEach((height, index) => {
      /** @type {HTMLElement} */ (column.children[index]).style.setProperty("--h", `${height}%`);
    });
  const fill = (name, texts) =>
    document.querySelectorAll(`[data-${name}]`).forEach((cell, index) => {
      cell.textContent = texts[index];
    });
  fill("per-parameter", state.per_parameter);
  fill("held", state.held);
  fill("per", [count > 1 ? "On each GPU" : "On one GPU"]);
  document.querySelector("[data-over]").toggleAttribute("hidden", count > 1);
  turn.querySelector("[data-count]").textContent = String(count);
  turn.querySelector("[data-plural]").textContent = count > 1 ? "s" : "";
  turn.querySelector("b[data-shares]").textContent = chosen.dataset.shares;
  const [finding, rest] = state.says;
  const bold = document.createElement("b");
  bold.textContent = finding;
  turn.querySelector("[data-say]").replaceChildren(bold, ` ${rest}`);
  const [weights, gradients, optimizer, all] = state.held;
  turn.querySelector("[name=ranks]").setAttribute("aria-valuetext", `${count} GPU${count > 1 ? "s" : ""}, ${all} each`);
  const limit = document.querySelector(".lim").textContent.trim();
  const says = `Memory on each of ${count} GPUs, ZeRO stage ${chosen.value}: weights ${weights}, gradients ${gradients}, optimizer ${optimizer}, together ${all}; ${limit}.`;
  document.querySelector("[data-figure]").setAttribute("aria-label", says);
}

// ---- start --------------------------------------------------------------------------------------------------------

fit();
if ("free" in page.dataset) setUpKnobs();
else if (typedGb() !== null) show(typedGb());
