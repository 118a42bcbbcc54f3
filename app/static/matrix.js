// The grid of strategies: arrows walk its cells, the chosen one is told beside it, and the address says what is shown.
import { within } from "./dom.js";

const grid = /** @type {HTMLTableElement} */ (document.querySelector("[data-matrix]"));
const one = document.querySelector("[data-one]");
const count = document.querySelector("[data-count]");
const none = /** @type {HTMLElement} */ (document.querySelector("[data-none]"));
const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-find]"));
const sought = /** @type {HTMLInputElement} */ (form.querySelector("[name=find]"));
const kept = /** @type {HTMLInputElement} */ (form.querySelector("[name=show]"));
const shownAtFirst = count.textContent;
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

const lines = () => /** @type {HTMLTableRowElement[]} */ ([...grid.tBodies[0].rows]).filter((line) => !line.hidden);
const cellAt = (line, column) => line?.cells[column]?.querySelector("a.c");

// Whoever does not see the grid hears of each cell what it is a cell of.
const columns = [...grid.tHead.rows[1].cells].map((head) => head.textContent.trim());
for (const cell of grid.querySelectorAll("a.c")) {
  const place = /** @type {HTMLTableCellElement} */ (cell.parentElement);
  const line = place.parentElement.querySelector("th").textContent.replace(/\s+/g, " ").trim();
  cell.setAttribute("aria-label", `${line}, ${columns[place.cellIndex]}: ${cell.textContent}`);
}

function address(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.replaceState(history.state, "", `?${query}`);
}

// Only what was chosen last is told.
let turn = 0;
let timer = 0;

async function tell(query) {
  const mine = ++turn;
  const reply = await fetch(`/lab/strategies?${query}`, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (mine !== turn) return;
  if (reply?.ok) one.innerHTML = await reply.text();
  else one.textContent = "The server does not answer. Choose the cell again.";
}

function choose(cell) {
  const before = grid.querySelector('[aria-selected="true"]');
  before?.removeAttribute("aria-selected");
  before?.querySelector("a")?.setAttribute("tabindex", "-1");
  cell.parentElement.setAttribute("aria-selected", "true");
  cell.setAttribute("tabindex", "0");
  cell.focus();
  const query = new URL(cell.href).searchParams;
  address(Object.fromEntries(query));
  clearTimeout(timer);
  timer = window.setTimeout(() => tell(query), 60);
}

// Cells that say nothing are stepped over.
function next(cell, [down, right]) {
  const shown = lines();
  let line = shown.indexOf(cell.closest("tr"));
  let column = cell.parentElement.cellIndex;
  do {
    line += down;
    column += right;
  } while (shown[line] && column > 0 && column < shown[line].cells.length && !cellAt(shown[line], column));
  return cellAt(shown[line], column);
}

function end(cell, last) {
  const found = [...cell.closest("tr").querySelectorAll("a.c")];
  return last ? found.at(-1) : found[0];
}

grid.addEventListener("keydown", (event) => {
  const cell = within(event, "a.c");
  if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
  const isEdge = event.key === "Home" || event.key === "End";
  const found = isEdge ? end(cell, event.key === "End") : MOVES[event.key] && next(cell, MOVES[event.key]);
  if (isEdge || MOVES[event.key]) event.preventDefault();
  if (found) choose(found);
});

grid.addEventListener("click", (event) => {
  const cell = within(event, "a.c");
  if (!cell || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(cell);
});

// The tab stop has to be in sight: a filter may hide the chosen line.
function narrow() {
  const words = sought.value.toLowerCase().replaceAll(",", " ").split(/\s+/).filter(Boolean);
  for (const line of grid.tBodies[0].rows) {
    line.hidden = !words.every((word) => line.dataset.line.includes(word));
  }
  const shown = lines();
  const state = grid.dataset.show;
  const cells = shown.reduce(
    (sum, line) => sum + line.querySelectorAll(state === "all" ? ".c" : `.c.${state}`).length,
    0,
  );
  count.textContent = words.length || state !== "all" ? `${cells} shown` : shownAtFirst;
  none.hidden = shown.length > 0;
  for (const cell of grid.querySelectorAll('a.c[tabindex="0"]')) cell.setAttribute("tabindex", "-1");
  const chosen = grid.querySelector('tr:not([hidden]) > [aria-selected="true"] a') ?? cellAt(shown[0], 1);
  chosen?.setAttribute("tabindex", "0");
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  narrow();
  address({ find: sought.value.trim() });
});

document.addEventListener("click", (event) => {
  const link = within(event, "a[data-show]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  for (const each of link.parentElement.children) each.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  grid.dataset.show = link.dataset.show;
  kept.value = link.dataset.show;
  address({ show: link.dataset.show === "all" ? "" : link.dataset.show });
  narrow();
});

narrow();
