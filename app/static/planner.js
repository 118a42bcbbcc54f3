// The form recomputes as it changes; the address follows, so that a plan can be sent and gone back to.
import { paint } from "./cluster.js";
import { fieldsOf, within } from "./dom.js";

const form = document.querySelector("[data-plan]");
let timer = 0;
let asked = 0;

const recompute = () => show(`${form.getAttribute("action")}?${fieldsOf(form)}`, false);

/**
 * Everything computed becomes that of a plan's address; the form too, when the plan did not come from it.
 * @param {string} address
 * @param {boolean} withForm
 */
async function show(address, withForm) {
  const turn = ++asked;
  const out = document.querySelector(".out");
  out.setAttribute("aria-busy", "true");
  const reply = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (turn !== asked) return;
  out.removeAttribute("aria-busy");
  if (!reply?.ok) {
    document.querySelector('[role="status"]').textContent =
      "The server does not answer; these figures are of an earlier form.";
    return;
  }
  const fresh = document.createElement("div");
  fresh.innerHTML = await reply.text();
  const isOnFront = document.activeElement?.matches("[data-front]");
  opened = new Set([...details()].filter((each) => each.open).map(nameOf));
  const helped = document.querySelector("[data-soon][data-had]")?.innerHTML;
  // only what is computed changes: the form keeps its focus and caret
  for (const part of document.querySelectorAll("[data-part]")) {
    const now = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    if (now) part.innerHTML = now.innerHTML;
  }
  open();
  watch(helped);
  if (isOnFront) /** @type {HTMLElement} */ (document.querySelector("[data-front]"))?.focus({ preventScroll: true });
  if (withForm) fill(fresh.querySelector("form"));
  for (const part of form.querySelectorAll("[data-shown]")) {
    part.hidden = fresh.querySelector(`[data-shown="${part.dataset.shown}"]`).hidden;
  }
  for (const empty of /** @type {NodeListOf<HTMLInputElement>} */ (fresh.querySelectorAll("input[placeholder]"))) {
    form.elements[empty.name].placeholder = empty.placeholder;
  }
  for (const field of form.querySelectorAll(".field")) {
    const error = field.querySelector(".error");
    const input = field.querySelector("input, select");
    field.classList.toggle("bad", error !== null);
    input.setAttribute("aria-invalid", String(error !== null));
    if (error) input.setAttribute("aria-describedby", error.id);
    else input.removeAttribute("aria-describedby");
    const folded = /** @type {HTMLDetailsElement} */ (field.closest("[data-more-fields]"));
    if (error && folded) folded.open = true; // what is wrong is seen
  }
  history.replaceState(null, "", address);
}

// What was folded open stays so when the plan changes: by its name, for what stands before it may come and go.
let opened = new Set();
const details = () => /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("[data-part] details"));
const nameOf = (each) =>
  each
    .querySelector("summary")
    .textContent.replace(/[\d.,]+/g, "")
    .trim();
const open = () => {
  for (const each of details()) if (opened.has(nameOf(each))) each.open = true;
};

/**
 * Put what is at an address into its place; where it cannot be had, the link in its place opens it.
 * @param {HTMLElement} whose
 * @param {string} address
 * @param {Element} into
 */
async function put(whose, address, into) {
  const reply = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!reply?.ok || !whose.isConnected) return;
  whose.dataset.had = address;
  into.innerHTML = await reply.text();
  open();
}

// What is worked out only for those who open it: fetched then, and again once the plan has changed under it.
document.addEventListener(
  "toggle",
  (event) => {
    const details = /** @type {HTMLDetailsElement} */ (event.target);
    const address = details.dataset?.later;
    if (!address || !details.open || details.dataset.had === address) return;
    put(details, address, details.querySelector("[data-later-into]"));
  },
  true,
);

// What is worked out for those who come to it; until it is there anew, that of the plan before stands in its place.
const seen = new IntersectionObserver(
  (every) => {
    for (const each of every) if (each.isIntersecting) have(/** @type {HTMLElement} */ (each.target));
  },
  { rootMargin: "50%" },
);

/** @param {HTMLElement} soon */
function have(soon) {
  seen.unobserve(soon);
  put(soon, soon.dataset.soon, soon).then(() => soon.removeAttribute("aria-busy"));
}

/** @param {string} [before] */
function watch(before) {
  const soon = /** @type {HTMLElement} */ (document.querySelector("[data-soon]"));
  if (!soon) return;
  if (before === undefined) return seen.observe(soon);
  soon.innerHTML = before;
  soon.setAttribute("aria-busy", "true");
  have(soon);
}
watch();

form.addEventListener("input", () => {
  wanted = -1;
  clearTimeout(timer);
  timer = setTimeout(recompute, 150);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  recompute();
});

/** @param {HTMLFormElement} from */
function fill(from) {
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name]"))) {
    const other = /** @type {HTMLInputElement} */ (from.querySelector(`[name="${field.name}"]`));
    if (!other) continue;
    field.value = other.value;
    if (field.type === "checkbox") field.checked = other.checked;
  }
}

// Along the front: its plans stand in the table below it, the smallest first.
const rows = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-plan-at]")]);
let wanted = -1;

/** @param {number} at */
function take(at) {
  const every = rows();
  wanted = Math.max(0, Math.min(every.length - 1, at));
  show(every[wanted].dataset.planAt, true);
}

document.addEventListener("keydown", (event) => {
  const front = within(event, "[data-front]");
  if (!front) return;
  const now = wanted >= 0 ? wanted : Number(front.getAttribute("aria-valuenow")) - 1;
  const found = {
    ArrowRight: now + 1,
    ArrowUp: now + 1,
    ArrowLeft: now - 1,
    ArrowDown: now - 1,
    Home: 0,
    End: rows().length,
  };
  if (found[event.key] === undefined) return;
  event.preventDefault();
  take(found[event.key]);
});

// A search takes seconds and answers with a page: until it comes, say so where it was asked for and above.
const searching = (link) => {
  document.querySelector('[role="status"]').textContent =
    "Searching every way to divide these GPUs. A hard search takes some seconds …";
  document.querySelector(".out").setAttribute("aria-busy", "true");
  link.setAttribute("aria-busy", "true");
  link.textContent = "Searching …";
};
// who comes back by the browser's own way finds the page as it was before the search
addEventListener("pageshow", (event) => {
  if (event.persisted && document.querySelector("[data-search][aria-busy]")) location.reload();
});

document.addEventListener("click", (event) => {
  const search = within(event, "[data-search]");
  if (search && !event.ctrlKey && !event.metaKey && !event.shiftKey) searching(search);
  const link = within(event, "[data-apply], [data-plan-at] a");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    wanted = -1;
    show(link.getAttribute("href"), true);
  }
  const gpu = within(event, ".gpu");
  if (gpu) choose([...document.querySelectorAll(".gpu")].indexOf(gpu));
  const front = within(event, "[data-front]");
  if (!front) return;
  const box = front.getBoundingClientRect();
  const away = (row) =>
    Math.hypot(
      (Number(row.dataset.x) / 100) * box.width - (event.clientX - box.left),
      (Number(row.dataset.y) / 100) * box.height - (event.clientY - box.top),
    );
  const every = rows();
  take(every.indexOf(every.reduce((nearest, row) => (away(row) < away(nearest) ? row : nearest))));
});

document.addEventListener("input", (event) => {
  const range = within(event, "[data-gpu]");
  if (range) choose(Number(range.value));
});

function choose(me) {
  const cluster = document.querySelector("[data-cluster]");
  const axes = /** @type {HTMLElement[]} */ ([...cluster.querySelectorAll("[data-axis]")]).map((each) => ({
    name: each.dataset.axis,
    size: Number(each.dataset.size),
    stride: Number(each.dataset.stride),
  }));
  paint(cluster, axes, me);
  /** @type {HTMLInputElement} */ (cluster.querySelector("[data-gpu]")).value = String(me);
  document.querySelector("[data-whose]").textContent = `the peers of GPU ${me}; choose another`;
}
