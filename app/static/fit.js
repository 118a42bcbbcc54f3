// Which points are left out stands in the address; a list of points that was opened stays so while its law is fitted anew.
const lists = () => /** @type {HTMLDetailsElement[]} */ ([...document.querySelectorAll("#laws details[id]")]);
let opened = new Set();

document.addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.name !== "without" || !target.form) return;
  const out = [...new FormData(target.form)].map(([name, value]) => [name, String(value)]);
  history.replaceState(null, "", `${location.pathname}?${new URLSearchParams(out)}`);
  opened = new Set(
    lists()
      .filter((list) => list.open)
      .map((list) => list.id),
  );
});

document.addEventListener("htmx:after:swap", () => {
  for (const list of lists()) list.open ||= opened.has(list.id);
});
