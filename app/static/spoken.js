// A sitting aloud: the browser speaks the interviewer's part, and writes down what is said, both on this machine or not at
// all. What stands in the answer's box is the record.
const KEPT = "interview aloud";
const SCENE = "interview scene spoken";
const LONGEST_WAIT_MS = 3000; // for the voices of a browser that says nothing when it has none
const speech = window.speechSynthesis;

const bar = /** @type {HTMLElement} */ (document.querySelector("[data-spoken]"));
const root = /** @type {HTMLElement | null} */ (document.querySelector("[data-sitting]"));
const part = (name) => /** @type {HTMLElement | null} */ (bar.querySelector(`[data-spoken-${name}]`));

/** @returns {boolean} */
function isOn() {
  try {
    return localStorage.getItem(KEPT) === "on";
  } catch {
    return false; // a browser that keeps nothing is silent
  }
}

function keep(on) {
  try {
    localStorage.setItem(KEPT, on ? "on" : "off");
  } catch {
    // as above: it holds for this page
  }
}

/** A voice of this machine that speaks English; one that another machine speaks with would be told the questions. */
function voice() {
  const ours = speech.getVoices().filter((each) => each.localService && /^en\b/i.test(each.lang));
  return ours.find((each) => each.default) ?? ours[0] ?? null;
}

// Dictation. The constructor is not in TypeScript's library yet.
const browser = /** @type {any} */ (window);
const Recognition = browser.SpeechRecognition ?? browser.webkitSpeechRecognition;
const dictate = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-dictate]"));
const why = /** @type {HTMLElement | null} */ (document.querySelector("[data-dictate-said]"));
const field = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("textarea#answer"));
const language = /^en\b/i.test(navigator.language) ? navigator.language : "en-US";
/** @type {any} */
let listening = null;

/** Why this browser cannot write down on this machine what is said; nothing where it can. */
async function whyNot() {
  if (!Recognition?.available || !("processLocally" in Recognition.prototype))
    return "Not dictated: this browser cannot write down speech on this machine alone.";
  const status = await Recognition.available({ langs: [language], processLocally: true }).catch(() => "unavailable");
  if (status === "available") return "";
  return status === "unavailable"
    ? "Not dictated: this browser cannot write down English on this machine alone."
    : "Not dictated: this browser's English for speech is not installed on this machine.";
}

const MISHAPS = {
  "not-allowed": "The browser was not allowed the microphone.",
  "audio-capture": "There is no microphone.",
  "no-speech": "Nothing was heard.",
  "service-not-allowed": "The browser cannot do it on this machine, so it is not done.",
  "language-not-supported": "The browser cannot do it on this machine, so it is not done.",
};

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻";
/** @type {[RegExp, string | ((found: string) => string)][]} */
const SAID = [
  [/[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+/g, (found) => ` to the ${[...found].map((each) => "0123456789-"[RAISED.indexOf(each)]).join("")}`],
  [/×/g, " times "],
  [/−/g, " minus "],
  [/≈/g, " about "],
  [/\bGB\/s\b/g, " gigabytes per second"],
  [/\bTFLOP\/s\b/g, " teraflops per second"],
  [/[“”‘’]/g, " "],
];

/** What is shown as a person says it, sentence by sentence. What can only be read is left to be read. */
function sentences(element) {
  const copy = /** @type {HTMLElement} */ (element.cloneNode(true));
  for (const each of copy.querySelectorAll("pre, table, svg")) each.replaceWith(" See the page. ");
  for (const each of copy.querySelectorAll("q")) each.replaceWith(` ${each.textContent} `);
  for (const each of copy.querySelectorAll("p, li, div, dd")) each.append(" \n");
  let text = copy.textContent;
  for (const [what, as] of SAID) text = text.replace(what, /** @type {any} */ (as));
  const found = text.match(/[^.?!\n]+(?:[.](?=\S)[^.?!\n]*)*[.?!]?/g) ?? [];
  return found.map((each) => each.replace(/\s+/g, " ").trim()).filter((each) => /\w/.test(each));
}

function stop() {
  speech?.cancel();
}

// Nobody's browser is asked for anything of speech before it is wanted.
function stopIfOn() {
  if (isOn()) stop();
}

/** @param {HTMLElement[]} elements */
function speak(elements) {
  stop();
  const chosen = voice();
  for (const text of elements.flatMap(sentences)) {
    const said = new SpeechSynthesisUtterance(text);
    said.voice = chosen;
    said.lang = chosen.lang;
    said.addEventListener("error", (event) => {
      if (event.error === "not-allowed") tell("The browser speaks once you have pressed something here: Repeat.");
    });
    speech.speak(said);
  }
}

function tell(words) {
  part("said").textContent = words;
}

/** The problem once, when it is new, then what is asked. @param {boolean} again */
function speakQuestion(again) {
  const [scene, asked] = ["[data-scene]", "[data-prompt]"].map((each) => root?.querySelector(each));
  const found = /** @type {HTMLElement[]} */ ([asked].filter(Boolean));
  const problem = scene instanceof HTMLElement ? `${root.dataset.sitting} ${scene.dataset.scene}` : "";
  if (scene instanceof HTMLElement && (again || sessionStorage.getItem(SCENE) !== problem)) found.unshift(scene);
  if (problem) sessionStorage.setItem(SCENE, problem);
  speak(found);
}

const NO_VOICE = "Not read aloud: this browser has no English voice of its own on this machine.";

/** Once there is a voice: some browsers have none until later, and those that have none say nothing. */
function begin(again) {
  const come = () => {
    if (!isOn() || !voice()) return;
    clearTimeout(late);
    speech.removeEventListener("voiceschanged", come);
    tell(root ? "" : "The interviewer will speak.");
    showHandles(true);
    if (root) speakQuestion(again);
  };
  const late = setTimeout(() => tell(NO_VOICE), speech ? LONGEST_WAIT_MS : 0);
  speech?.addEventListener("voiceschanged", come);
  if (speech) come();
}

function showHandles(on) {
  for (const each of bar.querySelectorAll("[data-spoken-stop], [data-spoken-repeat]")) each.hidden = !on;
}

function show() {
  const on = isOn();
  const button = part("switch");
  button.setAttribute("aria-pressed", String(on));
  button.hidden = false;
  showHandles(false);
  tell("");
  offerDictation(on);
}

part("switch").addEventListener("click", () => {
  keep(!isOn());
  show();
  if (isOn()) begin(true);
  else stop();
});
part("stop")?.addEventListener("click", stop);
part("repeat")?.addEventListener("click", () => speakQuestion(true));
addEventListener("pagehide", stopIfOn);

// who begins to answer is not talked over
const form = /** @type {HTMLFormElement | null} */ (root?.querySelector("[data-answer]"));
for (const name of ["input", "change", "submit"]) form?.addEventListener(name, stopIfOn);

function listen() {
  stop(); // or it writes down the interviewer
  const heard = new Recognition();
  heard.processLocally = true;
  heard.lang = language;
  heard.continuous = true;
  heard.addEventListener("result", (event) => {
    for (let at = event.resultIndex; at < event.results.length; at++)
      if (event.results[at].isFinal) write(event.results[at][0].transcript.trim());
  });
  heard.addEventListener("error", (event) => {
    why.textContent = MISHAPS[event.error] ?? "Dictation ended.";
  });
  heard.addEventListener("end", () => {
    if (listening === heard) ended();
  });
  listening = heard;
  why.textContent = "Listening, on this machine. Correct below what it writes.";
  dictate.setAttribute("aria-pressed", "true");
  heard.start();
}

function ended() {
  listening = null;
  dictate.setAttribute("aria-pressed", "false");
  if (why.textContent.startsWith("Listening")) why.textContent = "";
}

/** At the place of the cursor, as if it was typed: it is saved as drafts are. */
function write(words) {
  const before = field.value.slice(0, field.selectionStart);
  const gap = before === "" || /\s$/.test(before) ? "" : " ";
  field.setRangeText(`${gap}${words}`, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Who wants it aloud is offered it, or told why not; nobody else's browser is asked. @param {boolean} on */
async function offerDictation(on) {
  if (!dictate) return;
  const reason = on ? await whyNot() : "";
  dictate.hidden = !on || reason !== "";
  why.textContent = reason;
  if (!on) listening?.abort();
}

dictate?.addEventListener("click", () => (listening ? listening.stop() : listen()));
form?.addEventListener("submit", () => listening?.abort());

show();
if (isOn()) begin(false);
