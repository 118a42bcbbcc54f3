// What is typed or picked before the page's scripts are there is told to them once they are: they run after the whole
// page was read, and on a slow machine or network somebody reaches a field before that.
(() => {
  /** @type {Map<EventTarget, Set<string>>} */
  const missed = new Map();
  const kinds = ["input", "change"];
  /** @param {Event} event */
  const note = ({ target, type }) => target && missed.set(target, (missed.get(target) ?? new Set()).add(type));
  for (const kind of kinds) document.addEventListener(kind, note, true);
  // a turn later, for the scripts that begin at this very event
  const tell = () => {
    for (const kind of kinds) document.removeEventListener(kind, note, true);
    for (const [field, types] of missed)
      for (const type of types) field.dispatchEvent(new Event(type, { bubbles: true }));
  };
  document.addEventListener("DOMContentLoaded", () => setTimeout(tell));
})();
