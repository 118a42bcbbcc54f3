"""What a learner remembers of cards, handed out to other programs and taken over from them.

A memory that comes from elsewhere enters the log as one entry of kind `import`: its `memory_after` is taken as it is,
so that the log alone still rebuilds every state. The newer memory wins; none is ever replaced by an older one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.days import DAY_STARTS_HOUR
from app.core.moment import Moment
from app.study.fsrs import scheduling
from app.study.fsrs.parameters import DEFAULT_ID
from app.study.log.recording import ANSWER, IMPORT, set_available
from app.study.models import CardState, Review

GOOD = 3
AT_ONCE = 500


@dataclass(frozen=True)
class Remembered:
    """What is remembered of a card: FSRS's own fields (py-fsrs' states 1 learning, 2 known, 3 relearning) and counts.

    `stability` is in days; no `state` means a card that was only suspended.
    """

    state: int | None = None
    step: int | None = None
    stability: float = 0.0
    difficulty: float = 0.0
    due_at: datetime | None = None
    last_review_at: datetime | None = None
    reviews: int = 0
    lapses: int = 0
    is_suspended: bool = False
    revision: int = 1

    @property
    def memory(self) -> dict[str, Any] | None:
        """As the log writes a memory."""
        if self.state is None or self.due_at is None or self.last_review_at is None:
            return None
        return {
            "state": self.state,
            "step": self.step,
            "stability": self.stability,
            "difficulty": self.difficulty,
            "due": self.due_at.isoformat(),
            "last_review": self.last_review_at.isoformat(),
        }


@dataclass(frozen=True)
class Answer:
    """One answer that stands, as other programs count them."""

    card_id: str
    reviewed_at: datetime
    rating: int
    elapsed_milliseconds: int
    state_before: int | None
    state_after: int
    difficulty: float
    due_at: datetime


@dataclass
class Taken:
    """How many memories were taken over, how many older ones were not, and how many cards were suspended."""

    memories: int = 0
    kept: int = 0
    suspended: int = 0


def list_remembered(session: Session, learner_id: int) -> dict[str, Remembered]:
    """What is remembered of every card that was met or suspended, by card id."""
    rows = session.scalars(select(CardState).where(CardState.learner_id == learner_id))
    elsewhere = _counts_elsewhere(session, learner_id)
    found = ((row.card_id, _remembered(row, *elsewhere.get(row.card_id, (0, 0)))) for row in rows)
    return {card_id: each for card_id, each in found if each.memory or each.is_suspended}


def _counts_elsewhere(session: Session, learner_id: int) -> dict[str, tuple[int, int]]:
    """Reviews and lapses before the newest import of each card that has one, less the entries that stand for them."""
    query = (
        select(Review.card_id, Review.answer)
        .where(Review.learner_id == learner_id, Review.undone_at.is_(None), Review.kind == IMPORT)
        .order_by(Review.id)
    )
    found: dict[str, tuple[int, int]] = {}
    for card_id, counts in session.execute(query):
        before = json.loads(counts or "{}")
        # what stood here when the import came is part of neither count: the import replaced it
        found[card_id] = (before["reviews"] - before["stood"] - 1, before["lapses"] - before["lapsed"])
    return found


def list_answers(session: Session, learner_id: int) -> Iterator[Answer]:
    """Every answer that stands, oldest first. What was itself imported is no answer."""
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.undone_at.is_(None), Review.kind == ANSWER)
        .order_by(Review.reviewed_at, Review.id)
        .execution_options(yield_per=AT_ONCE)
    )
    for row in session.scalars(query):
        before, after = row.memory_before, row.memory_after
        yield Answer(
            row.card_id,
            row.reviewed_at,
            row.rating,
            row.elapsed_milliseconds or 0,
            before["state"] if before else None,
            after["state"],
            after["difficulty"],
            row.due_at,
        )


def take_over(session: Session, learner_id: int, offered: Mapping[str, Remembered], moment: Moment) -> Taken:
    """Take over memories by card id where they are newer than ours, to the second; suspensions as well."""
    taken = Taken()
    ids = list(offered)
    for start in range(0, len(ids), AT_ONCE):
        _take_over(session, learner_id, {each: offered[each] for each in ids[start : start + AT_ONCE]}, moment, taken)
    return taken


def _take_over(
    session: Session, learner_id: int, offered: Mapping[str, Remembered], moment: Moment, taken: Taken
) -> None:
    query = select(CardState).where(CardState.learner_id == learner_id, CardState.card_id.in_(offered))
    states = {row.card_id: row for row in session.scalars(query)}
    reviews: list[tuple[CardState, Review]] = []
    for card_id, each in offered.items():
        state = states.get(card_id)
        newer = each.memory is not None and _is_newer(each, state)
        suspends = each.is_suspended and (state is None or state.suspended_at is None)
        taken.kept += each.memory is not None and not newer
        if not newer and not suspends:
            continue
        if state is None:
            state = CardState(learner_id=learner_id, card_id=card_id, revision=each.revision, reviews=0, lapses=0)
            session.add(state)
        if newer:
            reviews.append((state, _entry(state, each, learner_id, moment.zone)))
            taken.memories += 1
        if suspends:
            state.suspended_at = moment.now
            taken.suspended += 1
        set_available(state)
    session.add_all(review for _, review in reviews)
    session.flush()
    for state, review in reviews:
        state.last_review_id = review.id
    session.flush()


def _is_newer(offered: Remembered, state: CardState | None) -> bool:
    if state is None or state.memory is None or state.revision != offered.revision:
        return True
    assert offered.last_review_at is not None, "asked of a card with a memory"
    last = state.last_review_at
    return last is None or int(offered.last_review_at.timestamp()) > int(last.timestamp())


def _entry(state: CardState, offered: Remembered, learner_id: int, zone: ZoneInfo) -> Review:
    """The log's entry, and the state brought to it. It is dated when the card was last answered, elsewhere."""
    memory = offered.memory
    assert memory is not None, "asked of a card with a memory"
    assert offered.due_at is not None
    assert offered.last_review_at is not None
    before = state.memory if state.revision == offered.revision else None
    counts = {"reviews": offered.reviews, "lapses": offered.lapses, "stood": state.reviews, "lapsed": state.lapses}
    review = Review(
        learner_id=learner_id,
        card_id=state.card_id,
        revision=offered.revision,
        level=GOOD + 1,
        rating=GOOD,
        reviewed_at=offered.last_review_at,
        due_at=offered.due_at,
        memory_before=before,
        memory_after=memory,
        time_zone=str(zone),
        day_starts_hour=DAY_STARTS_HOUR,
        scheduler=scheduling.SCHEDULER_NAME,
        parameters_id=DEFAULT_ID,
        kind=IMPORT,
        phase=scheduling.NOT_REVIEWED,
        repetition=state.reviews,
        previous_id=state.last_review_id if before else None,
        answer=json.dumps(counts),
    )
    state.revision, state.memory, state.is_learning = offered.revision, memory, scheduling.is_learning(memory)
    state.due_at, state.last_review_at, state.parameters_id = offered.due_at, offered.last_review_at, DEFAULT_ID
    state.position = scheduling.fuzz_seed(state.card_id, state.reviews)[1]
    state.reviews += 1
    return review


def _remembered(row: CardState, reviews_elsewhere: int, lapses_elsewhere: int) -> Remembered:
    memory = row.memory
    if memory is None:
        return Remembered(is_suspended=row.suspended_at is not None, revision=row.revision)
    return Remembered(
        memory["state"],
        memory["step"],
        memory["stability"],
        memory["difficulty"],
        datetime.fromisoformat(memory["due"]).astimezone(UTC),
        datetime.fromisoformat(memory["last_review"]).astimezone(UTC),
        row.reviews + reviews_elsewhere,
        row.lapses + lapses_elsewhere,
        row.suspended_at is not None,
        row.revision,
    )
