// Keys of looking through cards. Links do the same without it.
import { typing, within } from "./dom.js";

const link = (name) => document.querySelector(`[data-cram] [data-go="${name}"]`);

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.querySelector("dialog[open]") || within(event, "a, button, summary")) return;
  const found = { " ": link("reveal") ?? link("next"), ArrowRight: link("next"), ArrowLeft: link("before") }[event.key];
  if (!found) return;
  event.preventDefault();
  found.click();
});

document.getElementById("answer")?.focus({ preventScroll: true });
