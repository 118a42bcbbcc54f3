// A program in a sitting: the code labs' editor, the visible checks run without leaving the page, results come as they
// are there. Without this script the form works.
import { goToLine, makeEditor } from "./code-editor.js";
import { Verdicts } from "./verdicts.js";

const field = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("textarea#answer"));
const form = field?.form;
const results = document.querySelector("[data-results]");
const verdicts = results && new Verdicts(results, document.querySelector("[data-said]"), () => {});
const refused = document.querySelector("[data-refused]");
const earlier = /** @type {HTMLElement | null} */ (document.querySelector("[data-of-earlier-text]"));
const version = /** @type {HTMLInputElement | null} */ (form?.elements.namedItem("over"));
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
  form.addEventListener("restored", () => {
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: field.value } });
  });
  form.addEventListener("chosen", () => editor.focus());
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
    const found = await take(reply);
    if (found) form.dispatchEvent(new CustomEvent("taken", { detail: { text: answer, version: found } }));
  },
  true,
);

/** Put the results of the page that came in place of those that are shown, or say why there are none; returns the version
 * of the program that was run. */
async function take(reply) {
  const holder = document.createElement("div");
  holder.innerHTML = reply ? await reply.text() : "";
  const found = reply?.ok && holder.querySelector("[data-results]");
  if (holder.querySelector("[data-other]:not([hidden])")) form.dispatchEvent(new Event("differs"));
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
