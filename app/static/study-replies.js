// A request that got no reply must not leave the learner guessing: the page asks whether the answer was counted, as soon
// as there is somebody to ask, and says which. Sending it again would be safe as well: it carries a key.
import { fieldsOf, within } from "./dom.js";

const ASK_AGAIN_MILLISECONDS = 1000;

export function watchReplies(page) {
  let asking = false;

  // A request that failed must not leave the buttons dead.
  for (const name of ["htmx:error", "htmx:finally:request"]) {
    document.addEventListener(name, () => {
      for (const form of document.querySelectorAll("[data-sent]")) delete form.dataset.sent;
    });
  }

  document.addEventListener("htmx:error", () => {
    const form = page()?.querySelector("[data-rate]");
    if (!form || asking || !form.dataset.level) {
      say("No reply from RankZero. Try again in a moment.");
      return;
    }
    asking = true;
    lost(form).finally(() => (asking = false));
  });

  document.addEventListener(
    "submit",
    (event) => {
      const form = within(event, "[data-rate]");
      if (form && event.submitter) form.dataset.level = /** @type {HTMLButtonElement} */ (event.submitter).value;
    },
    true,
  );

  async function lost(form) {
    const { card_id: card, version, key } = Object.fromEntries(fieldsOf(form));
    say(`No reply from RankZero. Looking whether your answer to ${card} was counted …`);
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
    const found = await whenItAnswers(`/api/v1/study/reviews/${encodeURIComponent(card)}/${version}?key=${key}`);
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
    delete form.dataset.level;
    if (!found.recorded) {
      say(`Your answer to ${card} was not counted. Rate it again.`);
      return;
    }
    const heard = () =>
      say(found.same_request ? `Your answer to ${card} was counted.` : `${card} was answered in another tab.`);
    document.addEventListener("htmx:after:swap", heard, { once: true });
    await htmx.ajax("GET", page().dataset.home, { target: "#study", swap: "outerHTML" });
  }

  const say = (text) => {
    const notice = page()?.querySelector(".notice");
    if (notice) notice.textContent = text;
  };
}

/**
 * What became of a rating, as soon as the server answers at all.
 * @param {string} address
 * @returns {Promise<{ recorded: boolean, same_request: boolean }>}
 */
async function whenItAnswers(address) {
  for (;;) {
    try {
      const reply = await fetch(address, { headers: { Accept: "application/json" }, cache: "no-store" });
      if (reply.ok) return await reply.json();
    } catch {
      // still away
    }
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MILLISECONDS));
  }
}
