// Saying an answer aloud: a minute runs down quietly, then the facts it should have had are opened.
/** @type {{ block: HTMLElement, ends: number, timer: number } | null} */
let running = null;

const part = (block, name) => block.querySelector(`[data-${name}]`);

/** How long an answer may take, as its page says. @param {HTMLElement} block */
const seconds = (block) => Number(block.dataset.aloud);

function start(block) {
  stop(false);
  block.querySelector("details").open = false;
  part(block, "start").textContent = "Done, show the facts";
  part(block, "said").textContent = `${seconds(block)} seconds from now.`;
  running = { block, ends: performance.now() + 1000 * seconds(block), timer: setInterval(tick, 250) };
  tick();
}

function tick() {
  const left = Math.max(0, Math.ceil((running.ends - performance.now()) / 1000));
  const shown = part(running.block, "left");
  const text = `${left} s left`;
  if (shown.textContent === text) return;
  shown.textContent = text;
  if (left === 30 || left === 10) part(running.block, "said").textContent = `${left} seconds left.`;
  if (left === 0) stop(true);
}

function stop(isDone) {
  if (!running) return;
  const { block, timer } = running;
  running = null;
  clearInterval(timer);
  part(block, "left").textContent = "";
  part(block, "start").textContent = `Say it again, ${seconds(block)} s`;
  part(block, "said").textContent = isDone ? "Compare with the facts below." : "Stopped.";
  if (!isDone) return;
  const facts = block.querySelector("details");
  facts.open = true;
  facts.querySelector("summary").focus();
}

for (const block of document.querySelectorAll("[data-aloud]")) {
  const button = part(block, "start");
  button.hidden = false;
  button.addEventListener("click", () => (running?.block === block ? stop(true) : start(block)));
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running && !event.defaultPrevented) stop(false);
});
