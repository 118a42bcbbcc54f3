"""Which card comes next, and how much of today is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice, repeat
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.study import library, queries
from app.study.days import study_day
from app.study.fsrs.scheduling import LEECH_LAPSES
from app.study.policy import Policy
from app.study.queue import queues
from app.study.queue.filters import NOTHING, Filter
from app.study.queue.queues import Day, Queue, Scheduled
from app.study.queue.roster import Roster, forget, roster

LEARN_AHEAD = timedelta(minutes=20)  # when nothing else is left, a card in its learning steps need not be waited for
LOOKED_AT = 16  # known cards read to find the first that may be shown; where there are more, the database counts them
LOOKED_AT_LEARNING = 2  # of those in their first steps the first may be shown
EVERYTHING = 1_000_000


@dataclass(frozen=True)
class Agenda:
    """Today: which card is first, what was done, and how much is left of what.

    `buried` cards are due but wait for tomorrow, because a card of their cluster was answered today. `is_untouched`
    says that the first card was looked up and has no state. `load` is how many cards come back on each day from today.
    """

    first: str | None
    is_untouched: bool
    done: int
    learning: int
    due: int
    new: int
    buried: int
    new_waiting: Callable[[], int]
    has_answers: bool
    load: Mapping[int, int]

    @property
    def left(self) -> int:
        return self.learning + self.due + self.new


def agenda(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    policy: Policy,
    now: datetime,
    zone: ZoneInfo,
    extra_new: int = 0,
    wanted: Filter = NOTHING,
) -> Agenda:
    """The learner's day. `extra_new` cards are introduced beyond today's share; `wanted` narrows what is shown."""
    known = roster(session, learner_id, catalogue, policy, now)
    day = queues.read_day(session, learner_id, *study_day(now, zone))
    takes = _takes(session, learner_id, catalogue, wanted)
    until = now + LEARN_AHEAD
    most_learning = _most(wanted, "learning", EVERYTHING if known.gone else LOOKED_AT_LEARNING)
    most_known = _most(wanted, "due", LOOKED_AT)
    in_steps, known_ones = queues.read_queues(session, learner_id, until, most_learning, now, most_known)
    learning = _learning(in_steps, most_learning, known, now, takes)
    due = _due(session, learner_id, known_ones, most_known, known, day, now, takes)
    reviews_left = EVERYTHING if policy.reviews_per_day is None else max(0, policy.reviews_per_day - day.repeated)
    new_allowed = max(0, policy.new_per_day + extra_new - day.introduced) if _may(wanted, "new") else 0
    new = _count(islice(_remaining(known, day, takes), new_allowed))
    first, is_untouched = learning.now or (due.first if reviews_left else None), False
    if first is None and new:
        before = len(known.answered)
        first, is_untouched = next(_fresh(session, learner_id, known, day, takes, now), (None, False))
        if first is None or len(known.answered) > before:
            new = _count(islice(_remaining(known, day, takes), new_allowed)) if first else 0
    return Agenda(
        first or learning.ahead,
        is_untouched,
        day.done,
        learning.count,
        min(due.count, reviews_left),
        new,
        due.buried,
        lambda: _count(_remaining(known, day, takes)) if _may(wanted, "new") else 0,
        known.newest[0] > 0,
        known.load,
    )


def next_due_at(session: Session, learner_id: int, now: datetime) -> datetime | None:
    """When the next card returns."""
    return queues.find_next_due(session, learner_id, now)


Takes = Callable[[str, Scheduled | None], bool]


def _may(wanted: Filter, kind: str) -> bool:
    """Whether cards of this kind can be in the filter at all."""
    kinds = {"learning": ("", "learning", "due", "hard", "flagged"), "due": ("", "due", "hard", "flagged")}
    return wanted.state in {**kinds, "new": ("", "new")}[kind]


def _most(wanted: Filter, kind: str, plain: int) -> int:
    """How many cards of a kind are read: none that cannot be in the filter, all where it is yet to sort them out."""
    if not _may(wanted, kind):
        return 0
    return EVERYTHING if wanted else plain


def _takes(session: Session, learner_id: int, catalogue: Catalogue, wanted: Filter) -> Takes:
    if not wanted:
        return lambda _card_id, _row: True
    cards = library.all_cards(session, learner_id, catalogue)

    def takes(card_id: str, row: Scheduled | None) -> bool:
        if wanted.state == "hard" and (row is None or row.lapses < LEECH_LAPSES):
            return False
        if wanted.state == "flagged" and (row is None or row.flagged_at is None):
            return False
        return wanted.takes(cards[card_id])

    return takes


@dataclass(frozen=True)
class _Learning:
    """Cards in their first steps: the first whose minutes are over, else the first that need not be waited for."""

    count: int
    now: str | None
    ahead: str | None


@dataclass(frozen=True)
class _Due:
    """Known cards that are due, and how many of them wait because of a card near to them."""

    count: int
    buried: int
    first: str | None


def _learning(queue: Queue, most: int, known: Roster, now: datetime, takes: Takes) -> _Learning:
    rows = [row for row in queue.read if known.is_current(row.card_id, row.revision) and takes(row.card_id, row)]
    count = len(rows) if len(queue.read) < most else queue.total
    if not rows:
        return _Learning(count, None, None)
    first = rows[0]
    is_over = first.available_at <= now
    return _Learning(count, first.card_id if is_over else None, None if is_over else first.card_id)


def _due(
    session: Session, learner_id: int, queue: Queue, most: int, known: Roster, day: Day, now: datetime, takes: Takes
) -> _Due:
    def is_near(row: Scheduled) -> bool:
        return known.cluster_of.get(row.card_id) in day.clusters

    def fits(row: Scheduled) -> bool:
        return known.is_current(row.card_id, row.revision) and takes(row.card_id, row) and not is_near(row)

    rows = [row.card_id for row in queue.read if fits(row)]
    if len(queue.read) < most:
        return _Due(len(rows), sum(map(is_near, queue.read)), next(iter(rows), None))
    hidden = known.count_hidden(day.clusters)
    count = queue.total - hidden
    if not rows and count > 0:
        _, everything = queues.read_queues(session, learner_id, now, 0, now, EVERYTHING)
        rows = [row.card_id for row in everything.read if fits(row)]
    return _Due(max(0, count), hidden, next(iter(rows), None))


def _fresh(
    session: Session, learner_id: int, known: Roster, day: Day, takes: Takes, now: datetime
) -> Iterator[tuple[str, bool]]:
    """New cards in the order of introduction, each looked up before it is named, and whether it has no state."""
    remaining = _remaining(known, day, takes)
    sizes = chain((1,), repeat(LOOKED_AT))  # the first is nearly always the one
    while chunk := list(islice(remaining, next(sizes))):
        touched = {each.card_id: each for each in queries.list_standing_of(session, learner_id, chunk)}
        for card_id in chunk:
            each = touched.get(card_id)
            if each is not None and each.due_at is not None and known.is_current(card_id, each.revision):
                known.answered.add(card_id)
            elif each is None or not (each.suspended_at or (each.buried_until and each.buried_until > now)):
                yield card_id, each is None
        if len(chunk) > 1 and known.answered.issuperset(chunk):  # met elsewhere, in numbers: look afresh next time
            forget(session, learner_id)


def _remaining(known: Roster, day: Day, takes: Takes) -> Iterator[str]:
    """New cards as far as the roster knows, without those near to a card answered today."""
    for card_id in known.fresh:
        if card_id not in known.answered and known.cluster_of.get(card_id) not in day.clusters and takes(card_id, None):
            yield card_id


def _count(cards: Iterator[str]) -> int:
    return sum(1 for _ in cards)
