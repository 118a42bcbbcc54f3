"""What was done today, what to do next and why, and how the learner stands: from every room's evidence. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Generic, Protocol, TypeVar

from app.content.evidence import Evidence, Kind
from app.core import times
from app.core.moment import Moment
from app.core.share import Share
from app.progress.evidence import Standing

SHOWN_CONCEPTS = 6
_DONE: Mapping[Kind, str] = {
    "problem": "Problems settled",
    "free answer": "Free answers",
    "interview": "Interviews sat",
    "run": "Runs finished",
    "code lab": "Code labs passed",
}


class Named(Protocol):
    """A problem or an experiment."""

    @property
    def id(self) -> str: ...

    @property
    def about(self) -> str: ...


Item = TypeVar("Item", bound=Named)


@dataclass(frozen=True)
class Offer(Generic[Item]):
    """What to do next, and why that."""

    item: Item
    why: str


@dataclass(frozen=True)
class Lane:
    """A concept's row: everything in percent, as `partials/charts.html` draws intervals."""

    label: str
    says: str
    dot: str
    low: str
    high: str
    value: str
    cells: tuple[str, ...]
    href: str
    tick: str | None = None


@dataclass(frozen=True)
class Bar:
    """Cards that come back on a day."""

    height: str
    count: int
    label: str
    name: str
    is_now: bool


def done_today(cards: int, every: Sequence[Evidence], since: datetime) -> list[tuple[str, int]]:
    """What was done on the study day that began at `since`, by kind; what was not is left out."""
    # The parts of one sitting are one: they were closed at one moment. Those of a generated one say something of the
    # questions it borrowed, as M5.bubble.
    counts = {kind: len({_done(each) for each in every if each.kind == kind and each.at >= since}) for kind in _DONE}
    named = [("Cards answered", cards), *((title, counts[kind]) for kind, title in _DONE.items())]
    return [(title, count) for title, count in named if count]


def _done(evidence: Evidence) -> tuple[str, datetime]:
    return "" if "." in evidence.item_id else evidence.item_id, evidence.at


def choose(
    items: Sequence[Item],
    asked: Item | None,
    kind: Kind,
    every: Sequence[Evidence],
    since: datetime,
    moment: Moment,
    fresh: str,
) -> Offer[Item] | None:
    """What the plan asks for; else the first that was never done, else the one that went worst last time.

    What went wrong today comes again tomorrow: today only where the plan asks for it, and then that is said. `fresh`
    follows what an item is about.
    """
    last = {each.item_id: each for each in every if each.kind == kind}
    if asked is not None:
        reason = "The plan's next checkpoint asks for it."
        went = _went(last.get(asked.id), moment)
        return Offer(asked, f"{went} {reason}" if went else f"{asked.about} {reason}")
    left = [item for item in items if not _failed_since(last.get(item.id), since)]
    item = min(left, key=lambda each: _rank(last.get(each.id)), default=None)
    if item is None:
        return None
    went = _went(last.get(item.id), moment)
    return Offer(item, f"{went} {fresh}" if went else f"{item.about} {fresh}")


def _failed_since(evidence: Evidence | None, since: datetime) -> bool:
    return evidence is not None and evidence.share is not None and evidence.share < 1 and evidence.at >= since


def _rank(evidence: Evidence | None) -> float:
    return -1.0 if evidence is None else 1.0 if evidence.share is None else evidence.share


def _went(evidence: Evidence | None, moment: Moment) -> str:
    """How it went last time, in a sentence."""
    if evidence is None or evidence.share is None:
        return ""
    day = times.day(evidence.at, moment)
    if evidence.share >= 1:
        return f"You had it right {day}."
    return (
        f"You missed it {day}." if evidence.share == 0 else f"You had {100 * evidence.share:.0f} % of it right {day}."
    )


def standing_lanes(standings: Mapping[str, Standing], titles: Mapping[str, str]) -> list[Lane]:
    """The concepts that stand weakest among those with results, with 95 % Wilson intervals; the weakest first."""
    known = [each for each in standings.values() if each.recent is not None]
    weakest = sorted(known, key=lambda each: (each.recent or 0.0, -each.results))[:SHOWN_CONCEPTS]
    return [_lane(each, titles[each.concept_id]) for each in weakest]


def _lane(standing: Standing, title: str) -> Lane:
    recent = standing.recent or 0.0
    low, high = Share(round(recent * standing.results), standing.results).interval
    results = f"{standing.results} {'result' if standing.results == 1 else 'results'}"
    return Lane(
        title,
        results,
        f"{100 * recent:.1f}",
        f"{100 * min(low, recent):.1f}",
        f"{100 * max(high, recent):.1f}",
        f"{100 * recent:.0f} %",
        (results, f"{100 * recent:.0f} %", f"{100 * low:.0f} to {100 * high:.0f} %", standing.word),
        f"/reference/concepts#{standing.concept_id}",
    )


def due_bars(counts: Sequence[int], first: date) -> list[Bar]:
    """Cards that come back on each day from `first` on."""
    most = max([*counts, 1])
    days = [first + timedelta(days=index) for index in range(len(counts))]
    return [
        Bar(f"{100 * count / most:.1f}", count, f"{day:%a}"[:2], f"{day:%A} {day.day} {day:%B}", day == first)
        for day, count in zip(days, counts, strict=True)
    ]
