// The map of concepts: what leads to the idea that is pointed at, and what it opens, stand out. One stop for the
// keyboard; arrows go a column on, along a line where one leads there, and up and down a column.
const map = /** @type {HTMLElement} */ (document.querySelector("[data-map]"));
const ideas = /** @type {HTMLElement[]} */ ([...map.querySelectorAll("[data-idea]")]);
const lines = /** @type {SVGPathElement[]} */ ([...map.querySelectorAll("path")]);
const says = /** @type {HTMLElement} */ (document.querySelector("[data-says]"));
const named = new Map(ideas.map((idea) => [idea.dataset.idea, idea]));
/** @type {(idea: HTMLElement) => HTMLElement[]} */
const needs = (idea) =>
  lines.filter((line) => line.dataset.concept === idea.dataset.idea).map((line) => named.get(line.dataset.need));
/** @type {(idea: HTMLElement) => HTMLElement[]} */
const opens = (idea) =>
  lines.filter((line) => line.dataset.need === idea.dataset.idea).map((line) => named.get(line.dataset.concept));
const title = (idea) => idea.querySelector("span").textContent;

/** Everything an idea rests on, near and far. @param {HTMLElement} idea */
function under(idea) {
  const found = new Set();
  const waiting = needs(idea);
  while (waiting.length) {
    const next = waiting.pop();
    if (!found.has(next)) waiting.push(...needs(next));
    found.add(next);
  }
  return found;
}

/** @param {HTMLElement | null} idea */
function light(idea) {
  map.classList.toggle("asked", idea !== null);
  const below = idea ? under(idea) : new Set();
  const above = new Set(idea ? opens(idea) : []);
  for (const each of ideas) {
    each.classList.toggle("lit", each === idea || below.has(each) || above.has(each));
    each.classList.toggle("asked", each === idea);
  }
  for (const line of lines) {
    const [from, to] = [named.get(line.dataset.need), named.get(line.dataset.concept)];
    line.classList.toggle("lit", from === idea || ((to === idea || below.has(to)) && below.has(from)));
  }
  says.textContent = idea ? sentence(idea, below.size, [...above]) : says.dataset.rest;
}

function sentence(idea, count, above) {
  const rests = count ? `rests on ${count} ${count === 1 ? "idea" : "ideas"}` : "needs nothing before it";
  const leads = above.length ? `, and opens ${above.map(title).join(", ")}` : "";
  return `${title(idea)} ${rests}${leads}.`;
}

const column = (idea) => /** @type {HTMLElement[]} */ ([...idea.closest("ul").querySelectorAll("[data-idea]")]);
/** @type {(idea: HTMLElement, at: number) => HTMLElement[]} */
const beside = (idea, at) => {
  const lists = [...map.querySelectorAll("ul")];
  const list = lists[lists.indexOf(idea.closest("ul")) + at];
  return list ? [...list.querySelectorAll("[data-idea]")] : [];
};
/**
 * One column on: where one came from if a line leads back there, else one that a line leads to, else the nearest.
 * @type {(idea: HTMLElement, at: number, along: HTMLElement[]) => HTMLElement | undefined}
 */
function across(idea, at, along) {
  const next = beside(idea, at);
  if (next.includes(from) && along.includes(from)) return from;
  const far = (other) => (along.includes(other) ? 0 : 1e6) + Math.abs(other.offsetTop - idea.offsetTop);
  return next.sort((one, other) => far(one) - far(other))[0];
}
/** @type {HTMLElement | null} where the last arrow was pressed */
let from = null;
const GO = {
  ArrowLeft: (idea) => across(idea, -1, needs(idea)),
  ArrowRight: (idea) => across(idea, 1, opens(idea)),
  ArrowUp: (idea) => column(idea)[column(idea).indexOf(idea) - 1],
  ArrowDown: (idea) => column(idea)[column(idea).indexOf(idea) + 1],
  Home: () => ideas[0],
  End: () => ideas[ideas.length - 1],
};

/** @param {HTMLElement} current */
function stopAt(current) {
  for (const each of ideas) each.tabIndex = each === current ? 0 : -1;
}

const ideaOf = (event) =>
  /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-idea]"));
stopAt(named.get(map.dataset.goal) ?? ideas[0]);
map.addEventListener("pointerover", (event) => light(ideaOf(event)));
map.addEventListener("pointerleave", () => light(null));
map.addEventListener("focusin", (event) => {
  stopAt(ideaOf(event));
  light(ideaOf(event));
});
map.addEventListener("focusout", () => light(null));
map.addEventListener("keydown", (event) => {
  const next = GO[event.key]?.(ideaOf(event));
  if (!next || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  from = ideaOf(event);
  next.focus();
});
