// Axes placed on a cluster: by keys, by dragging, or by typing degrees. The rows are the answer, the drawing follows.
import { paint } from "./cluster.js";
import { within } from "./dom.js";

const FAR = 6; // px a pointer moves before it drags

/** @param {HTMLElement | null} form */
export function setUpLayout(form) {
  const group = form?.querySelector("[data-layout]");
  if (group) new Placing(/** @type {HTMLElement} */ (group), form);
}

class Placing {
  /**
   * @param {HTMLElement} group
   * @param {HTMLElement} form
   */
  constructor(group, form) {
    this.group = group;
    this.gpus = Number(group.dataset.gpus);
    this.perNode = Number(group.dataset.perNode);
    this.list = group.querySelector(".place-axes");
    this.said = /** @type {HTMLInputElement} */ (group.querySelector("[data-said]"));
    this.divisors = [...Array(this.gpus).keys()].map((each) => each + 1).filter((each) => this.gpus % each === 0);
    this.drag = null;
    for (const each of group.querySelectorAll(".with-script")) each.removeAttribute("hidden");
    for (const each of group.querySelectorAll(".without-script")) each.remove();
    for (const row of this.rows()) this.handle(row);
    for (const each of group.querySelectorAll("[data-degree]")) each.removeAttribute("name");
    this.said.disabled = false;
    group.addEventListener("input", () => this.take());
    group.addEventListener("click", (event) => this.click(event));
    group.addEventListener("keydown", (event) => this.key(event));
    group.addEventListener("pointerdown", (event) => this.grab(event));
    group.addEventListener("pointermove", (event) => this.pull(event));
    group.addEventListener("pointerup", (event) => this.drop(event));
    group.addEventListener("pointercancel", () => this.letGo());
    form.addEventListener("restored", () => this.read(this.said.value));
    this.select(this.rows()[0]);
    this.show();
  }

  /** @returns {HTMLElement[]} */
  rows() {
    return [...this.list.querySelectorAll("li")];
  }

  /** @param {HTMLElement} row @returns {HTMLInputElement} */
  field(row) {
    return row.querySelector("[data-degree]");
  }

  /** @param {HTMLElement} row */
  degree(row) {
    const typed = Number(this.field(row).value.trim());
    return Number.isInteger(typed) && typed > 0 ? typed : 1;
  }

  /** What can be moved has to be reachable by Tab. @param {HTMLElement} row */
  handle(row) {
    const text = row.querySelector("[data-handle]");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "axis";
    button.setAttribute("aria-description", "arrow keys up and down move this axis, left and right set its degree");
    button.append(...text.childNodes);
    text.replaceWith(button);
  }

  /** The axes as they lie: each as far apart as those before it are many. */
  axes() {
    let stride = 1;
    return this.rows().map((row) => {
      const axis = { name: row.dataset.axis, size: this.degree(row), stride };
      stride *= axis.size;
      return axis;
    });
  }

  /** The rows became another answer. @param {HTMLElement} [announced] */
  take(announced) {
    this.said.value = this.rows().every((row) => !this.field(row).value.trim())
      ? ""
      : this.axes()
          .map((axis) => `${axis.name} ${axis.size}`)
          .join(", ");
    this.show(announced);
  }

  /** A change that is not typed: saved at once. @param {HTMLElement} row */
  changed(row) {
    this.take(row);
    this.said.dispatchEvent(new Event("change", { bubbles: true }));
  }

  show(announced) {
    const axes = this.axes();
    paint(this.group, axes, 0);
    const lies = axes.map((axis) => this.lies(axis));
    this.rows().forEach((row, at) => {
      row.querySelector("[data-where]").textContent = axes[at].size > 1 ? lies[at] : "";
    });
    const split = axes.filter((axis) => axis.size > 1);
    const product = split.reduce((whole, axis) => whole * axis.size, 1);
    const factors = split.map((axis) => `${axis.name} ${axis.size}`).join(" × ") || "Nothing is split";
    const moved = announced ? `${announced.dataset.axis} is ${this.rows().indexOf(announced) + 1} of 4. ` : "";
    const sum = `${factors} = ${product.toLocaleString("en")} of ${this.gpus.toLocaleString("en")} GPUs`;
    const status = this.group.querySelector("[data-sum]");
    status.textContent = split.length ? sum : "";
    if (moved) status.setAttribute("aria-label", moved + sum);
    else status.removeAttribute("aria-label");
    const said = axes.filter((axis) => axis.size > 1).map((axis) => `${axis.name} ${axis.size}: ${this.lies(axis)}.`);
    this.group.querySelector(".nodes").setAttribute("aria-label", said.join(" ") || "Nothing is placed yet.");
  }

  lies(axis) {
    const ranks = [...Array(Math.min(axis.size, 100000)).keys()].map((each) => each * axis.stride);
    const nodes = new Set(ranks.map((rank) => Math.floor(rank / this.perNode))).size;
    return nodes === 1 ? "within a node" : `over ${nodes.toLocaleString("en")} nodes`;
  }

  /** Rows as a saved answer says. @param {string} text */
  read(text) {
    for (const [, name, degree] of text.matchAll(/([a-z]+)\s(\d+)/g)) {
      const row = this.rows().find((each) => each.dataset.axis === name);
      if (!row) continue;
      this.field(row).value = degree;
      this.list.append(row);
    }
    this.show();
  }

  /** @param {HTMLElement} chosen */
  select(chosen) {
    this.selected = chosen;
    for (const row of this.rows()) row.querySelector(".axis").setAttribute("aria-pressed", String(row === chosen));
  }

  click(event) {
    const move = within(event, "[data-move]");
    if (move) this.move(move.closest("li"), Number(move.dataset.move), move);
    const axis = within(event, ".axis");
    if (axis) this.select(axis.closest("li"));
    const rank = this.rankAt(event.target);
    if (rank !== null) this.reach(this.selected, rank);
  }

  key(event) {
    const handle = within(event, ".axis");
    if (!handle || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = handle.closest("li");
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by) this.move(row, by, handle);
    else if (step) this.set(row, this.near(row, step));
    else if (event.key === "Home") this.set(row, 1);
    else if (event.key === "End") this.set(row, this.rest(row));
    else return;
    event.preventDefault();
  }

  /** The next degree up or down that divides the GPUs. */
  near(row, step) {
    const now = this.degree(row);
    const found = step > 0 ? this.divisors.find((each) => each > now) : this.divisors.findLast((each) => each < now);
    return found ?? now;
  }

  /** What the other axes leave. */
  rest(row) {
    const others = this.rows().filter((each) => each !== row);
    return Math.max(
      1,
      Math.floor(this.gpus / others.map((each) => this.degree(each)).reduce((product, each) => product * each, 1)),
    );
  }

  set(row, degree) {
    this.field(row).value = String(degree);
    this.select(row);
    this.changed(row);
  }

  move(row, by, focused) {
    const other = by < 0 ? row.previousElementSibling : row.nextElementSibling;
    if (!other) return;
    if (by < 0) other.before(row);
    else other.after(row);
    focused.focus(); // moving a node in the page takes its focus away
    this.select(row);
    this.changed(row);
  }

  /** The GPU at a place of the drawing: of a node its last one; all that are left for the nodes that are not drawn. */
  rankAt(target) {
    if (!(target instanceof Element) || !this.group.contains(target)) return null;
    const gpus = [...this.group.querySelectorAll(".gpu")];
    const gpu = target.closest(".gpu") ?? target.closest(".node")?.querySelector(".gpu:last-child");
    if (gpu) return gpus.indexOf(gpu);
    return target.closest("[data-more]") ? this.gpus - 1 : null;
  }

  /** The degree with which the group of GPU 0 reaches up to `rank`: one that divides the GPUs. */
  reaching(row, rank) {
    const stride = this.axes().find((axis) => axis.name === row.dataset.axis).stride;
    const most = Math.floor(rank / stride) + 1;
    return this.divisors.findLast((each) => each <= most) ?? 1;
  }

  reach(row, rank) {
    this.set(row, this.reaching(row, rank));
  }

  grab(event) {
    const handle = within(event, ".axis");
    if (!handle || event.button) return;
    this.drag = { row: handle.closest("li"), x: event.clientX, y: event.clientY, moved: false };
  }

  pull(event) {
    if (!this.drag) return;
    const { row, x, y } = this.drag;
    if (!this.drag.moved && Math.hypot(event.clientX - x, event.clientY - y) < FAR) return;
    if (!this.drag.moved) this.group.setPointerCapture(event.pointerId);
    this.drag.moved = true;
    this.group.classList.add("dragging");
    const { rank, over } = this.under(event);
    for (const each of this.rows()) each.classList.toggle("over", each === over && each !== row);
    const last = rank === null ? -1 : this.reaching(row, rank);
    const axis = this.axes().find((each) => each.name === row.dataset.axis);
    this.group.querySelectorAll(".gpu").forEach((gpu, at) => {
      const place = at / axis.stride;
      gpu.classList.toggle("reached", Number.isInteger(place) && place < last);
    });
  }

  /** What is under a pointer: a GPU of the drawing, or a row. */
  under(event) {
    const target = document.elementFromPoint(event.clientX, event.clientY);
    const over = /** @type {HTMLElement | null} */ (target?.closest(".place-axes > li"));
    return { rank: this.rankAt(target), over: over && this.group.contains(over) ? over : null };
  }

  drop(event) {
    const drag = this.drag;
    this.letGo();
    if (!drag?.moved) return;
    const { rank, over } = this.under(event);
    if (rank !== null) this.reach(drag.row, rank);
    else if (over && over !== drag.row) {
      const rows = this.rows();
      if (rows.indexOf(over) < rows.indexOf(drag.row)) over.before(drag.row);
      else over.after(drag.row);
      this.select(drag.row);
      this.changed(drag.row);
    }
  }

  letGo() {
    this.drag = null;
    this.group.classList.remove("dragging");
    for (const each of this.group.querySelectorAll(".over, .reached")) each.classList.remove("over", "reached");
  }
}
