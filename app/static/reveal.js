// How a run's result comes: theory slides in, the measurement lands, the gap gets its name, then the rest. The steps
// stand on the page's element (data-reveal 0 to 4); what moves at each is in meters.css. A second visit opens at the end.
import { typing, within } from "./dom.js";

/** Milliseconds after which theory, measurement, gap and everything else are there. */
const STEPS = [900, 2000, 3500, 4700];
const TITLE = 4300;

/** @param {HTMLElement} root the run's element */
export function setUpReveal(root) {
  const title = /** @type {HTMLElement} */ (root.querySelector('[data-part="title"]'));
  /** @type {number[]} */
  let timers = [];
  /** What the title will say at the end, while it is kept back. */
  let finding = "";

  const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  function tell() {
    if (!finding) return;
    title.innerHTML = finding;
    title.style.minHeight = "";
    finding = "";
    document.title = `${title.querySelector("h1").textContent} · RankZero`;
  }

  function end() {
    timers.forEach(clearTimeout);
    timers = [];
    tell();
    root.dataset.reveal = "4";
  }

  function play() {
    timers.forEach(clearTimeout);
    root.dataset.reveal = "0";
    void root.offsetHeight; // the start must be drawn once, or nothing moves
    timers = STEPS.map((after, index) => setTimeout(() => (root.dataset.reveal = String(index + 1)), after));
    timers.push(
      setTimeout(tell, TITLE),
      setTimeout(() => (timers = []), STEPS.at(-1)),
    );
  }

  function replay() {
    const heading = title.querySelector("h1");
    if (!("reveal" in root.dataset) || !heading.dataset.asks || isStill() || timers.length) return;
    finding = title.innerHTML;
    title.style.minHeight = `${title.offsetHeight}px`; // the question may be shorter, and the page stays where it is
    heading.textContent = heading.dataset.asks;
    title.querySelector("[data-told]")?.remove();
    scrollTo({ top: 0 });
    play();
  }

  document.addEventListener("click", (event) => {
    if (within(event, "[data-replay]")) replay();
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "r") replay();
    if (event.key === "Escape" && timers.length) end();
  });

  return {
    /**
     * Whether a part that came is kept back: the finding, until its gap has a name.
     * @param {{ name: string, html: string }} part
     */
    holds(part) {
      if (part.name !== "title" || root.dataset.reveal === "4" || !part.html.includes("data-asks=")) return false;
      finding = part.html;
      return true;
    },
    /** To be called when a part is in its place: the result starts the reveal, a run without one just ends. */
    placed(part) {
      if (!("reveal" in root.dataset) || root.dataset.reveal !== "0" || timers.length) return;
      if (part.name === "comparison" && root.querySelector("[data-revealed]")) {
        if (isStill()) end();
        else play();
      }
    },
    /** The run has ended; where there is nothing to reveal, everything shows. */
    ended() {
      if ("reveal" in root.dataset && !timers.length) end();
    },
  };
}
