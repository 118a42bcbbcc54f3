// A code lab's page: an editor in place of the text field, results as they come. Without this script the form works.
import { Asides } from "./asides.js";
import { goToLine, makeEditor } from "./code-editor.js";
import { Compartment, unifiedMergeView } from "./vendor/codemirror/codemirror-6.43.15.esm.js";
import { Verdicts } from "./verdicts.js";

const SAVE_AFTER_MS = 800;
const root = document.querySelector("[data-lab]");
const form = /** @type {HTMLFormElement} */ (document.getElementById("code"));
const field = form.querySelector("textarea");
const starter = root.querySelector("[data-starter]").content.textContent;
const results = root.querySelector("[data-results]");
const saved = root.querySelector("[data-saved]");
const refused = root.querySelector("[data-refused]");
const said = root.querySelector("[data-said]");
const changes = new Compartment();

const keys = [
  { key: "Mod-Enter", run: () => handIn("run"), preventDefault: true },
  { key: "Mod-Shift-Enter", run: () => handIn("submit"), preventDefault: true },
];
const editor = makeEditor(root.querySelector("[data-editor]"), field, keys, typed, [changes.of([])]);
form.querySelector("[data-tools]").hidden = false;
form.querySelector("[data-keys-said]").hidden = false;

let timer = 0;
let unsaved = false;
const version = /** @type {HTMLInputElement} */ (form.elements.namedItem("over")); // of the draft that is typed over
let theirs = null; // the draft that another tab saved, until one of the two is chosen

function typed() {
  unsaved = true;
  saved.textContent = "";
  clearTimeout(timer);
  timer = setTimeout(save, SAVE_AFTER_MS);
}

// One after the other: what is sent names the version that the one before made.
let sent = Promise.resolve();

function save() {
  clearTimeout(timer);
  sent = sent.then(saveNow);
  return sent;
}

async function saveNow() {
  if (!unsaved || theirs) return;
  unsaved = false;
  const code = field.value;
  const reply = await send("PUT", "draft", { code, over: version.value });
  if (reply.ok) return kept(code, reply.found.version);
  unsaved = true;
  if (reply.status === 409) return differ();
  saved.textContent = `Not saved: ${reply.found.detail}`;
}

function kept(code, name) {
  version.value = name;
  saved.textContent = "Saved";
  asides.drop(code);
  showOther();
}

// --- two tabs, or two devices, of which each has its own text

const asides = new Asides(`code-lab.${root.dataset.lab}`);
const other = root.querySelector("[data-other]");

async function differ() {
  const reply = await send("GET", "");
  if (!reply.ok) {
    saved.textContent = "Not saved: another text was saved elsewhere";
    return;
  }
  theirs = { code: reply.found.draft, version: reply.found.draft_version };
  saved.textContent = "Not saved";
  showOther();
}

function showOther() {
  const text = theirs ? theirs.code : asides.newest;
  other.hidden = text === undefined;
  if (text === undefined) return;
  const says = other.querySelector("[data-other-says]");
  const words = theirs
    ? "Another text of this lab was saved in the meantime, in another tab or on another device. Yours is in the editor and not saved. Choose one; the other stays at hand."
    : "There is another text of this lab that was not kept.";
  if (says.textContent !== words) says.textContent = words;
  other.querySelector("pre").textContent = text;
  other.querySelector("[data-differ]").hidden = !theirs;
  other.querySelector("[data-aside]").hidden = Boolean(theirs);
}

/** Put a text into the editor; Ctrl+Z takes it out again. */
function put(code) {
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: code } });
}

function choose(mine) {
  const found = theirs;
  theirs = null;
  refuse("");
  version.value = found.version;
  asides.put(mine ? found.code : field.value);
  if (!mine) put(found.code);
  unsaved = true;
  save();
  showOther();
  editor.focus();
}

function swap() {
  const found = asides.newest;
  asides.drop(found);
  asides.put(field.value);
  put(found);
  save();
  showOther();
  editor.focus();
}

function forget() {
  asides.drop(asides.newest);
  showOther();
  editor.focus();
}

other.querySelector("[data-keep]").addEventListener("click", () => choose(true));
other.querySelector("[data-take]").addEventListener("click", () => choose(false));
other.querySelector("[data-swap]").addEventListener("click", swap);
other.querySelector("[data-forget]").addEventListener("click", forget);

/** Back at this tab with nothing typed: what was saved elsewhere is what goes on. */
async function catchUp() {
  if (document.visibilityState !== "visible" || unsaved || theirs) return;
  const reply = await send("GET", "");
  if (!reply.ok || unsaved || theirs || reply.found.draft_version === version.value) return;
  put(reply.found.draft);
  unsaved = false;
  clearTimeout(timer);
  version.value = reply.found.draft_version;
  saved.textContent = "As it was saved elsewhere; Ctrl+Z brings back what was here";
}

document.addEventListener("visibilitychange", catchUp);
addEventListener("focus", catchUp);
addEventListener("pageshow", (event) => event.persisted && catchUp());
asides.drop(field.value);
showOther();

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 */
async function send(method, path, body) {
  try {
    const reply = await fetch(`/api/v1/labs/${root.dataset.lab}${path && `/${path}`}`, {
      method,
      keepalive: true,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return { ok: reply.ok, status: reply.status, found: await reply.json() };
  } catch {
    return { ok: false, status: 0, found: { detail: "The server did not answer. Try again." } };
  }
}

function refuse(words) {
  refused.textContent = words;
  refused.hidden = words === "";
}

let sending = false;

/** @param {string} mode */
function handIn(mode) {
  if (sending) return true;
  sending = true;
  clearTimeout(timer);
  sent = sent.then(() => submit(mode));
  return true;
}

async function submit(mode) {
  unsaved = false; // what is handed in is kept as the draft as well
  const code = field.value;
  const reply = await send("POST", "submissions", { code, mode, over: version.value });
  sending = false;
  if (!reply.ok) return notTaken(reply);
  refuse("");
  said.textContent = mode === "run" ? "Running the visible checks" : "Submitted to all checks";
  kept(code, reply.found.draft_version);
  verdicts.show(reply.found.id).then(() => verdicts.follow(reply.found.id));
}

async function notTaken(reply) {
  unsaved = true;
  await (reply.status === 409 ? differ() : saveNow());
  refuse(reply.status === 409 ? "Nothing was handed in: choose one of the two texts first." : reply.found.detail);
}

const verdicts = new Verdicts(results, said, (found) => {
  if (found.querySelector(".solutions"))
    document.querySelector("[data-status]").innerHTML = "<b class=met>✓ Passed</b>";
});

form.addEventListener("submit", (event) => {
  const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
  event.preventDefault();
  if (button?.hasAttribute("data-take-hint")) takeHint(button);
  else handIn(button?.value === "submit" ? "submit" : "run");
});

async function takeHint(button) {
  await save();
  button.disabled = true;
  const address = `/labs/${root.dataset.slug}`;
  const reply = await send("POST", "hints", {});
  refuse(reply.ok ? "" : reply.found.detail);
  const page = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  button.disabled = false;
  if (!page?.ok) return;
  const holder = document.createElement("div");
  holder.innerHTML = await page.text();
  root.querySelector("[data-hints]").replaceWith(holder.querySelector("[data-hints]"));
  const next = root.querySelector("[data-hints] [data-take-hint]") ?? root.querySelector("[data-hints] summary");
  next.focus();
}

const diff = form.querySelector("[data-diff]");
diff.addEventListener("click", () => {
  const on = diff.getAttribute("aria-pressed") !== "true";
  diff.setAttribute("aria-pressed", String(on));
  const shown = on ? unifiedMergeView({ original: starter, mergeControls: false }) : [];
  editor.dispatch({ effects: changes.reconfigure(shown) });
});

form.querySelector("[data-revert]").addEventListener("click", () => {
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: starter } });
  saved.textContent = "The starter is back; Ctrl+Z undoes it";
  editor.focus();
});

results.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  if (!link) return;
  event.preventDefault();
  goToLine(editor, Number(link.dataset.line));
});

addEventListener("pagehide", () => {
  if (unsaved || theirs) asides.put(field.value); // whether it is saved, nobody is left to hear
  save();
});
