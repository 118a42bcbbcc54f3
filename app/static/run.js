// A run as it happens, from one stream: its events feed two curves, and the parts of the page come as they change.
// A reload starts from the first chunk and loses nothing; a broken connection resumes behind the last one.
import { within } from "./dom.js";
import { setUpFilms } from "./film.js";
import { setUpReveal } from "./reveal.js";
import { steadyRange } from "./scales.js";
import { countUnderWay, showUnderWay } from "./under-way.js";
import uPlot from "./vendor/uplot/uplot-1.6.32.esm.js";

/**
 * A chunk of the run's event stream; its sequence is the event id that a broken connection resumes behind.
 * @typedef {object} Chunk
 * @property {number} sequence
 * @property {RunEvents.Any[]} events
 */

/**
 * A part of the page that changed.
 * @typedef {object} Part
 * @property {string} name
 * @property {string} html
 */

const root = /** @type {HTMLElement} */ (document.querySelector("[data-run]"));
const reveal = setUpReveal(root);
const id = root.dataset.run;
const totalSteps = Number(root.dataset.steps);
/** @type {RunEvents.StepEvent[]} */
const steps = [];
const plots = {};

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const number = (value, digits = 0) =>
  value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });

/** @param {number[]} values */
const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

// ---- curves -------------------------------------------------------------------------------------------------

function axes(format) {
  const style = {
    stroke: colour("--ink-3"),
    grid: { stroke: colour("--grid"), width: 1 },
    ticks: { show: false },
    font: `12px ${colour("--font-ui")}`, // a canvas has no custom properties
  };
  return [
    {
      ...style,
      grid: { show: false },
      values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? `${mark}` : "")),
      space: 70,
    },
    { ...style, values: (_, marks) => marks.map(format), size: 58, space: 26 },
  ];
}

// The first step and watched ones are slower: their times are no rate, as where runs are compared. A run that ends
// without any other has them drawn.
function atPace() {
  const plain = steps.filter((step) => step.step > 1 && !step.probed);
  return plain.length || root.dataset.ended !== "yes" ? plain : steps;
}

/**
 * @param {"loss" | "rate"} name
 * @param {RunEvents.StepEvent[]} shown
 * @param {(step: RunEvents.StepEvent) => number | null} pick
 * @param {(mark: number) => string} format
 * @param {number} room over the first value, so that the axis need not move when more come
 */
function draw(name, shown, pick, format, room) {
  const holder = root.querySelector(`[data-plot="${name}"]`);
  if (!shown.length || !holder.closest("[data-everything][open]")) return;
  plots[name]?.destroy();
  const options = {
    width: holder.clientWidth,
    height: 170,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: false, range: /** @type {uPlot.Range.MinMax} */ ([1, Math.max(2, totalSteps)]) },
      y: { range: (_, _low, high) => steadyRange(room * pick(shown[0]), high) },
    },
    series: [{}, { stroke: colour("--data-measurement"), width: 1.5, points: { show: shown.length < 3, size: 5 } }],
    axes: axes(format),
  };
  plots[name] = new uPlot(options, [shown.map((step) => step.step), shown.map(pick)], holder);
}

function drawCurves() {
  if (!steps.length) return;
  root.querySelector("[data-curves]").hidden = false;
  root.querySelector("[data-curve-table]").hidden = false;
  draw(
    "loss",
    steps,
    (step) => step.loss,
    (mark) => number(mark, 1),
    1,
  );
  draw(
    "rate",
    atPace(),
    (step) => step.tokens_per_second,
    (mark) => number(mark),
    2,
  );
  const [first, last] = [steps[0], steps.at(-1)];
  root.querySelector("[data-loss]").textContent = last.loss === null ? "not a number" : number(last.loss, 3);
  root.querySelector("[data-loss-from]").textContent = first.loss === null ? "" : `, from ${number(first.loss, 3)}`;
  // the run's own figure: the median of plain steps, as the result and its utilisation have it
  const pace = atPace();
  const rate = pace.length ? number(1 / median(pace.map((step) => 1 / step.tokens_per_second))) : "–";
  root.querySelector("[data-rate]").textContent = rate;
  root
    .querySelector('[data-plot="loss"]')
    .setAttribute(
      "aria-label",
      `Loss by step: ${number(first.loss ?? 0, 2)} at step ${first.step}, ${number(last.loss ?? 0, 2)} at step ${last.step}.`,
    );
  root
    .querySelector('[data-plot="rate"]')
    .setAttribute("aria-label", `Tokens per second by step: ${rate} in the median step.`);
}

/** @param {RunEvents.StepEvent} step */
function addRow(step) {
  const row = root.querySelector("[data-curve-table] tbody").insertRow();
  const cells = [
    step.step,
    step.loss === null ? "not a number" : number(step.loss, 4),
    number(step.tokens_per_second),
    step.probed ? "on" : "",
  ];
  cells.forEach((text, index) => {
    const cell = row.insertCell();
    cell.textContent = text;
    if (index === 1 || index === 2) cell.className = "r";
  });
}

// ---- the rest of the page -------------------------------------------------------------------------------------

// What did not change is left alone: a button that is about to be clicked, a status that is read aloud.
/** @param {Part} part */
function update(part) {
  if (reveal.holds(part)) return;
  const holder = root.querySelector(`[data-part="${part.name}"]`);
  const fresh = document.createElement("template");
  fresh.innerHTML = part.html;
  if (holder.innerHTML !== fresh.innerHTML) swap(holder, part.html);
  reveal.placed(part);
}

// Focus, open tables and scrolled logs survive the swap.
function swap(holder, html) {
  const focused = holder.contains(document.activeElement) ? document.activeElement : null;
  const label = focused?.getAttribute("aria-label") ?? focused?.textContent;
  const open = [...holder.querySelectorAll("details")].map((each) => each.open);
  const log = holder.querySelector(".log.tall");
  const pinned = !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
  const top = log?.scrollTop ?? 0;
  holder.innerHTML = html;
  setUpFilms(holder);
  [...holder.querySelectorAll("details")].forEach((each, index) => {
    if (index in open) each.open = open[index];
  });
  const fresh = holder.querySelector(".log.tall");
  if (fresh) fresh.scrollTop = pinned ? fresh.scrollHeight : top;
  if (focused) {
    const there = [...holder.querySelectorAll("a, button, summary, pre")];
    const again = there.find((each) => (each.getAttribute("aria-label") ?? each.textContent) === label);
    (again ?? there[0] ?? heading()).focus({ preventScroll: true });
  }
}

// what is focused where nothing took the place of what was
function heading() {
  const found = /** @type {HTMLElement} */ (root.querySelector('[data-part="title"] h1'));
  found.tabIndex = -1;
  return found;
}

// ---- its end ------------------------------------------------------------------------------------------------------

// The page stays, and the focus: what becomes of the run comes with the stream.
/** @param {SubmitEvent} event */
async function cancel(event) {
  const form = within(event, "[data-cancel]");
  if (!form) return;
  event.preventDefault();
  const reply = await fetch(`/api/v1/lab/runs/${id}/cancel`, { method: "POST" }).catch(() => null);
  if (!reply?.ok) form.submit(); // the browser says what is wrong
}

// ---- the stream ------------------------------------------------------------------------------------------------

let lastDrawn = 0;
let drawTimer = 0;

function redrawSoon() {
  clearTimeout(drawTimer);
  const wait = Math.max(0, 250 - (performance.now() - lastDrawn)); // at most four a second
  drawTimer = setTimeout(() => {
    lastDrawn = performance.now();
    drawCurves();
  }, wait);
}

/** @param {RunEvents.StepEvent} step */
function take(step) {
  steps.push(step);
  addRow(step);
  redrawSoon();
}

// its worker was lost: another takes it from the start
function beginAnew() {
  steps.length = 0;
  root.querySelector("[data-curve-table] tbody").replaceChildren();
  root.querySelector("[data-curves]").hidden = true;
  root.querySelector("[data-curve-table]").hidden = true;
}

function follow() {
  // what a run that had ended shows is here already; its curves are drawn from its chunks
  const source = new EventSource(`/lab/runs/${id}/${root.dataset.ended === "yes" ? "events" : "live"}`);
  let last = 0;
  source.addEventListener("chunk", (message) => {
    /** @type {Chunk} */
    const chunk = JSON.parse(message.data);
    if (chunk.sequence <= last) return;
    last = chunk.sequence;
    for (const event of chunk.events) {
      if (event.kind === "step") take(event);
      else if (event.kind === "phase" && event.phase === "queued") beginAnew();
    }
  });
  source.addEventListener("part", (message) => update(JSON.parse(message.data)));
  source.addEventListener("end", () => {
    source.close();
    if (root.dataset.ended !== "yes") {
      root.dataset.ended = "yes";
      drawCurves();
      reveal.ended();
      showUnderWay(countUnderWay() - 1); // this one no longer is
      root.querySelector("[data-whole]").hidden = false;
    }
  });
}

setUpFilms(root);
follow();
root.addEventListener("submit", cancel);
root.querySelector("[data-everything]").addEventListener("toggle", drawCurves); // what is folded has no width
document.addEventListener("themechange", drawCurves);
let resizeTimer = 0;
addEventListener("resize", () => {
  clearTimeout(resizeTimer);
  resizeTimer = setTimeout(drawCurves, 150);
});
