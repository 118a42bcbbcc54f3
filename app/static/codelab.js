// A code lab's page: an editor in place of the text field, results as they come. Without this script the form works.
import { goToLine, makeEditor } from "./code-editor.js";
import { TwoTexts } from "./two-texts.js";
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
  if (!unsaved || texts.theirs) return;
  unsaved = false;
  const code = field.value;
  const reply = await send("PUT", "draft", { code, over: version.value });
  if (reply.ok) return kept(code, reply.found.version);
  unsaved = true;
  if (reply.status === 409) return texts.differ();
  saved.textContent = `Not saved: ${reply.found.detail}`;
}

function kept(code, name) {
  saved.textContent = "Saved";
  texts.kept(code, name);
}

// --- two tabs, or two devices, of which each has its own text

const texts = new TwoTexts(root.querySelector("[data-other]"), version, `code-lab.${root.dataset.lab}`, {
  text: () => field.value,
  put,
  focus: () => editor.focus(),
  save: () => {
    refuse("");
    save();
  },
  read: async () => {
    const reply = await send("GET", "");
    return reply.ok ? { code: reply.found.draft, version: reply.found.draft_version } : null;
  },
  hasUndo: true,
  isUnsaved: () => unsaved,
  mark: (is) => {
    unsaved = is;
    if (!is) clearTimeout(timer);
  },
  say: (words) => {
    saved.textContent = words;
  },
});

/** Put a text into the editor; Ctrl+Z takes it out again. */
function put(code) {
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: code } });
}

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
  await (reply.status === 409 ? texts.differ() : saveNow());
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

addEventListener("pagehide", save);
