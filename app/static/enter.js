// Enter in a field hands the whole form in. Where that is for good and something is blank, the first one says so.

/**
 * Whether somebody has answered in this part of a form. What is moved, chosen or typed counts; what cannot be does not.
 * @param {Element} part
 */
export function isBlank(part) {
  const order = part.querySelector("[data-order]");
  if (order) return order.hasAttribute("data-untouched");
  const fields = /** @type {HTMLInputElement[]} */ ([
    ...part.querySelectorAll("input:enabled:not([type=hidden], [type=range], [readonly]), select:enabled"),
  ]);
  const isFilled = (field) => (/radio|checkbox/.test(field.type) ? field.checked : field.value.trim() !== "");
  return fields.length > 0 && !fields.some(isFilled);
}

/**
 * @param {KeyboardEvent} event
 * @returns {boolean} whether it is an Enter that a browser would send a form for
 */
export function sends(event) {
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing || event.defaultPrevented)
    return false;
  return event.target instanceof HTMLInputElement && event.target.type !== "range";
}

/**
 * @param {string} forms a selector of the forms this holds for; each has a [data-enter] to say it in
 * @param {(form: HTMLFormElement) => string} warning what is blank, and what a second Enter does; empty where nothing is
 */
export function askBeforeEnter(forms, warning) {
  const placeOf = (event) =>
    event.target instanceof Element && event.target.closest(forms)?.querySelector("[data-enter]");
  document.addEventListener("keydown", (event) => {
    const place = placeOf(event);
    if (!place || !sends(event)) return;
    const words = warning(place.closest(forms));
    if (!words || place.textContent === words) return;
    place.textContent = words;
    event.preventDefault();
  });
  document.addEventListener("input", (event) => {
    const place = placeOf(event);
    if (place) place.textContent = "";
  });
}
