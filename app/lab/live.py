"""The parts of a run's page that change while it runs: drawn once a run, however many look on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from markupsafe import Markup
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.moment import Moment
from app.core.templating import environment
from app.lab import run_page
from app.lab.folds import Folds
from app.lab.models import Run
from app.lab.run_page import RunPage
from app.lab.view import RunView

# What stands in the head changes with the clock and the queue; it is little, and drawn every time.
HEAD = ("title", "status", "elapsed", "action", "waits", "callout", "receipt")
# By panel the fields of the view that it shows. Every panel may also change when the run's status does.
PANELS: Mapping[str, tuple[str, ...]] = {
    "failure": (),
    "comparison": (),
    "terms": (),
    "figures": ("points",),
    "lesson": (),
    "timeline": ("spans", "details", "split"),
    "next": (),
    "besides": (),
    "memory": ("memory", "state"),
    "communication": ("transfers", "memory"),
    "readings": ("readings",),
    "log": ("log", "log_dropped"),
}
PARTS = (*HEAD, *PANELS)
_WITH_PICTURES = frozenset({"timeline", "figures"})


@dataclass(frozen=True)
class Part:
    """A part's HTML, and the number of the drawing it changed in last."""

    name: str
    html: Markup
    drawing: int


def draw_parts(shown: RunPage, names: Iterable[str] = PARTS) -> dict[str, Markup]:
    """The HTML of parts by name; empty where a run has nothing to show there."""
    return {name: _drawn(name, shown) for name in names}


def _drawn(name: str, shown: RunPage) -> Markup:
    html = environment().get_template(f"lab/parts/{name}.html").render(vars(shown))
    return Markup(html.strip())  # noqa: S704 - the template has escaped what it was given


class LivePage:
    """What was drawn of one run. `draw` may be called from any thread."""

    def __init__(
        self, database: Database, content: Catalogue, folds: Folds, run_id: int, moment: Callable[[], Moment]
    ) -> None:
        self._database, self._content, self._folds, self._run_id = database, content, folds, run_id
        self._moment = moment
        self._lock = Lock()
        self._status = ""
        self._view = RunView()
        self._parts: Mapping[str, Part] = {}
        self.drawing = 0  # how often it was drawn

    def draw(self, *, once: bool = False, beside: Callable[[Session, Run], None] | None = None) -> None:
        """Draw what may have changed since the last time; with `once` only what nobody has drawn yet. The session is
        given back before anything is rendered. What else is to be read of the run is read by `beside`, in any case and
        as of the same moment: to read a run twice costs as much as to draw it."""
        if once and self.drawing and beside is None:
            return
        with self._lock:
            with self._database.read() as session:
                run = session.get(Run, self._run_id)
                if run is None:
                    return
                if beside is not None:
                    beside(session, run)
                if once and self.drawing:
                    return
                view = self._folds.view(session, run)
                names = [*HEAD, *(name for name in PANELS if self._may_have_changed(name, run, view))]
                is_drawn = not _WITH_PICTURES.isdisjoint(names)
                shown = run_page.show(session, run, self._content, view, self._moment(), is_drawn=is_drawn)
            fresh = draw_parts(shown, names)
            drawing = self.drawing + 1
            changed = {name: Part(name, html, drawing) for name, html in fresh.items() if self._html_of(name) != html}
            self._parts = {**self._parts, **changed}
            self._status, self._view, self.drawing = run.status, view, drawing

    def parts_after(self, drawing: int) -> list[Part]:
        """The parts that changed behind that drawing; behind drawing 0 all of them."""
        return [part for part in self._parts.values() if part.drawing > drawing]

    def _html_of(self, name: str) -> str | None:
        part = self._parts.get(name)
        return part.html if part else None

    def _may_have_changed(self, panel: str, run: Run, view: RunView) -> bool:
        return run.status != self._status or any(getattr(view, f) != getattr(self._view, f) for f in PANELS[panel])
