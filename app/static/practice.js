// n asks for another variant, c leads to the scratch pad; after a check the first part that needs attention has the
// focus.
import { typing } from "./dom.js";
import { askBeforeEnter, isBlank } from "./enter.js";
import { setUpPad } from "./pad.js";
import { setUpSteps } from "./steps.js";

// Opening a problem is one click: its first page asks for the variant, so that following a link stores nothing.
document.querySelector("[data-start]")?.requestSubmit();

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "n") document.querySelector("[data-again]")?.requestSubmit();
  if (event.key === "c") {
    event.preventDefault();
    document.querySelector("[data-calc] input")?.focus();
  }
});

// The first answer to a part counts: an Enter after the first of several numbers may not have been meant for it.
askBeforeEnter("[data-answers]", (form) => {
  const blank = [...form.querySelectorAll(".parts > li")].filter(isBlank).map((part) => part.id.slice("p-".length));
  if (!blank.length) return "";
  return `Still blank: ${blank.join(", ")}. Enter once more checks the rest; what stands there counts.`;
});

document.addEventListener("htmx:after:swap", () => {
  const title = document.querySelector("#problem h1")?.textContent;
  if (title) document.title = document.title.replace(/, .*(?= · )/, () => `, ${title.trim()}`); // the finding
  setUpPad();
  setUpSteps(document.getElementById("problem"));
  const field =
    document.querySelector(".parts .unsure :is(input:not([type=hidden]), select, .step):enabled") ??
    document.querySelector(".parts :is(input:not([readonly], [type=hidden]), select, .step):enabled");
  (field ?? document.querySelector("[data-again] button"))?.focus({ preventScroll: true });
});

setUpPad();
setUpSteps(document.getElementById("problem"));
