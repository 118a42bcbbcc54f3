// A program in a sitting: Tab indents, the visible checks run without leaving the page, results come as they are there.
// Without this script the form works.
const field = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("textarea#answer"));
const form = field?.form;
const results = document.querySelector("[data-results]");
const refused = document.querySelector("[data-refused]");
const INDENT = "    ";

// Tab indents; after Escape it leaves.
let leaves = false;
field?.addEventListener("keydown", (event) => {
  if (event.key === "Escape") leaves = true;
  else if (event.key === "Tab" && !event.shiftKey && !leaves) {
    event.preventDefault();
    field.setRangeText(INDENT, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (event.key !== "Shift") leaves = false;
});

form?.addEventListener(
  "submit",
  async (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
    if (!button?.hasAttribute("data-run")) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // nothing is given yet, and drafts go on being saved
    button.disabled = true;
    const body = new URLSearchParams({ part: form.querySelector("input[name=part]").value, answer: field.value });
    const reply = await fetch(button.formAction, {
      method: "POST",
      body,
      headers: { Accept: "text/html", "HX-Request": "true" },
    }).catch(() => null);
    button.disabled = false;
    await take(reply);
  },
  true,
);

/** Put the results of the page that came in place of those that are shown, or say why there are none. */
async function take(reply) {
  const holder = document.createElement("div");
  holder.innerHTML = reply ? await reply.text() : "";
  const found = holder.querySelector("[data-results]");
  const why = holder.querySelector("[role=alert]:not([hidden])");
  refused.textContent = why?.textContent.trim() ?? (found ? "" : "The server did not answer. Try again.");
  refused.hidden = refused.textContent === "";
  if (!found) return;
  results.replaceChildren(...found.childNodes);
  follow();
}

let source = null;
let turn = 0;

function follow() {
  const open = results.querySelector("[data-result][data-ended=no]");
  source?.close();
  if (!open) return;
  const id = open.dataset.result;
  const mine = new EventSource(`/api/v1/labs/submissions/${id}/events`);
  source = mine;
  mine.addEventListener("chunk", () => show(id));
  mine.addEventListener("end", () => {
    mine.close();
    show(id);
  });
}

async function show(id) {
  const mine = ++turn;
  const reply = await fetch(`/labs/submissions/${id}`, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (mine !== turn || !reply?.ok) return;
  const holder = document.createElement("div");
  holder.innerHTML = await reply.text();
  const found = holder.querySelector("[data-result]");
  if (mine === turn && found) results.replaceChildren(found);
}

if (results) follow();
