// Figures one steps through, wherever a page has one. All frames come from the server, which draws and counts; here one
// is shown after the other. Nothing plays by itself. A step forward lets its chunks travel; any other way cuts.
import { within } from "./dom.js";

/**
 * One state of a figure; see app/content/players/player.py.
 * @typedef {object} Frame
 * @property {string} html
 * @property {string} says
 * @property {string[]} counters
 * @property {string} clip
 * @property {string[]} slots
 * @property {[number, number, number][]} moves from column, to column, in row
 */

/** @typedef {{ frames: Frame[], few: number[], phases: [string, number][], at: number }} Loaded */

const TRAVEL_MILLISECONDS = 420;
const WAIT_MILLISECONDS = 90; // a slider that is dragged asks only when it rests
const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

const still = matchMedia("(prefers-reduced-motion: reduce)");
/** @type {WeakMap<HTMLElement, Promise<Loaded | null>>} */
const loaded = new WeakMap();
/** @type {WeakMap<HTMLElement, { timer?: ReturnType<typeof setTimeout>, turn: number }>} */
const asking = new WeakMap();

/** The figure's frames, fetched once. @param {HTMLElement} figure */
function framesOf(figure) {
  let found = loaded.get(figure);
  if (!found) {
    found = fetchFigure(figure).then((reply) => reply?.loaded ?? null);
    loaded.set(figure, found);
  }
  return found;
}

/** @param {HTMLElement} figure */
async function fetchFigure(figure) {
  const query = new URLSearchParams();
  for (const each of figure.querySelectorAll("[data-setting]")) query.set(each.dataset.setting, each.value);
  const address = `${figure.dataset.address}/frames?${query}`;
  const reply = await fetch(address).catch(() => null);
  if (!reply?.ok) return null;
  const { html, ...rest } = await reply.json();
  return { html, loaded: /** @type {Loaded} */ (rest) };
}

/** @param {HTMLElement} figure @param {(at: number) => number} to which frame, from the one that is shown by then */
async function go(figure, to) {
  const known = await framesOf(figure);
  if (!known) return;
  const before = Number(figure.dataset.at);
  const at = Math.max(0, Math.min(known.frames.length - 1, to(before)));
  if (at === before && figure.dataset.shown) return;
  figure.dataset.at = String(at);
  figure.dataset.shown = "yes";
  show(figure, known, at);
  const now = performance.now();
  const isDragged = now - (moved.get(figure) ?? 0) < TRAVEL_MILLISECONDS; // step after step: it cuts
  moved.set(figure, now);
  if (at === before + 1 && !isDragged && !still.matches) travel(figure, known.frames[at]);
}

/** When a figure was last moved on. @type {WeakMap<HTMLElement, number>} */
const moved = new WeakMap();

/** A dragged strip says where it is more often than the screen is drawn. @type {WeakSet<HTMLElement>} */
const scrubbed = new WeakSet();

/** @param {HTMLElement} figure @param {HTMLInputElement} range */
function scrub(figure, range) {
  if (scrubbed.has(figure)) return;
  scrubbed.add(figure);
  requestAnimationFrame(() => {
    scrubbed.delete(figure);
    go(figure, () => Number(range.value));
  });
}

/** A text that stays is not laid out anew. @param {Element} element @param {string} text */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** What of a picture changes. @param {HTMLElement} stage @param {Frame} frame */
function draw(stage, frame) {
  // on the rows that move alone: a property of the whole stage would have everything in it styled again
  const clip = Number(frame.clip || 100);
  for (const done of /** @type {NodeListOf<HTMLElement>} */ (stage.querySelectorAll(".row > .done"))) {
    done.style.transform = `translateX(${clip - 100}%)`;
    /** @type {HTMLElement} */ (done.firstElementChild).style.transform = `translateX(${100 - clip}%)`;
  }
  if (frame.html) stage.querySelector("[data-frame]").innerHTML = frame.html;
  stage.querySelectorAll("[data-slot]").forEach((slot, index) => {
    write(slot, frame.slots[index]);
  });
}

/** @param {HTMLElement} figure @param {Loaded} known @param {number} at */
function show(figure, known, at) {
  const frame = known.frames[at];
  const steps = known.frames.length - 1;
  draw(figure.querySelector("[data-stage]"), frame);
  figure.querySelector("[data-say]").innerHTML = frame.says;
  figure.querySelectorAll("[data-counter]").forEach((counter, index) => {
    write(counter, frame.counters[index]);
  });
  const range = figure.querySelector("input[data-step]");
  range.value = String(at);
  range.setAttribute(
    "aria-valuetext",
    `Step ${at} of ${steps}. ${figure.querySelector("[data-say]").textContent.trim()}`,
  );
  const segments = figure.querySelectorAll(".segs > i");
  const offset = segments.length > steps ? 0 : 1;
  segments.forEach((each, index) => {
    each.classList.toggle("on", index + offset <= at);
    each.classList.toggle("now", index + offset === at);
  });
  let done = 0;
  figure.querySelectorAll(".ph > span").forEach((each, index) => {
    const first = done;
    done += known.phases[index][1];
    each.classList.toggle("now", (at > first || first === 0) && at <= done);
  });
  figure
    .querySelector("figure")
    .setAttribute("aria-label", `${figure.querySelector("figure").dataset.alt}, step ${at} of ${steps}.`);
  for (const button of figure.querySelectorAll("[data-go]")) {
    button.setAttribute("aria-disabled", String(at === (button.dataset.go === "-1" ? 0 : steps)));
  }
}

/** Lets the chunks that arrived in a frame come from where they were. @param {HTMLElement} figure @param {Frame} frame */
function travel(figure, frame) {
  const cells = figure.querySelector("[data-frame] > .cells");
  if (!cells || !frame.moves.length) return;
  const columns = Number(getComputedStyle(figure).getPropertyValue("--n"));
  const box = cells.getBoundingClientRect();
  const height = 28;
  const layer = document.createElement("div");
  layer.className = "travel";
  for (const [from, to, row] of frame.moves) {
    const chunk = document.createElement("i");
    chunk.style.cssText = `left:${(100 * to) / columns}%;width:${100 / columns}%;top:${cells.offsetTop + row * height}px`;
    layer.append(chunk);
    const far = ((from - to) * box.width) / columns;
    chunk.animate([{ transform: `translateX(${far}px)` }, { transform: "none" }], {
      duration: TRAVEL_MILLISECONDS,
      easing: "cubic-bezier(.2, 0, 0, 1)",
    });
  }
  cells.parentElement.append(layer);
  setTimeout(() => layer.remove(), TRAVEL_MILLISECONDS);
}

/** Another setting: the figure comes anew, as far on as it was. @param {HTMLElement} figure @param {HTMLElement} control */
function turn(figure, control) {
  const mine = asking.get(figure) ?? { turn: 0 };
  asking.set(figure, mine);
  clearTimeout(mine.timer);
  const number = ++mine.turn;
  const output = control.parentElement.querySelector("output");
  if (output) output.value = /** @type {HTMLInputElement} */ (control).value;
  mine.timer = setTimeout(async () => {
    const steps = Number(figure.querySelector("input[data-step]").max);
    const share = steps ? Number(figure.dataset.at) / steps : 1;
    const reply = await fetchFigure(figure);
    if (!reply || mine.turn !== number || !figure.isConnected) return;
    place(figure, reply, Math.round(share * (reply.loaded.frames.length - 1)), control);
  }, WAIT_MILLISECONDS);
}

/** The buttons of a setting show its value. @param {HTMLInputElement} setting */
function press(setting) {
  for (const each of setting.parentElement.querySelectorAll("[data-choose]"))
    each.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (each).dataset.choose === setting.value));
}

function place(figure, { html, loaded: known }, at, control) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const fresh = /** @type {HTMLElement} */ (holder.content.querySelector("[data-player]"));
  const open = figure.querySelector("details").open;
  // the controls stay, so that the one that is dragged keeps the pointer; they show what the figure took
  for (const each of fresh.querySelectorAll("[data-setting]")) {
    const old = figure.querySelector(`[data-setting="${each.dataset.setting}"]`);
    if (old !== control) old.value = each.value;
    press(old);
    const output = old.parentElement.querySelector("output");
    if (output) output.value = each.value;
  }
  figure.querySelector(".top > b").textContent = fresh.querySelector(".top > b").textContent;
  for (const part of ["figure", ".key", ".go", ".say", ".nums", "details"]) {
    figure.querySelector(part).replaceWith(fresh.querySelector(part));
  }
  figure.querySelector("details").open = open;
  figure.style.cssText = fresh.style.cssText;
  figure.classList.remove("few");
  loaded.set(figure, Promise.resolve(known));
  figure.dataset.at = String(at);
  show(figure, known, at);
  if (still.matches) several(figure);
}

/** Where nothing may move, and on paper: some states beside each other. @param {HTMLElement} figure */
async function several(figure) {
  const known = await framesOf(figure);
  if (!known || figure.classList.contains("few")) return;
  const stage = figure.querySelector("[data-stage]");
  const grid = document.createElement("div");
  grid.className = "multi";
  for (const at of known.few) {
    const frame = known.frames[at];
    const one = document.createElement("div");
    const picture = stage.cloneNode(true);
    draw(/** @type {HTMLElement} */ (picture), frame);
    const says = document.createElement("p");
    says.textContent = at === 0 ? "Before" : `Step ${at} of ${known.frames.length - 1}`;
    one.append(says, picture);
    grid.append(one);
  }
  figure.querySelector("figure").append(grid);
  figure.classList.add("few");
  if (!still.matches) return;
  const last = known.frames.length - 1; // where the pictures end, the words and the counters do
  figure.dataset.at = String(last);
  show(figure, known, last);
}

const figureOf = (event) => /** @type {HTMLElement | null} */ (within(event, "[data-player]"));

document.addEventListener("click", (event) => {
  const choice = within(event, "[data-player] [data-choose]");
  if (choice) {
    const setting = /** @type {HTMLInputElement} */ (choice.parentElement.querySelector("[data-setting]"));
    setting.value = choice.dataset.choose;
    press(setting);
    turn(figureOf(event), setting);
    return;
  }
  const button = within(event, "[data-player] [data-go]");
  if (!button) return;
  event.preventDefault();
  const figure = figureOf(event);
  go(figure, (at) => at + Number(button.dataset.go));
});
document.addEventListener("input", (event) => {
  const figure = figureOf(event);
  if (!figure) return;
  const control = /** @type {HTMLInputElement} */ (event.target);
  if (control.matches("[data-step]")) scrub(figure, control);
  else turn(figure, control);
});
document.addEventListener("keydown", (event) => {
  const figure = figureOf(event);
  if (event.key === " " && within(event, "[data-player] [data-go]")) {
    event.preventDefault();
    within(event, "[data-go]").click(); // a link that acts like a button answers to space as well
    return;
  }
  if (!figure || !(event.key in KEYS) || event.altKey || event.ctrlKey || event.metaKey) return;
  const target = /** @type {Element} */ (event.target);
  if (target.matches("[data-setting], [data-choose], input[data-step], .scroll")) return; // they have arrows of their own
  event.preventDefault();
  go(figure, (at) => at + KEYS[event.key]);
});
for (const kind of ["focusin", "pointerover"]) {
  document.addEventListener(kind, (event) => {
    const figure = figureOf(event);
    if (figure) framesOf(figure);
  });
}

const everywhere = () => document.querySelectorAll("[data-player]");
function showFew() {
  for (const figure of everywhere()) if (still.matches) several(figure);
}
showFew();
still.addEventListener("change", showFew);
addEventListener("beforeprint", () => {
  for (const figure of everywhere()) several(figure);
});
document.addEventListener("htmx:after:swap", showFew);
