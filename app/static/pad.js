// The scratch pad: its lines are worked out by the server, which reads them like answers and keeps nothing.

const MOST_LINES = 12;
let lines = []; // { text, result } or { text, refused }, oldest first: they outlive a check of the answers
let names = null;

/** Once the page has a pad, and again when it was replaced; without this script it stays hidden. */
export function setUpPad() {
  const pad = document.querySelector("[data-calc]");
  if (!pad) return;
  pad.hidden = false;
  const field = pad.querySelector("input");
  let at = lines.length; // where ↑ and ↓ stand in the lines
  field.addEventListener("keydown", async (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      await workOut(field);
      at = lines.length;
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      at = Math.min(Math.max(at + (event.key === "ArrowUp" ? -1 : 1), 0), lines.length);
      field.value = lines[at]?.text ?? "";
    } else if (event.key === "Escape") {
      field.blur();
    }
  });
  field.addEventListener("focus", () => offerNames(pad), { once: true });
  draw(pad);
}

async function workOut(field) {
  const text = field.value.trim();
  if (!text) return;
  const last = lines.findLast((line) => line.result)?.result;
  const body = { text, ans: last ? { value: last.value, dimension: last.dimension } : null };
  let line;
  try {
    const reply = await fetch("/api/v1/calculate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const found = await reply.json();
    line = reply.ok && !found.refused ? { text, result: found } : { text, refused: found.refused ?? found.detail };
  } catch {
    line = { text, refused: "The server did not answer. Try again." };
  }
  lines = [...lines, line].slice(-MOST_LINES);
  if (line.result) field.value = "";
  draw(field.closest("[data-calc]"));
}

function draw(pad) {
  pad.querySelector(".calc").replaceChildren(
    ...lines.map((line) => {
      const item = document.createElement("li");
      const code = document.createElement("code");
      code.textContent = line.text;
      const said = document.createElement(line.result ? "b" : "span");
      said.textContent = line.result ? line.result.text : line.refused;
      if (!line.result) item.className = "contra";
      item.append(code, said);
      return item;
    }),
  );
}

async function offerNames(pad) {
  try {
    names ??= await (await fetch("/api/v1/calculate/names")).json();
  } catch {
    return; // only a help in typing
  }
  pad.querySelector("datalist").replaceChildren(...names.map((each) => new Option(each.title, each.call)));
}
