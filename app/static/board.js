// A whiteboard beside an answer in words. What stands on it is data: items on cells, and arrows between them.
import { within } from "./dom.js";

const COLUMNS = 12;
const ROWS = 12;
const WIDE = 3;
const HIGH = 2;
const ROOM = 3; // cells that a label takes on a line
const OVER = HIGH / 2 + 0.35; // from the middle of a box to what stands over it
const MOST_ITEMS = 24;
const MOST_ARROWS = 40;
const FAR = 5; // px a pointer moves before it drags
const MOST_UNDONE = 100;

/**
 * @typedef {{ id: string, kind?: string, x: number, y: number, label?: string }} Item
 * @typedef {{ start: string, end: string, label?: string }} Arrow
 */

/** @param {HTMLElement | null} form */
export function setUpBoard(form) {
  const group = form?.querySelector("[data-board]");
  return group ? new Board(/** @type {HTMLElement} */ (group), form) : null;
}

/**
 * From the side of one item to the facing side of the other; app/interview/boards.py draws the same.
 * @param {Item} start
 * @param {Item} end
 */
function route(start, end) {
  if (Math.abs(end.x - start.x) >= WIDE) {
    const right = end.x > start.x;
    const [ax, ay] = [start.x + (right ? WIDE : 0), start.y + HIGH / 2];
    const [bx, by] = [end.x + (right ? 0 : WIDE), end.y + HIGH / 2];
    const half = (ax + bx) / 2;
    return {
      points: [
        [ax, ay],
        [half, ay],
        [half, by],
        [bx, by],
      ],
      way: right ? "right" : "left",
    };
  }
  const down = end.y > start.y;
  const [ax, ay] = [start.x + WIDE / 2, start.y + (down ? HIGH : 0)];
  const [bx, by] = [end.x + WIDE / 2, end.y + (down ? 0 : HIGH)];
  const half = (ay + by) / 2;
  return {
    points: [
      [ax, ay],
      [ax, half],
      [bx, half],
      [bx, by],
    ],
    way: down ? "down" : "up",
  };
}

/** Where a label stands, as there: in the middle, or over the boxes where a short straight line has no room for it. */
function spot(points, way) {
  const [[ax, ay], [bx, by]] = [points[0], points[3]];
  const [x, y] = [(ax + bx) / 2, (ay + by) / 2];
  const beside = (way === "down" || way === "up") && ax === bx;
  const isShort = !beside && (way === "right" || way === "left") && ay === by && Math.abs(bx - ax) < ROOM;
  return { x, y: isShort ? (y > OVER ? y - OVER : y + OVER) : y, beside };
}

/** @param {HTMLElement} element @param {number} x @param {number} y */
function put(element, x, y) {
  element.style.setProperty("--x", String(x));
  element.style.setProperty("--y", String(y));
}

class Board {
  /**
   * @param {HTMLElement} group
   * @param {HTMLElement} form
   */
  constructor(group, form) {
    this.group = group;
    this.field = /** @type {HTMLInputElement} */ (group.querySelector("[data-drawn]"));
    this.surface = /** @type {HTMLElement} */ (group.querySelector("[data-surface]"));
    this.label = /** @type {HTMLInputElement} */ (group.querySelector("[data-label]"));
    this.field.disabled = false;
    this.before = [];
    this.chosen = null; // the id of an item, or the place of an arrow
    this.from = null; // the item that an arrow is to start at
    this.drag = null;
    this.read();
    for (const each of group.querySelectorAll(".with-script")) each.removeAttribute("hidden");
    group.addEventListener("click", (event) => this.click(event));
    group.addEventListener("keydown", (event) => this.key(event));
    this.label.addEventListener("input", (event) => this.type(event));
    this.label.addEventListener("change", (event) => event.stopPropagation());
    this.surface.addEventListener("pointerdown", (event) => this.grab(event));
    this.surface.addEventListener("pointermove", (event) => this.pull(event));
    this.surface.addEventListener("pointerup", () => this.drop());
    this.surface.addEventListener("pointercancel", () => this.drop());
    form.addEventListener("restored", () => this.read());
  }

  read() {
    const said = JSON.parse(this.field.value || "{}");
    /** @type {Item[]} */
    this.items = said.items ?? [];
    /** @type {Arrow[]} */
    this.arrows = said.arrows ?? [];
    this.show();
  }

  text() {
    if (!this.items.length) return "";
    return JSON.stringify({ items: this.items, ...(this.arrows.length ? { arrows: this.arrows } : {}) });
  }

  /** Something is about to change: what stands there can be had back. */
  keep() {
    this.before.push(this.text());
    if (this.before.length > MOST_UNDONE) this.before.shift();
  }

  changed(told = "") {
    this.field.value = this.text();
    this.show();
    this.tell(told);
    this.field.dispatchEvent(new Event("change", { bubbles: true })); // saved at once
  }

  tell(told) {
    this.group.querySelector("[data-told]").textContent = told;
  }

  item(id) {
    return this.items.find((each) => each.id === id);
  }

  thing() {
    return typeof this.chosen === "number" ? this.arrows[this.chosen] : this.item(this.chosen);
  }

  called(item) {
    return item?.label || "a box";
  }

  show() {
    const focused = this.surface.contains(document.activeElement) ? this.chosen : null;
    const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    lines.setAttribute("viewBox", `0 0 ${COLUMNS} ${ROWS}`);
    lines.setAttribute("preserveAspectRatio", "none");
    lines.setAttribute("aria-hidden", "true");
    const found = this.arrows.flatMap((arrow, at) => this.drawnArrow(arrow, at, lines));
    this.surface.replaceChildren(lines, ...found, ...this.items.map((item) => this.drawnItem(item)));
    const says = this.group.querySelector("[data-says]");
    says.replaceChildren(
      ...this.says().map((said) => Object.assign(document.createElement("li"), { textContent: said })),
    );
    const thing = this.thing();
    if (document.activeElement !== this.label) this.label.value = thing?.label ?? "";
    this.label.disabled = !thing;
    for (const name of ["arrow", "delete"]) this.tool(name).disabled = !thing;
    this.tool("arrow").disabled = typeof this.chosen === "number" || !thing;
    this.tool("undo").disabled = !this.before.length;
    this.tool("arrow").setAttribute("aria-pressed", String(this.from !== null));
    if (focused !== null) this.focus();
  }

  tool(name) {
    return /** @type {HTMLButtonElement} */ (this.group.querySelector(`[data-do="${name}"]`));
  }

  drawnArrow(arrow, at, lines) {
    const { points, way } = route(this.item(arrow.start), this.item(arrow.end));
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    line.setAttribute("points", points.map((point) => point.join(",")).join(" "));
    lines.append(line);
    const head = document.createElement("i");
    head.className = `head ${way}`;
    put(head, points[3][0], points[3][1]);
    const { x, y, beside } = spot(points, way);
    const classes = `line-label ${beside ? "beside" : ""} ${this.chosen === at ? "chosen" : ""}`;
    const label = this.button(classes, arrow.label ?? "");
    label.dataset.arrow = String(at);
    const name = `Arrow from ${this.called(this.item(arrow.start))} to ${this.called(this.item(arrow.end))}`;
    label.setAttribute("aria-label", arrow.label ? `${name}: ${arrow.label}` : name);
    put(label, x, y);
    return [head, label];
  }

  drawnItem(item) {
    const button = this.button(
      `item ${item.kind ?? "box"} ${this.chosen === item.id ? "chosen" : ""}`,
      item.label ?? "",
    );
    button.dataset.item = item.id;
    button.setAttribute("aria-label", `${item.kind === "text" ? "Text" : "Box"}: ${item.label || "no label yet"}`);
    put(button, item.x, item.y);
    return button;
  }

  button(name, text) {
    return Object.assign(document.createElement("button"), { type: "button", className: name, textContent: text });
  }

  /** What it says, as the server hears it. */
  says() {
    const joined = new Set(this.arrows.flatMap((arrow) => [arrow.start, arrow.end]));
    const arrows = this.arrows.map((arrow) => {
      const ends = `${this.called(this.item(arrow.start))} → ${this.called(this.item(arrow.end))}`;
      return arrow.label ? `${ends}: ${arrow.label}` : ends;
    });
    const alone = this.items.filter((item) => !joined.has(item.id) && item.label).map((item) => item.label);
    return [...arrows, ...alone].map((said) => (/[.?!]$/.test(said) ? said : `${said}.`));
  }

  focus() {
    const selector = typeof this.chosen === "number" ? `[data-arrow="${this.chosen}"]` : `[data-item="${this.chosen}"]`;
    /** @type {HTMLElement | null} */ (this.surface.querySelector(selector))?.focus();
  }

  choose(what) {
    this.chosen = what;
    this.show();
  }

  click(event) {
    const tool = within(event, "[data-do]");
    if (tool) {
      this.do(tool.dataset.do);
      return;
    }
    const arrow = within(event, "[data-arrow]");
    if (arrow) this.choose(Number(arrow.dataset.arrow));
    const item = within(event, "[data-item]");
    if (!item) return;
    if (this.from && this.from !== item.dataset.item) {
      this.join(item.dataset.item);
      return;
    }
    this.choose(item.dataset.item);
    this.focus();
  }

  do(what) {
    if (what === "box" || what === "text") this.add(what);
    else if (what === "arrow") this.begin();
    else if (what === "delete") this.remove();
    else this.undo();
  }

  add(kind) {
    const place = this.free();
    if (!place || this.items.length >= MOST_ITEMS) {
      this.tell("The board is full.");
      return;
    }
    this.keep();
    const used = new Set(this.items.map((each) => each.id));
    let number = 1;
    while (used.has(`b${number}`)) number += 1;
    this.items.push({ id: `b${number}`, ...(kind === "text" ? { kind } : {}), ...place });
    this.chosen = `b${number}`;
    this.changed(`${kind === "text" ? "Text" : "Box"} added.`);
    this.label.focus();
  }

  /** The first place where nothing stands, with room around it. */
  free() {
    for (const step of [WIDE + 2, WIDE + 1, 1])
      for (let y = 1; y <= ROWS - HIGH; y += Math.min(step, HIGH + 1))
        for (let x = 1; x <= COLUMNS - WIDE; x += step)
          if (this.items.every((each) => Math.abs(each.x - x) >= WIDE || Math.abs(each.y - y) >= HIGH)) return { x, y };
    return null;
  }

  begin() {
    this.from = this.from === null && typeof this.chosen === "string" ? this.chosen : null;
    this.show();
    this.tell(this.from ? "Choose where the arrow goes." : "No arrow.");
  }

  join(end) {
    const start = this.from;
    this.from = null;
    if (this.arrows.length >= MOST_ARROWS || this.arrows.some((each) => each.start === start && each.end === end)) {
      this.tell("There is that arrow already, or too many.");
      this.choose(end);
      return;
    }
    this.keep();
    this.arrows.push({ start, end });
    this.chosen = this.arrows.length - 1;
    this.changed(`Arrow from ${this.called(this.item(start))} to ${this.called(this.item(end))}. Type its label.`);
    this.label.focus();
  }

  remove() {
    if (!this.thing()) return;
    this.keep();
    if (typeof this.chosen === "number") this.arrows.splice(this.chosen, 1);
    else {
      this.items = this.items.filter((each) => each.id !== this.chosen);
      this.arrows = this.arrows.filter((each) => each.start !== this.chosen && each.end !== this.chosen);
    }
    this.chosen = this.items.at(-1)?.id ?? null;
    this.from = null;
    this.changed("Deleted.");
    this.focus();
  }

  undo() {
    const before = this.before.pop();
    if (before === undefined) return;
    this.field.value = before;
    this.chosen = null;
    this.from = null;
    this.read();
    this.changed("Undone.");
  }

  /** A label is saved like words: a while after the last key. */
  type(event) {
    const thing = this.thing();
    if (!thing) return;
    if (event.inputType !== this.typing) this.keep();
    this.typing = event.inputType;
    thing.label = this.label.value;
    this.field.value = this.text();
    this.show();
  }

  key(event) {
    if (event.target === this.label) {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
      event.preventDefault(); // it would give the answer
      this.typing = null;
      this.focus();
      return;
    }
    if (event.key === "z" && (event.ctrlKey || event.metaKey)) this.undo();
    else if (!within(event, "[data-surface]") || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (!this.keyed(event)) return;
    event.preventDefault();
  }

  /** A key at an item or an arrow; whether it means something there. */
  keyed(event) {
    const at = within(event, "[data-item], [data-arrow]");
    if (!at) return false;
    const what = at.dataset.item ?? Number(at.dataset.arrow);
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    const item = this.item(what);
    if (dx !== undefined && item) {
      this.chosen = what;
      this.keep();
      this.move(item, item.x + dx, item.y + dy);
      this.changed(`${this.called(item)} at column ${item.x + 1}, row ${item.y + 1}.`);
    } else if (event.key === "Enter" && this.from && item && this.from !== what) this.join(what);
    else if (event.key === "Enter") {
      this.choose(what);
      this.label.focus();
    } else if (event.key === "c" && item) {
      this.chosen = what;
      this.begin();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.chosen = what;
      this.remove();
    } else if (event.key === "Escape" && this.from) this.begin();
    else return false;
    return true;
  }

  move(item, x, y) {
    item.x = Math.max(0, Math.min(COLUMNS - WIDE, Math.round(x)));
    item.y = Math.max(0, Math.min(ROWS - HIGH, Math.round(y)));
  }

  grab(event) {
    const at = within(event, "[data-item]");
    if (!at || event.button || this.from) return;
    const item = this.item(at.dataset.item);
    this.drag = { item, x: event.clientX, y: event.clientY, left: item.x, top: item.y, moved: false };
  }

  pull(event) {
    const drag = this.drag;
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < FAR) return;
    if (!drag.moved) {
      this.keep();
      this.chosen = drag.item.id;
      this.surface.setPointerCapture(event.pointerId);
    }
    drag.moved = true;
    const box = this.surface.getBoundingClientRect();
    this.move(drag.item, drag.left + (dx / box.width) * COLUMNS, drag.top + (dy / box.height) * ROWS);
    this.show();
  }

  drop() {
    const drag = this.drag;
    this.drag = null;
    if (drag?.moved) this.changed(`${this.called(drag.item)} moved.`);
  }
}
