// One-handed on a phone: a swipe shows the answer, and then right is "good", left is "blank". Buttons do the same.
import { within } from "./dom.js";

const FAR = 90; // CSS pixels; less is a slip of the thumb
const NEARLY_LEVEL = 0.5; // a swipe that goes up or down by more than this share of its width scrolls

export function setUpSwipe({ page, reveal, rate }) {
  let from = null;
  const card = () => page()?.querySelector("[data-card]");

  document.addEventListener("pointerdown", (event) => {
    from = null;
    if (event.pointerType === "mouse" || !event.isPrimary) return;
    if (!within(event, "[data-card]") || within(event, "a, button, input, select, textarea, summary")) return;
    if (scrollsSideways(event.target)) return;
    from = { x: event.clientX, y: event.clientY, moved: 0 };
  });

  document.addEventListener("pointermove", (event) => {
    if (!from || !event.isPrimary) return;
    const [x, y] = [event.clientX - from.x, event.clientY - from.y];
    from.moved = Math.abs(y) > Math.abs(x) * NEARLY_LEVEL && Math.abs(y) > 12 ? 0 : x;
    show(card(), from.moved, isOpen());
  });

  for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) {
    document.addEventListener(name, (event) => {
      if (!from || !event.isPrimary) return;
      const { moved } = from;
      from = null;
      show(card(), 0);
      if (name === "pointercancel" || Math.abs(moved) < FAR || String(getSelection())) return;
      if (!isOpen()) reveal();
      else rate(moved > 0 ? 4 : 1);
    });
  }

  const isOpen = () => {
    const form = page()?.querySelector("[data-rate]");
    return Boolean(form) && !form.hidden;
  };
}

function show(card, moved, isOpen = false) {
  if (!card) return;
  card.style.translate = moved ? `${Math.sign(moved) * Math.min(Math.abs(moved) / 3, 40)}px` : "";
  if (moved && isOpen && Math.abs(moved) >= FAR) card.dataset.drag = moved > 0 ? "held" : "again";
  else delete card.dataset.drag;
}

// What lies in something that scrolls by itself, a wide table or listing, is scrolled and not swiped.
function scrollsSideways(target) {
  for (let each = target; each && !each.matches("[data-card]"); each = each.parentElement) {
    if (each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(each).overflowX)) return true;
  }
  return false;
}
