// One step of a run as film: a playhead over the lanes of all ranks, moved by keys or by dragging. What it stands on is
// lit everywhere at once: the collective on every rank, what it holds in memory, its row here and in the ledger, and a
// sentence. Everything is drawn and said by the server; another rank's reel is fetched when it is asked for.
import { within } from "./dom.js";
import { quantityText } from "./units.js";

/**
 * Something a rank did, in milliseconds of the step.
 * @typedef {object} Moment
 * @property {string} key the same on all ranks of a collective
 * @property {string} kind
 * @property {string} name
 * @property {number} start
 * @property {number} end
 * @property {string} says
 * @property {string} ledger its row in the ledger: operation, phase and group
 * @property {[number, string, string][]} on rank, from and width in percent
 * @property {string} bump the outline of what it holds
 * @property {string} sent what this rank has sent by its end
 */

/**
 * One rank. `held` has the bytes of each component from each moment of `at` (milliseconds) on.
 * @typedef {object} Reel
 * @property {number} rank
 * @property {string} name
 * @property {string} still
 * @property {number} first
 * @property {[string, string]} theory where the model state stands by theory, in percent, and how that is said
 * @property {Moment[]} moments
 * @property {number[]} at
 * @property {number[][]} held
 */

/**
 * A reel and what of it the server has drawn.
 * @typedef {{ reel: Reel, held: string, says: string, rows: string }} Fetched
 */

const SWIPE_PIXELS = 60;
const STEPS = { ArrowRight: 1, ArrowLeft: -1 };
const COMPONENTS = ["parameters", "gradients", "optimizer", "activations", "temporary"];

/** @param {ParentNode} scope */
export function setUpFilms(scope) {
  for (const each of scope.querySelectorAll("[data-film]:not([data-ready])")) {
    new Film(/** @type {HTMLElement} */ (each));
  }
}

class Film {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    root.dataset.ready = "yes";
    this.end = Number(root.dataset.milliseconds);
    this.most = Number(root.dataset.most);
    const units = JSON.parse(root.dataset.units);
    this.said = (bytes) => quantityText(bytes, units);
    const places = Number(root.dataset.decimals);
    const written = new Intl.NumberFormat("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
    this.ms = (/** @type {number} */ time) => written.format(time);
    this.strip = /** @type {HTMLElement} */ (root.querySelector("[data-reel]"));
    this.head = /** @type {HTMLElement} */ (root.querySelector("[data-head]"));
    this.lanes = [.../** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-rank]"))];
    /** @type {Map<number, Fetched>} */
    this.fetched = new Map();
    /** @type {Reel} */
    this.reel = JSON.parse(root.querySelector("[data-events]").textContent);
    this.fetched.set(this.reel.rank, {
      reel: this.reel,
      held: root.querySelector("[data-held]")?.innerHTML ?? "",
      says: root.querySelector("[data-memory]")?.getAttribute("aria-label") ?? "",
      rows: root.querySelector("[data-rows]").innerHTML,
    });
    this.moment = this.reel.moments[this.reel.first];
    this.wanted = this.reel.rank;
    this.frame = 0;
    this.parts = Object.fromEntries(
      ["name", "when", "says", "sent", "now", "bump", "rows"].map((name) => [
        name,
        root.querySelector(`[data-${name}]`),
      ]),
    );
    this.holds = [...COMPONENTS, "total"].map((name) => root.querySelector(`[data-held-of="${name}"]`));
    this.listen();
    this.show(this.moment);
    if (matchMedia("(min-width: 721px)").matches) root.querySelector("details").open = true;
  }

  listen() {
    this.strip.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("click", (event) => {
      const step = within(event, "[data-step]");
      const pick = within(event, "[data-pick]");
      const row = within(event, "tr[data-key]");
      if (step) this.step(Number(step.dataset.step), event.shiftKey);
      else if (pick) this.choose(Number(pick.dataset.pick));
      else if (row) this.showKey(row.dataset.key);
    });
    this.drag();
    this.swipe();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const moments = this.reel.moments;
    if (event.key in STEPS) this.step(STEPS[event.key], event.shiftKey);
    else if (event.key === "ArrowDown") this.choose(this.reel.rank + 1);
    else if (event.key === "ArrowUp") this.choose(this.reel.rank - 1);
    else if (event.key === "Home") this.show(moments[0]);
    else if (event.key === "End") this.show(moments[moments.length - 1]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  drag() {
    let held = false;
    this.strip.addEventListener("pointerdown", (event) => {
      const lane = within(event, "[data-rank]");
      held = true;
      this.strip.setPointerCapture(event.pointerId);
      const at = this.timeAt(event);
      this.choose(lane ? Number(lane.dataset.rank) : this.reel.rank, () => this.showAt(at, this.onTransfer(event)));
    });
    this.strip.addEventListener("pointermove", (event) => {
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => {
        if (held) this.showAt(this.timeAt(event), false);
        else if (event.pointerType === "mouse") this.hover(event);
      });
    });
    for (const end of ["pointerup", "pointercancel"]) this.strip.addEventListener(end, () => (held = false));
  }

  /** Lights the collective below the pointer, on whichever rank. @param {PointerEvent} event */
  hover(event) {
    const lane = within(event, "[data-rank]");
    if (!lane || !this.onTransfer(event)) return;
    const at = this.timeAt(event);
    this.choose(Number(lane.dataset.rank), () => {
      const found = this.reel.moments.find(
        (each) => each.kind === "communication" && each.start <= at && at < each.end,
      );
      if (found && found !== this.moment) this.show(found);
    });
  }

  swipe() {
    const caption = /** @type {HTMLElement} */ (this.root.querySelector(".caption"));
    let from = null;
    caption.addEventListener("pointerdown", (event) => {
      from = event.pointerType === "touch" ? event.clientX : null;
    });
    caption.addEventListener("pointerup", (event) => {
      if (from !== null && Math.abs(event.clientX - from) > SWIPE_PIXELS) {
        this.choose(this.reel.rank + (event.clientX < from ? 1 : -1));
      }
      from = null;
    });
  }

  /** Whether the pointer is in the lower part of a lane, where collectives are. @param {PointerEvent} event */
  onTransfer(event) {
    const box = within(event, ".lanebox")?.getBoundingClientRect();
    return box !== undefined && event.clientY > box.top + box.height * 0.7;
  }

  /** @param {PointerEvent} event */
  timeAt(event) {
    const box = this.root.querySelector(".lanebox svg").getClientRects()[0] ?? this.laneBox();
    return Math.min(this.end, Math.max(0, ((event.clientX - box.left) / box.width) * this.end));
  }

  laneBox() {
    return this.root.querySelector(".rk.cur .lanebox").getBoundingClientRect();
  }

  /** @param {number} by @param {boolean} onlyTransfers */
  step(by, onlyTransfers) {
    const all = this.reel.moments;
    let index = all.indexOf(this.moment) + by;
    while (onlyTransfers && all[index] && all[index].kind !== "communication") index += by;
    if (all[index]) this.show(all[index]);
  }

  /** @param {string} key */
  showKey(key) {
    const found = this.reel.moments.find((each) => each.key === key);
    if (found) this.show(found);
  }

  /** @param {number} at milliseconds @param {boolean} transfer whether a collective is meant before a pass */
  showAt(at, transfer) {
    const here = this.reel.moments.filter((each) => each.start <= at && at < each.end);
    const found =
      here.find((each) => (each.kind === "communication") === transfer) ??
      here[0] ??
      this.reel.moments.reduce((best, each) => (Math.abs(each.start - at) < Math.abs(best.start - at) ? each : best));
    this.show(found, at);
  }

  /**
   * Puts a rank into the reel, then does what was wanted of it, unless another one was asked for meanwhile.
   * @param {number} rank
   * @param {() => void} then
   */
  async choose(rank, then = () => this.again()) {
    if (rank < 0 || rank >= this.lanes.length) return;
    this.wanted = rank;
    if (rank !== this.reel.rank) {
      const fetched = this.fetched.get(rank) ?? (await this.fetch(rank));
      if (!fetched || this.wanted !== rank) return;
      this.place(fetched);
    }
    then();
  }

  /** The same collective or pass on the rank that is in the reel now; where it has none, the nearest in time. */
  again() {
    const same = this.reel.moments.find((each) => each.key === this.moment.key);
    if (same) this.show(same);
    else this.showAt(this.moment.start, this.moment.kind === "communication");
  }

  /** @param {number} rank @returns {Promise<Fetched | null>} null when the server does not answer */
  async fetch(rank) {
    const reply = await fetch(this.root.dataset.film + rank, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!reply?.ok) return null;
    const holder = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fetched = {
      reel: JSON.parse(holder.querySelector("[data-events]").textContent),
      held: holder.querySelector("[data-held]").innerHTML,
      says: holder.querySelector("[data-memory-says]").textContent,
      rows: holder.querySelector("[data-rows]").innerHTML,
    };
    this.fetched.set(rank, fetched);
    return fetched;
  }

  /** @param {Fetched} fetched */
  place({ reel, held, says, rows }) {
    this.reel = reel;
    const memory = this.root.querySelector("[data-memory]");
    if (memory) {
      memory.querySelector("[data-held]").innerHTML = held;
      memory.setAttribute("aria-label", says);
    }
    const level = this.root.querySelector(".mem .level");
    level?.style.setProperty("--y", `${reel.theory[0]}%`);
    if (level) this.root.querySelector("[data-theory]").textContent = reel.theory[1];
    this.parts.rows.innerHTML = rows;
    this.root.querySelector("[data-count]").textContent = String(this.parts.rows.children.length);
    this.root.querySelector("[data-of]").textContent = reel.name.toLowerCase();
    this.strip.setAttribute("aria-label", `Playhead, ${reel.name}`);
    for (const lane of this.lanes) lane.classList.toggle("cur", Number(lane.dataset.rank) === reel.rank);
    for (const button of this.root.querySelectorAll("[data-pick]")) {
      button.setAttribute(
        "aria-pressed",
        String(Number(/** @type {HTMLElement} */ (button).dataset.pick) === reel.rank),
      );
    }
  }

  /**
   * @param {Moment} moment
   * @param {number} [at] milliseconds; else where a collective has its result, or anything else begins
   */
  show(moment, at) {
    const time = at ?? (moment.kind === "communication" ? Math.max(moment.start, moment.end - 0.05) : moment.start);
    this.moveHead(time);
    if (moment !== this.moment || !this.root.dataset.shown) this.light(moment);
    const total = this.showHeld(time);
    this.strip.setAttribute("aria-valuenow", String(Math.round(time)));
    const alive = total === null ? "" : ` ${this.said(total)} alive.`;
    this.strip.setAttribute("aria-valuetext", `${this.ms(time)} ms, ${moment.name}.${alive} ${moment.says}`);
  }

  /** @param {number} time */
  moveHead(time) {
    const share = time / this.end;
    this.head.style.setProperty("--x", `${100 * share}%`);
    this.head.classList.toggle("l", share < 0.06);
    this.head.classList.toggle("rr", share > 0.94);
    this.head.firstElementChild.textContent = `${this.ms(time)} ms`;
  }

  /** @param {Moment} moment */
  light(moment) {
    this.moment = moment;
    this.root.dataset.shown = moment.key;
    const on = new Map(moment.on.map(([rank, x, width]) => [rank, [x, width]]));
    const own = [`${(100 * moment.start) / this.end}`, `${(100 * (moment.end - moment.start)) / this.end}`];
    for (const lane of this.lanes) {
      const rank = Number(lane.dataset.rank);
      const mark = /** @type {HTMLElement} */ (lane.querySelector(".on"));
      const place = on.get(rank) ?? (rank === this.reel.rank ? own : null);
      mark.hidden = place === null;
      mark.classList.toggle("pass", moment.kind !== "communication");
      if (place) {
        mark.style.setProperty("--x", `${place[0]}%`);
        mark.style.setProperty("--w", `${place[1]}%`);
      }
    }
    this.parts.bump?.setAttribute("d", moment.bump);
    this.parts.name.textContent = moment.name;
    this.parts.when.textContent = `${this.reel.name}, ${this.ms(moment.start)} to ${this.ms(moment.end)} ms`;
    this.parts.says.textContent = moment.says;
    if (this.parts.sent) this.parts.sent.textContent = moment.sent;
    for (const row of this.parts.rows.querySelectorAll("tr")) {
      const chosen = row.dataset.key === moment.key;
      row.classList.toggle("sel", chosen);
      if (chosen) reveal(row);
    }
    for (const row of document.querySelectorAll("[data-ledger]")) {
      row.classList.toggle("sel", /** @type {HTMLElement} */ (row).dataset.ledger === moment.ledger);
    }
  }

  /** What is held at a time, and how much that is in all. @param {number} time @returns {number | null} */
  showHeld(time) {
    if (!this.reel.at.length || !this.parts.now) return null;
    const held = this.reel.held[Math.max(0, after(this.reel.at, time) - 1)];
    const total = held.reduce((sum, each) => sum + each, 0);
    [...held, total].forEach((size, index) => {
      this.holds[index].textContent = this.said(size);
    });
    this.parts.now.textContent = this.said(total);
    this.parts.now.style.setProperty("--y", `${(100 * total) / this.most}%`);
    return total;
  }
}

/** How many of the ascending `values` are at most `limit`. @param {number[]} values @param {number} limit */
function after(values, limit) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Scrolls a row into sight within its own table, never the page. @param {HTMLElement} row */
function reveal(row) {
  const box = /** @type {HTMLElement} */ (row.closest(".rows-of"));
  const top = row.offsetTop - 40;
  if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 90) box.scrollTop = top - 60;
}
