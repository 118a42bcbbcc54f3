// Keys and timing of the reviewer. The page works without it: links reveal, buttons check and rate.
import { typing, within } from "./dom.js";
import { closeDerivation } from "./live.js";
import { setUpSteps } from "./steps.js";
import { watchReplies } from "./study-replies.js";
import { setUpSwipe } from "./study-swipe.js";

let shownAt = performance.now();

const page = () => document.querySelector("[data-study]");
const rateForm = () => page()?.querySelector("[data-rate]");
const checkForm = () => page()?.querySelector("[data-check]");

function reveal() {
  if (checkForm()) {
    page().querySelector("[data-reveal] a").click(); // what the machine checks is fetched, not hidden in the page
    return true;
  }
  const answer = page()?.querySelector("[data-answer]");
  if (!answer?.hidden) return false;
  answer.hidden = false;
  page().querySelector("[data-reveal]").hidden = true;
  page().querySelector("[data-card]").classList.remove("asking");
  page().querySelector("[data-aside]").hidden = false;
  for (const field of page().querySelectorAll("[data-revealed]"))
    field.value = page().querySelector("[data-card]").dataset.card;
  rateForm().hidden = false;
  wasOpen = true;
  announce(`Answer: ${readable(answer)}`);
  return true;
}

// What changed, said to a screen reader. The region stays when the page's part is swapped; the same words twice are two
// changes only if something else stood there in between.
function announce(text) {
  const region = document.getElementById("announce");
  region.textContent = "";
  setTimeout(() => (region.textContent = text), 30);
}

// The answer as it is read: pictures by their description, formulas by their words.
function readable(answer) {
  const copy = answer.cloneNode(true);
  for (const picture of copy.querySelectorAll("[role=img][aria-label]")) picture.replaceChildren(picture.ariaLabel);
  for (const unread of copy.querySelectorAll("[aria-hidden=true], .deeper, .general, table:not(.solved), annotation"))
    unread.remove();
  return copy.textContent.replace(/\s+/g, " ").trim();
}

// What was right, and the answer to it, as one part: of a card whose answer came with a swap.
function solution() {
  const whole = document.createElement("div");
  for (const part of page().querySelectorAll(".solved, [data-answer]")) whole.append(part.cloneNode(true), " ");
  for (const part of whole.querySelectorAll(".option > *, th, td, li")) part.append(" "); // or words of two parts run together
  return whole;
}

function rate(level) {
  const form = rateForm();
  if (!form || form.hidden) return;
  const button = form.querySelector(`[name="level"][value="${level}"]`);
  if (button) form.requestSubmit(button); // after a wrong check there are fewer
}

// The time until checking, or else until rating, goes along; a second submit while one is under way is not sent.
document.addEventListener(
  "submit",
  (event) => {
    const form = within(event, "[data-rate], [data-undo], [data-check], [data-mark], [data-note]");
    if (!form) return;
    if (form.dataset.sent) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    window.htmx?.process(form); // the card may have been put in a moment ago: a key must not be faster than htmx
    form.dataset.sent = "yes";
    const elapsed = form.querySelector("[name=elapsed_milliseconds]");
    if (elapsed?.disabled) {
      elapsed.disabled = false;
      elapsed.value = Math.round(performance.now() - shownAt);
    }
    closeDerivation({ refocus: false });
  },
  true,
);

document.addEventListener("click", (event) => {
  if (!checkForm() && within(event, "[data-reveal] a") && reveal()) event.preventDefault();
});

// Enter in a list of choices goes on to the next open one, and checks when all are chosen.
function enterInSelect(select) {
  const open = [...checkForm().querySelectorAll("select")].find((each) => each.value === "");
  if (open && open !== select) open.focus();
  else if (!open) checkForm().requestSubmit();
}

// A key that begins an answer: a digit goes to the field, a letter chooses an option, Enter checks what is chosen.
function answerKey(event) {
  const form = checkForm();
  if (!form) return false;
  const field = form.querySelector("input[name=answer]:not([type=hidden], [type=radio], [type=checkbox])");
  if (field && /^[\d.~≈]$/.test(event.key)) field.focus(); // the key itself is typed where the focus is now
  const option = form.querySelector(`[data-letter="${CSS.escape(event.key)}"]`);
  if (option) {
    option.focus();
    option.click();
  }
  if (event.key !== "Enter" || within(event, "a, button:not(.step), summary")) return option !== null;
  if (form.querySelector("input:checked, [data-order]")) form.requestSubmit();
  else (field ?? form.querySelector("input:not([type=hidden]), select"))?.focus();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && within(event, "[data-check] select")) {
    event.preventDefault();
    enterInSelect(event.target);
  }
  const choosing = within(event, "[data-check] :is([type=radio], [type=checkbox])") !== null;
  if ((!typing(event.target) || choosing) && answerKey(event)) {
    event.preventDefault();
    return;
  }
  if (typing(event.target)) return;
  if (event.key === " " || event.key === "Enter") {
    // a focused link or button keeps its own meaning, unless it is the one that reveals
    if (within(event, "a, button, summary") && !within(event, "[data-reveal]")) return;
    if (reveal()) event.preventDefault();
  }
  if (/^[1-5]$/.test(event.key)) rate(event.key);
  if (event.key === "u") back();
  if (event.key === "b") mark("bury");
  if (event.key === "*") mark("flag", "unflag");
  if (event.key === "@") mark("suspend");
  if (event.key === "n" && jot()) event.preventDefault(); // the n itself is no part of the note
});

// The last thing done is what is taken back: a mark while the notice of it stands, else the newest answer.
function back() {
  if (page()?.querySelector("[data-back]")) mark("back");
  else page()?.querySelector("[data-undo]")?.requestSubmit();
}

function mark(...actions) {
  const form = actions.map((action) => page()?.querySelector(`[data-mark="${action}"]`)).find(Boolean);
  if (!form) return;
  form.requestSubmit(form.querySelector("button"));
}

// A note is written on the page itself; without this script the link leads to the card's own page.
function jot() {
  const form = page()?.querySelector("[data-note]");
  if (!form) return false;
  form.hidden = false;
  page().querySelector("[data-menu]").open = false;
  const field = form.querySelector("textarea");
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
  form.scrollIntoView({ block: "nearest" });
  return true;
}

function unjot() {
  page().querySelector("[data-note]").hidden = true;
  document.getElementById("ask")?.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const on = (selector) => within(event, selector);
  if (on("[data-jot]") && jot()) event.preventDefault();
  if (on("[data-unjot]")) unjot();
  const menu = page()?.querySelector("[data-menu][open]");
  if (menu && !on("[data-menu]")) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  if (within(event, "[data-note]")) unjot();
  const menu = page()?.querySelector("[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// After a swap the new question has the focus, so that it is read aloud and keys work at once; after a check, the
// verdict, and after one that could not be read, the field again. Time runs on until another showing is there.
const showing = () => page()?.querySelector("[data-showing]")?.dataset.showing;
const isOpen = () => Boolean(page()?.querySelector("[data-answer]:not([hidden])"));
let shown = showing();
let wasOpen = isOpen();

document.addEventListener("htmx:after:swap", () => {
  const isSame = shown === showing();
  if (!isSame) shownAt = performance.now();
  const opened = isSame && !wasOpen && isOpen();
  [shown, wasOpen] = [showing(), isOpen()];
  setUpSteps(page());
  const verdict = document.getElementById("verdict");
  const field = page()?.querySelector("[data-unread] :is(input:not([type=hidden]), select)");
  (field ?? verdict ?? document.getElementById("ask") ?? page())?.focus?.({ preventScroll: true });
  if (field?.type === "text") field.select();
  verdict?.scrollIntoView({ block: "nearest" });
  if (!isSame) scrollTo({ top: 0 });
  // what the machine checks is opened by the server: its answer is said like any other, unless there is a verdict to say
  if (opened && !verdict) announce(`Answer: ${readable(solution())}`);
  if (!isSame)
    announce(
      shown ? `Next card: ${page().querySelector(".where span").textContent}` : page().querySelector("h1").textContent,
    );
});
setUpSteps(page());
setUpSwipe({ page, reveal, rate });
watchReplies(page);
