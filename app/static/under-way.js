// How many runs are under way, in the navigation: a page that looks anew by itself says so with it.

const within = () => /** @type {HTMLElement | null} */ (document.querySelector('.nav a[data-key="l"]'));

/** How many the navigation says. */
export function countUnderWay() {
  return parseInt(within()?.querySelector(".count")?.textContent ?? "0", 10);
}

/** @param {number} runs */
export function showUnderWay(runs) {
  const count = within()?.querySelector(".count");
  if (runs <= 0) count?.remove();
  else if (count) count.firstChild.textContent = String(runs);
  else if (within()) {
    const words = Object.assign(document.createElement("span"), {
      className: "visually-hidden",
      textContent: " under way",
    });
    const made = Object.assign(document.createElement("span"), { className: "count" });
    made.append(String(runs), words);
    within().append(made);
  }
}

document.addEventListener("htmx:after:swap", () => {
  const said = /** @type {HTMLElement | null} */ (document.querySelector("[data-under-way]"));
  if (said) showUnderWay(Number(said.dataset.underWay));
});
