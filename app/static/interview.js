// The clock shows what the server owns, and what is typed is saved while it is typed.
import { setUpBoard } from "./board.js";
import { sends } from "./enter.js";
import { setUpLayout } from "./layout.js";
import { setUpPad } from "./pad.js";
import { arrange, givenOrder, setUpSteps } from "./steps.js";
import { TwoTexts } from "./two-texts.js";

setUpPad();
const root = document.querySelector("[data-sitting]");
const form = root.querySelector("[data-answer]");
const order = form?.querySelector("[data-order]");
setUpSteps(form);
setUpLayout(form);
setUpBoard(form);
const board = form?.elements.board; // drawn beside the words, and saved with them
const givenBoard = board?.value; // as the page came with it
const BESIDE = "\u0000"; // between the words and the board: nobody types it
const clock = root.querySelector("[data-clock]");
const endsAt = performance.now() + 1000 * Number(root.dataset.seconds);

function showClock() {
  const left = Math.max(0, Math.round((endsAt - performance.now()) / 1000));
  clock.textContent =
    left > 120
      ? `${Math.round(left / 60)} min left`
      : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
  if (left === 0) {
    clearInterval(ticking);
    save().finally(() => location.reload()); // the server closes it and shows the scorecard
  }
}
const ticking = setInterval(showClock, 1000);

let timer = 0;
const over = form?.elements.over; // the version of what is typed over
const panel = /** @type {HTMLElement | null} */ (form?.querySelector("[data-other]") ?? null);
let differs = panel?.hidden === false; // another tab saved another text, and none of the two is chosen yet
/** @type {TwoTexts | null} */
let texts = null;
let saved = form && !differs ? served() : null;
let refused = null; // a text the server would not take is not sent again
let saving = null;
const recent = [saved]; // what the server may still show in a page it has made already
let isWaiting = false; // for the draft of what is given
let giving = false; // the answer is on its way for good: no draft may race it

function value() {
  const data = new FormData(form);
  return withBoard(data.getAll("answer").map(String).join(", ").replaceAll("\r\n", "\n"), board?.value);
}

function withBoard(words, drawn) {
  return board ? `${words}${BESIDE}${drawn}` : words;
}

function wordsOf(text) {
  return text.split(BESIDE)[0];
}

// What the page came with. Somebody quick has typed more before this script was there.
function served() {
  return withBoard(servedWords(), givenBoard);
}

/** The answer that a form came with, this page's or one that was fetched. */
function servedWords(given = form) {
  const arranged = given.querySelector("[data-order]");
  if (arranged) return givenOrder(arranged);
  const fields = [...given.elements].filter((field) => field.name === "answer");
  const ticked = fields.filter((field) => field.defaultChecked).map((field) => field.value);
  const isTyped = (field) => field.type !== "radio" && field.type !== "checkbox";
  return fields.find(isTyped)?.defaultValue ?? ticked.join(", ");
}

const isUnsaved = () => form !== null && !giving && !differs && value() !== saved && value() !== refused;

function saveIn(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(save, milliseconds);
}

// One at a time, so that an earlier text never arrives behind a later one; what is typed meanwhile goes next.
async function save() {
  while (saving) await saving;
  if (!isUnsaved()) return;
  saving = send();
  await saving;
  saving = null;
}

async function send() {
  clearTimeout(timer);
  const status = form.querySelector("[data-saved]");
  const sent = value();
  const [answer, drawn] = sent.split(BESIDE);
  const beside = { ...(board ? { board: drawn } : {}), ...(over ? { over: over.value } : {}) };
  const fields = { part: form.elements.part.value, answer, ...beside };
  const body = new URLSearchParams(fields).toString();
  recent.push(sent);
  try {
    const reply = await fetch(form.action, {
      method: "POST",
      body,
      headers: { Accept: "application/json", "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8" },
      keepalive: body.length < 60000, // more than 64 KiB of it a browser refuses to send behind a page that is gone
    });
    const said = await reply.json();
    if (reply.ok) {
      saved = sent;
      status.textContent = `Saved ${said.saved_at}`;
      texts?.kept(sent, said.version);
    } else if (texts && said.type === "urn:rankzero:stale") {
      await differ();
    } else {
      refused = sent;
      status.textContent = said.detail;
      if (reply.status === 409) location.reload();
    }
  } catch {
    status.textContent = "Not saved: the server does not answer. Trying again.";
    saveIn(3000);
  }
}

// What the page is left with goes behind it, and may come after the page that is asked for next; and that page may
// have been made before a text that is saved by now. So the tab keeps the last one too, with those that the server may
// show instead. Where it shows another, somebody went on elsewhere.
const kept = form ? `draft ${root.dataset.sitting} ${form.elements.part.value}` : "";

function leave() {
  try {
    if (giving || value() === refused) sessionStorage.removeItem(kept);
    else sessionStorage.setItem(kept, JSON.stringify({ text: value(), before: recent.slice(-10) }));
  } catch {
    // a browser that keeps nothing: what is on its way is all there is
  }
  if (isUnsaved()) send();
}

// The server has another text than was typed over.
async function differ() {
  differs = true;
  await texts.differ();
  if (!texts.theirs) differs = false; // it was one of this page, or nobody can say: what is typed next tries again
}

/** The answer as the server has it now; null where it was given, or where there is no telling. */
async function readKept() {
  const address = `/interview/sittings/${root.dataset.sitting}?part=${form.elements.part.value}`;
  const reply = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  const page = reply?.ok ? new DOMParser().parseFromString(await reply.text(), "text/html") : null;
  const found = /** @type {HTMLFormElement | null} */ (page?.querySelector("[data-answer]"));
  const field = (name) => /** @type {HTMLInputElement | null} */ (found?.querySelector(`[name=${name}]`));
  if (!found || !field("over")) return null;
  return { code: withBoard(servedWords(found), field("board")?.value ?? ""), version: field("over").value };
}

function restore() {
  let draft = null;
  try {
    draft = JSON.parse(sessionStorage.getItem(kept) ?? "null");
    sessionStorage.removeItem(kept);
  } catch {
    // as above
  }
  if (draft === null || value() !== saved || !draft.before.includes(saved)) return;
  recent.push(...draft.before, draft.text); // any of them may be on its way still
  put(draft.text);
}

function put(text) {
  const [words, drawn] = text.split(BESIDE);
  const chosen = words.split(", ");
  if (board) board.value = drawn ?? "";
  if (order) {
    arrange(order, chosen);
    return;
  }
  for (const field of form.elements) {
    if (field.name !== "answer") continue;
    if (field.type === "radio" || field.type === "checkbox") field.checked = chosen.includes(field.value);
    else field.value = words;
  }
  form.dispatchEvent(new Event("restored")); // what draws the answer follows
  count();
}

/** An answer as a person reads it: of ids, what they stand for on the page. */
function said(text) {
  const words = wordsOf(text);
  const fields = [...form.elements].filter((field) => field.name === "answer" && field.type !== "text");
  const named = words.split(", ").map((id) => {
    const field = fields.find((each) => each.value === id);
    return (field?.closest("li")?.querySelector(".step") ?? field?.closest("label"))?.textContent.trim();
  });
  return named.every(Boolean) ? named.join("\n") : words;
}

function twoTexts() {
  return new TwoTexts(panel, over, `answer ${root.dataset.sitting} ${form.elements.part.value}`, {
    hasUndo: form.querySelector("[data-editor]") !== null,
    text: value,
    put,
    focus: () => {
      form.querySelector("[name=answer]").focus();
      form.dispatchEvent(new Event("chosen"));
    },
    save: () => {
      differs = false;
      save();
    },
    read: readKept,
    isUnsaved: () => !giving && value() !== saved, // refused is not saved, either
    isOwn: (text) => recent.includes(text),
    shown: said,
    mark: (is) => {
      saved = is ? null : value();
    },
    say: (words) => {
      form.querySelector("[data-saved]").textContent = words;
    },
  });
}

function count() {
  const words = form.querySelector("[data-words]");
  if (words) words.textContent = `${wordsOf(value()).split(/\s+/).filter(Boolean).length} words`;
}

if (form) {
  form.addEventListener("input", () => {
    count();
    saveIn(800);
  });
  form.addEventListener("change", save); // nobody types a tick
  form.addEventListener("keydown", async (event) => {
    if (!sends(event)) return;
    event.preventDefault(); // giving is for good: Enter alone, which also ends a line, may not do it
    await save();
    if (differs || isUnsaved() || value() === refused) return; // that is said already
    form.querySelector("[data-saved]").textContent =
      "Saved, not given: “Give this answer” or Ctrl + Enter gives it, for good.";
  });
  form.addEventListener("focusout", save);
  form.addEventListener("submit", async (event) => {
    if (texts && !giving && (saving || differs || isUnsaved())) {
      event.preventDefault(); // of two texts one has to be chosen first
      if (isWaiting) return;
      isWaiting = true;
      await save();
      await save(); // where it was refused over a text of this page
      isWaiting = false;
      if (differs) texts.ask();
      else if (!isUnsaved()) form.requestSubmit(event.submitter);
      return;
    }
    giving = true;
    clearTimeout(timer);
    if (!saving) return;
    event.preventDefault(); // a draft on its way must arrive before the answer, or it is refused as too late
    while (saving) await saving;
    form.requestSubmit(event.submitter);
  });
  form.addEventListener("differs", differ);
  form.addEventListener("taken", (/** @type {CustomEvent} */ event) => {
    saved = event.detail.text; // it is what the server has
    texts.kept(saved, event.detail.version);
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // back from the page after, where it was given
  });
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => document.hidden && save()); // a phone may not come back to it
  root.querySelector("form[action$='/finish']")?.addEventListener("submit", async (event) => {
    if (!saving && !isUnsaved() && !differs) return;
    event.preventDefault(); // what was typed last counts too, if the server takes it
    await save();
    if (differs) return texts.ask();
    giving = true;
    event.target.submit();
  });
  restore();
  count();
  if (over) texts = twoTexts();
  if (differs) differ();
  if (isUnsaved()) saveIn(texts ? 0 : 800); // before anything is typed over what may be on its way
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit(form.querySelector("[data-run]") ?? form.querySelector("[name=final]")); // as in a code lab
    }
  });
}
