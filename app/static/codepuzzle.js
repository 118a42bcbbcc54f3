// A code lab's puzzle: lines that are moved by buttons and arrow keys, or a grid of passes; results as they come. Without
// this script each button is sent to the server, which shows the page with the line moved.
import { within } from "./dom.js";
import { Verdicts } from "./verdicts.js";

const root = /** @type {HTMLElement} */ (document.querySelector("[data-puzzle]"));
const form = /** @type {HTMLFormElement} */ (document.getElementById("puzzle"));
const used = form.querySelector("[data-used]");
const spare = form.querySelector("[data-spare]");
const said = root.querySelector("[data-said]");
const refused = /** @type {HTMLElement} */ (root.querySelector("[data-refused]"));

const verdicts = new Verdicts(root.querySelector("[data-results]"), said, (found) => {
  if (found.querySelector("[data-solved]"))
    document.querySelector("[data-status]").innerHTML = "<b class=met>✓ Solved</b>";
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
  const line = /** @type {HTMLElement | null} */ (button?.closest("li"));
  if (line && button.dataset.way === "in" && used.contains(line)) return; // it is there already
  if (line) move(line, button.dataset.way, button.dataset.way);
  else handIn();
});

form.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const line = /** @type {HTMLElement | null} */ (within(event, "li[data-letter]"));
  const way = { ArrowUp: "up", ArrowDown: "down", Delete: "out", Backspace: "out" }[event.key];
  if (line && way && used.contains(line)) {
    event.preventDefault();
    move(line, way);
  }
  const cell = /** @type {HTMLInputElement | null} */ (within(event, "input[name=cell]"));
  if (cell && fill(cell, event.key)) {
    event.preventDefault();
    event.stopPropagation(); // a letter must not lead to another room
  }
});

/**
 * Moves a line, and the focus with it: to the button that was pressed where it is still there, else to the line.
 * @param {HTMLElement} line @param {string} way @param {string} [pressed]
 */
function move(line, way, pressed) {
  const others = { up: line.previousElementSibling, down: line.nextElementSibling };
  if (way === "in") used.append(line);
  else if (way === "out") spare.append(line);
  else if (way === "up") others.up?.before(line);
  else others.down?.after(line);
  const isIn = used.contains(line);
  line.querySelector("input").disabled = !isIn;
  const code = /** @type {HTMLElement} */ (line.querySelector(".code"));
  const next = pressed === "up" || pressed === "down" ? line.querySelector(`[data-way=${pressed}]`) : code;
  /** @type {HTMLElement} */ (next).focus();
  const place = [...used.children].indexOf(line) + 1;
  const where = isIn ? `now ${place} of ${used.children.length}` : "taken out";
  form.querySelector("[data-moved]").textContent = `${code.textContent}: ${where}`;
  form.querySelector("[data-placed]").textContent = String(used.children.length);
}

/** @param {HTMLInputElement} cell @param {string} key @returns {boolean} whether the key is one of the grid's */
function fill(cell, key) {
  const cells = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll("input[name=cell]")]);
  const columns = form.querySelector(".stage:has(input)").querySelectorAll("input").length;
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
  if (by) cells[cells.indexOf(cell) + by]?.focus();
  else if (key === "f" || key === "b") {
    cell.checked = key === "b";
    cells[cells.indexOf(cell) + 1]?.focus();
  } else return false;
  return true;
}

function arranged() {
  if (used) return [...new FormData(form).getAll("line")];
  return [...form.querySelectorAll(".stage:has(input)")].map((row) =>
    [.../** @type {NodeListOf<HTMLInputElement>} */ (row.querySelectorAll("input"))]
      .map((each) => (each.checked ? "B" : "F"))
      .join(""),
  );
}

let sending = false;

async function handIn() {
  if (sending) return;
  sending = true;
  const reply = await fetch(`/api/v1/labs/${root.dataset.puzzle}/puzzle/submissions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ arranged: arranged() }),
  }).catch(() => null);
  const found = (await reply?.json().catch(() => null)) ?? { detail: "The server did not answer. Try again." };
  sending = false;
  refused.hidden = Boolean(reply?.ok);
  refused.textContent = reply?.ok ? "" : found.detail;
  if (!reply?.ok) return;
  said.textContent = "Handed in";
  await verdicts.show(found.id);
  verdicts.follow(found.id);
  document.getElementById("results").scrollIntoView({ block: "start", behavior: "smooth" });
}

root.querySelector("[data-results]").addEventListener("click", (event) => {
  const link = within(event, "a[data-line]");
  const program = /** @type {HTMLDetailsElement | null} */ (root.querySelector("[data-program]"));
  if (!link || !program) return;
  event.preventDefault();
  program.open = true;
  const line = /** @type {HTMLElement} */ (program.querySelectorAll("li")[Number(link.dataset.line) - 1]);
  line.tabIndex = -1;
  line.focus();
});
