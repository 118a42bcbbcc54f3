// What several scripts ask of a page. A module of its own: importing shell.js would run the shell a second time.

/**
 * Whether a key goes into a field.
 * @param {EventTarget | null} target
 */
export function typing(target) {
  return (
    target instanceof Element && target.closest("input:not([type=range]), textarea, select, [contenteditable]") !== null
  );
}

/**
 * The nearest element around where the event started that the selector finds; null where there is none.
 * @param {Event} event
 * @param {string} selector
 * @returns {any}
 */
export function within(event, selector) {
  return event.target instanceof Element ? event.target.closest(selector) : null;
}

/**
 * A form's fields as a query string or request body has them; files do not go that way.
 * @param {HTMLFormElement} form
 */
export function fieldsOf(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === "string") fields.append(name, value);
  return fields;
}

/**
 * Under a field, instead of its help; nothing brings the help back.
 * @param {Element} field
 * @param {string} words
 * @param {boolean} [isWrong]
 */
export function sayUnder(field, words, isWrong = false) {
  const help = document.getElementById(field.getAttribute("aria-describedby") ?? "");
  if (!help) return;
  help.dataset.help ??= help.className === "error" ? "" : help.textContent;
  help.textContent = words || help.dataset.help;
  help.className = isWrong ? "error" : "help";
  field.closest(".field").classList.toggle("bad", isWrong);
  field.toggleAttribute("aria-invalid", isWrong);
}
