// The placement test says how many of its cards were judged. Without script the list says it by itself.
const form = document.querySelector("[data-placing]");

function count() {
  const every = [...form.querySelectorAll("fieldset")];
  const judged = every.filter((each) => each.querySelector("input:checked")).length;
  form.querySelector("[data-count]").textContent = `${judged} of ${every.length} judged.`;
}

if (form) {
  form.addEventListener("change", count);
  count();
}
