// A program in a sitting: the code labs' editor, the visible checks run without leaving the page, results come as they
// are there. Without this script the form works.
import { goToLine, makeEditor } from "./code-editor.js";
import { TwoTexts } from "./two-texts.js";
import { Verdicts } from "./verdicts.js";

const field = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("textarea#answer"));
const form = field?.form;
const results = document.querySelector("[data-results]");
const verdicts = results && new Verdicts(results, document.querySelector("[data-said]"), () => {});
const refused = document.querySelector("[data-refused]");
const earlier = /** @type {HTMLElement | null} */ (document.querySelector("[data-of-earlier-text]"));
const version = /** @type {HTMLInputElement | null} */ (form?.elements.namedItem("over"));
let kept = field?.defaultValue; // what the server has
/** @type {TwoTexts | null} */
let texts = null;
field?.addEventListener("input", () => {
  earlier.hidden = !results.querySelector("[data-result]");
});

if (field && form) {
  const press = (name) => () => {
    form.requestSubmit(form.querySelector(name));
    return true;
  };
  const keys = [{ key: "Mod-Enter", run: press("[data-run]"), preventDefault: true }];
  const typed = () => field.dispatchEvent(new Event("input", { bubbles: true }));
  const editor = makeEditor(form.querySelector("[data-editor]"), field, keys, typed);
  results?.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-line]");
    if (!link) return;
    event.preventDefault();
    goToLine(editor, Number(link.dataset.line));
  });
  const part = /** @type {HTMLInputElement} */ (form.elements.namedItem("part")).value;
  const sitting = /** @type {HTMLElement} */ (document.querySelector("[data-sitting]")).dataset.sitting;
  texts = new TwoTexts(form.querySelector("[data-other]"), version, `program ${sitting} ${part}`, {
    text: () => field.value,
    put: (code) => editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: code } }),
    focus: () => editor.focus(),
    save: () => form.dispatchEvent(new Event("chosen")),
    read: readKept,
    isUnsaved: () => field.value !== kept,
    mark: (is) => {
      if (is) return;
      kept = field.value;
      form.dispatchEvent(new Event("taken"));
    },
    say: (words) => {
      form.querySelector("[data-saved]").textContent = words;
    },
  });
  form.addEventListener("differs", () => texts.differ());
  form.addEventListener("kept", (/** @type {CustomEvent} */ event) => {
    kept = event.detail.text.replaceAll("\r\n", "\n");
    texts.kept(kept, event.detail.version);
  });
}

/** The program as the server has it now. */
async function readKept() {
  const reply = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  const page = reply?.ok ? new DOMParser().parseFromString(await reply.text(), "text/html") : null;
  const found = /** @type {HTMLTextAreaElement | null} */ (page?.querySelector("textarea#answer"));
  const called = /** @type {HTMLInputElement | null} */ (page?.querySelector("input[name=over]"));
  return found && called ? { code: found.value, version: called.value } : null;
}

form?.addEventListener(
  "submit",
  async (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
    if (!button?.hasAttribute("data-run")) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // nothing is given yet, and drafts go on being saved
    button.disabled = true;
    const answer = field.value;
    const body = new URLSearchParams({
      part: form.querySelector("input[name=part]").value,
      answer,
      over: version.value,
    });
    const reply = await fetch(button.formAction, {
      method: "POST",
      body,
      headers: { Accept: "text/html", "HX-Request": "true" },
    }).catch(() => null);
    button.disabled = false;
    if (reply?.status === 409) await texts.differ();
    const found = await take(reply);
    if (!found) return;
    kept = answer;
    texts.kept(answer, found);
  },
  true,
);

/** Put the results of the page that came in place of those that are shown, or say why there are none; returns the version
 * of the program that was run. */
async function take(reply) {
  const holder = document.createElement("div");
  holder.innerHTML = reply ? await reply.text() : "";
  const found = holder.querySelector("[data-results]");
  const why = holder.querySelector("[role=alert]:not([hidden])");
  refused.textContent = why?.textContent.trim() ?? (found ? "" : "The server did not answer. Try again.");
  refused.hidden = refused.textContent === "";
  if (!found) return "";
  results.replaceChildren(...found.childNodes);
  earlier.hidden = true;
  const open = results.querySelector("[data-result][data-ended=no]");
  if (open) verdicts.follow(open.dataset.result);
  return /** @type {HTMLInputElement | null} */ (holder.querySelector("input[name=over]"))?.value ?? "";
}
