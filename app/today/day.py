"""What was done today, what to do next and why, and how the learner stands: from every room's evidence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Generic, Protocol, TypeVar

from app.content.evidence import Evidence, Kind
from app.core import times
from app.core.moment import Moment
from app.core.share import Share
from app.progress.evidence import FEWEST, Standing
from app.today.reasons import WENT_WRONG, Reasons
from app.words import counted, listed

SHOWN_CONCEPTS = 6
_DONE: Mapping[Kind, str] = {
    "problem": "Problems settled",
    "free answer": "Free answers",
    "interview": "Interviews sat",
    "run": "Experiments run",
    "code lab": "Code labs passed",
    "puzzle": "Puzzles solved",
}


class Named(Protocol):
    """A problem, an experiment or a card."""

    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Named)


@dataclass(frozen=True)
class Offer(Generic[Item]):
    """What to do next, and why that; `again` says it where the reason was given already."""

    item: Item
    why: str
    again: str = ""


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
    is_thin: bool  # too few results to say anything
    results: int = 0
    tick: str | None = None


@dataclass(frozen=True)
class Bar:
    """Cards that come back on a day, and on the first day those that are met then, upon them."""

    height: str
    count: int
    label: str
    name: str
    is_now: bool
    new: int = 0
    new_percent: str = "0"  # of this bar's height, that theirs is


def done_today(cards: int, every: Sequence[Evidence], since: datetime) -> list[tuple[str, int]]:
    """What was done on the study day that began at `since`, by kind; what was not is left out."""
    # The parts of one sitting are one: they were closed at one moment. Those of a generated one say something of the
    # questions it borrowed, as M5.bubble.
    counts = {kind: len({_done(each) for each in every if each.kind == kind and each.at >= since}) for kind in _DONE}
    named = [("Cards answered", cards), *((title, counts[kind]) for kind, title in _DONE.items())]
    return [(title, count) for title, count in named if count]


def _done(evidence: Evidence) -> tuple[str, datetime]:
    return "" if "." in evidence.item_id else evidence.item_id, evidence.at


def ranked(
    items: Sequence[Item],
    asked: Item | None,
    kind: Kind,
    every: Sequence[Evidence],
    since: datetime,
    moment: Moment,
    reasons_for: Callable[[Item], Reasons],
) -> list[Offer[Item]]:
    """What to do next, the first choice first: what the plan asks for, what went wrong last time, what was never done
    (first where its idea went wrong elsewhere), and then what is known, the worst first. A reason is given once: of
    those with the same one, the first has it and comes before the others.

    What went wrong today comes again tomorrow: today only where the plan asks for it, and then that is said.
    """
    last = {each.item_id: each for each in every if each.kind == kind}
    offers = []
    if asked is not None:
        went = _went(last.get(asked.id), moment)
        offers.append(Offer(asked, f"{went} The plan's next checkpoint asks for it.".lstrip()))
    left = [item for item in items if item != asked and not _failed_since(last.get(item.id), since)]
    reasons = {each.id: reasons_for(each) for each in left}
    left.sort(key=lambda each: (_rank(last.get(each.id)), not reasons[each.id].miss))
    given, chosen = set[str](), list[tuple[float, int, Offer[Item]]]()
    for item in left:
        found, went, rank = reasons[item.id], _went(last.get(item.id), moment), _rank(last.get(item.id))
        why = went or next((each for each in (found.miss, found.other) if each and each not in given), found.again)
        place = 0 if why == found.miss else 1 if found.miss else 2
        given.add(why)
        chosen.append((rank, place, Offer(item, why, found.again)))
    return [*offers, *(offer for _, _, offer in sorted(chosen, key=lambda each: each[:2]))]


def _failed_since(evidence: Evidence | None, since: datetime) -> bool:
    return evidence is not None and evidence.share is not None and evidence.share < 1 and evidence.at >= since


def _rank(evidence: Evidence | None) -> float:
    """What went wrong before what was never done, and that before what went right."""
    if evidence is None:
        return WENT_WRONG
    share = 1.0 if evidence.share is None else evidence.share
    return share if share < WENT_WRONG else 1 + share


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
    """Concepts with 95 % Wilson intervals, the weakest first: of those with results, the weakest that there are enough
    of to say so, and only then others."""
    known = [each for each in standings.values() if each.recent is not None]
    weakest = sorted(known, key=lambda each: (each.results < FEWEST, each.recent or 0.0, -each.results))
    alike: dict[tuple[str, int], list[Standing]] = {}
    for each in weakest:
        alike.setdefault((f"{100 * (each.recent or 0.0):.0f}", each.results), []).append(each)
    shown = sorted(list(alike.values())[:SHOWN_CONCEPTS], key=lambda each: (each[0].recent or 0.0, -each[0].results))
    return [_lane(each, [titles[one.concept_id] for one in each]) for each in shown]


def _lane(alike: Sequence[Standing], names: Sequence[str]) -> Lane:
    """A row of concepts that stand alike: what one of them says, the others would repeat."""
    standing, title = alike[0], listed(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more alike"
    recent = standing.recent or 0.0
    low, high = Share(round(recent * standing.results), standing.results).interval
    is_thin = standing.results < FEWEST
    results = counted(standing.results, "result")
    return Lane(
        title,
        results,
        f"{100 * recent:.1f}",
        f"{100 * min(low, recent):.1f}",
        f"{100 * max(high, recent):.1f}",
        f"{round(recent * standing.results, 1):g} of {standing.results}" if is_thin else f"{100 * recent:.0f} %",
        (results, f"{100 * recent:.0f} %", f"{100 * low:.0f} to {100 * high:.0f} %", standing.word),
        f"/reference/concepts#{standing.concept_id}",
        is_thin,
        standing.results,
    )


def due_bars(counts: Sequence[int], first: date, new: int = 0) -> list[Bar]:
    """Cards that come back on each day from `first` on, and the `new` ones to be met on it."""
    most = max([counts[0] + new if counts else 0, *counts, 1])
    days = [first + timedelta(days=index) for index in range(len(counts))]
    return [
        Bar(
            f"{100 * (count or (new if day == first else 0)) / most:.1f}",
            count,
            f"{day:%a}"[:2],
            f"{day:%A} {day.day} {day:%B}",
            day == first,
            new if day == first else 0,
            f"{100 * new / (count or new) if day == first and new else 0:.1f}",
        )
        for day, count in zip(days, counts, strict=True)
    ]
