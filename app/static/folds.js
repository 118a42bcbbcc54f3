// What the address names after # is opened, also where the browser does not; on paper all that folds is, and after it is
// as it was.
const FOLDS = "[data-folds] details, [data-sift] details";
/** @type {HTMLDetailsElement[]} */
let opened = [];

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const around = named?.closest("details");
  if (!around || around.open) return;
  around.open = true;
  named.scrollIntoView();
}

addEventListener("hashchange", openNamed);
addEventListener("beforeprint", () => {
  const folds = /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll(FOLDS));
  opened = [...folds].filter((each) => !each.open);
  for (const each of opened) each.open = true;
});
addEventListener("afterprint", () => {
  for (const each of opened) each.open = false;
  opened = [];
});
openNamed();
