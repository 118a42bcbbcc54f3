"""Reading what a learner remembers, and what they did today.

The statements of a review are built once: putting one together costs more than the database needs to answer it. Each
reads an index's few rows, so that a card is answered as fast after a million reviews as after none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, and_, bindparam, false, func, select, true, union_all
from sqlalchemy.orm import Session

from app.study.models import CardState, ParameterSet, Review, StudySettings

MOST_NAMED = 5000  # in one IN: both databases take more


class Scheduled(NamedTuple):
    """What sorting needs to know of a card, without its memory."""

    card_id: str
    revision: int
    available_at: datetime
    lapses: int
    flagged_at: datetime | None


class Standing(NamedTuple):
    """Where a card stands, met or not."""

    card_id: str
    revision: int
    is_learning: bool
    due_at: datetime | None
    available_at: datetime | None
    suspended_at: datetime | None
    buried_until: datetime | None


class Answered(NamedTuple):
    """Reviews of one day that stand, of one cluster and phase."""

    cluster: str | None
    phase: int
    reviews: int


_LEARNER: BindParameter[int] = bindparam("learner_id")
_OF_LEARNER = CardState.learner_id == _LEARNER
_SCHEDULED = select(
    CardState.card_id, CardState.revision, CardState.available_at, CardState.lapses, CardState.flagged_at
)
_LEARNING = _SCHEDULED.where(
    _OF_LEARNER, CardState.is_learning == true(), CardState.available_at <= bindparam("until")
).order_by(CardState.available_at, CardState.position)
_IS_DUE = and_(_OF_LEARNER, CardState.is_learning == false(), CardState.available_at <= bindparam("now"))
_DUE = _SCHEDULED.where(_IS_DUE).order_by(CardState.available_at, CardState.position).limit(bindparam("most"))
_COUNT_DUE = select(func.count()).select_from(CardState).where(_IS_DUE)
_STANDING = select(
    CardState.card_id, CardState.revision, CardState.is_learning, CardState.due_at, CardState.available_at,
    CardState.suspended_at, CardState.buried_until,
).where(_OF_LEARNER)  # fmt: skip
_STANDING_OF = _STANDING.where(CardState.card_id.in_(bindparam("card_ids", expanding=True)))
_NEXT = [
    select(func.min(CardState.available_at)).where(
        _OF_LEARNER, CardState.is_learning == learning, CardState.available_at > bindparam("now")
    )
    for learning in (true(), false())
]
_DAY = (
    select(Review.cluster, Review.phase, func.count())
    .where(
        Review.learner_id == _LEARNER,
        Review.reviewed_at >= bindparam("since"),
        Review.reviewed_at < bindparam("until"),
        Review.undone_at.is_(None),
    )
    .group_by(Review.cluster, Review.phase)
)  # fmt: skip
_NEWEST = (
    select(Review.id)
    .where(Review.learner_id == _LEARNER, Review.undone_at.is_(None))
    .order_by(Review.id.desc())
    .limit(1)
)
_SETTINGS = select(StudySettings.new_per_day, StudySettings.reviews_per_day, StudySettings.desired_retention).where(
    StudySettings.learner_id == _LEARNER
)
_LOADS = {
    count: union_all(
        *(
            select(CardState.due_at, func.count())
            .where(_OF_LEARNER, CardState.due_at.between(bindparam(f"from_{i}"), bindparam(f"to_{i}")))
            .group_by(CardState.due_at)
            for i in range(count)
        )
    )
    for count in (1, 2, 3)
}


def list_learning(session: Session, learner_id: int, until: datetime) -> list[Scheduled]:
    """Cards in their first steps that return by `until`, soonest first."""
    return list(map(Scheduled._make, session.execute(_LEARNING, {"learner_id": learner_id, "until": until})))


def list_due(session: Session, learner_id: int, now: datetime, most: int) -> list[Scheduled]:
    """Known cards that are due, oldest date first, decks mixed within a date; at most `most`."""
    return list(map(Scheduled._make, session.execute(_DUE, {"learner_id": learner_id, "now": now, "most": most})))


def count_due(session: Session, learner_id: int, now: datetime) -> int:
    """Known cards that are due."""
    return session.execute(_COUNT_DUE, {"learner_id": learner_id, "now": now}).scalar_one()


def list_standing(session: Session, learner_id: int) -> list[Standing]:
    """Every card this learner ever touched. Reads everything: not for a review's path."""
    return list(map(Standing._make, session.execute(_STANDING, {"learner_id": learner_id})))


def list_standing_of(session: Session, learner_id: int, card_ids: Collection[str]) -> list[Standing]:
    """Where these cards stand, those that were ever touched."""
    found: list[Standing] = []
    wanted = list(card_ids)
    for start in range(0, len(wanted), MOST_NAMED):
        values = {"learner_id": learner_id, "card_ids": wanted[start : start + MOST_NAMED]}
        found += map(Standing._make, session.execute(_STANDING_OF, values))
    return found


def find_next_due(session: Session, learner_id: int, now: datetime) -> datetime | None:
    """When the next card returns after `now`."""
    values = {"learner_id": learner_id, "now": now}
    return min((at for query in _NEXT if (at := session.execute(query, values).scalar()) is not None), default=None)


def count_due_at(
    session: Session, learner_id: int, spans: Sequence[tuple[datetime, datetime]]
) -> Iterator[tuple[datetime, int]]:
    """How many cards come back at which time, within up to three spans that may overlap."""
    values: dict[str, object] = {"learner_id": learner_id}
    for i, (start, end) in enumerate(spans):
        values |= {f"from_{i}": start, f"to_{i}": end}
    rows = session.execute(_LOADS[len(spans)], values)
    return ((due_at, count) for due_at, count in rows if due_at is not None)


def list_answered(session: Session, learner_id: int, since: datetime, until: datetime) -> list[Answered]:
    """What was reviewed in a time and stands, by cluster and phase."""
    values = {"learner_id": learner_id, "since": since, "until": until}
    return list(map(Answered._make, session.execute(_DAY, values)))


def find_state(session: Session, learner_id: int, card_id: str) -> CardState | None:
    return session.get(CardState, (learner_id, card_id))


def list_states(session: Session, learner_id: int, card_ids: Iterable[str] | None = None) -> list[CardState]:
    """The states themselves, of all cards or of these."""
    query = select(CardState).where(CardState.learner_id == learner_id)
    if card_ids is not None:
        query = query.where(CardState.card_id.in_(list(card_ids)))
    return list(session.scalars(query))


def find_newest_id(session: Session, learner_id: int) -> int | None:
    """The id of the newest review that stands."""
    return session.execute(_NEWEST, {"learner_id": learner_id}).scalar()


def find_last_review(session: Session, learner_id: int) -> Review | None:
    """The newest review that stands: what undo takes back."""
    found = find_newest_id(session, learner_id)
    return None if found is None else session.get(Review, found)


def find_review(session: Session, review_id: int) -> Review | None:
    return session.get(Review, review_id)


def find_answer(session: Session, learner_id: int, card_id: str, version: int) -> Review | None:
    """The review that answered a showing, whether it still stands or not."""
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.card_id == card_id, Review.version == version)
        .order_by(Review.id.desc())
        .limit(1)
    )
    return session.scalar(query)


def list_history(session: Session, learner_id: int, card_id: str) -> list[Review]:
    """A card's reviews that stand, in the order they were made."""
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.card_id == card_id, Review.undone_at.is_(None))
        .order_by(Review.id)
    )
    return list(session.scalars(query))


def list_made_together(session: Session, review: Review) -> list[Review]:
    """The entries of a placement: they carry one time."""
    query = select(Review).where(
        Review.learner_id == review.learner_id, Review.reviewed_at == review.reviewed_at, Review.kind == review.kind,
        Review.undone_at.is_(None),
    )  # fmt: skip
    return list(session.scalars(query))


def has_reviews(session: Session, learner_id: int) -> bool:
    """Whether there is a review that stands."""
    return find_newest_id(session, learner_id) is not None


def find_settings(session: Session, learner_id: int) -> tuple[int, int | None, float] | None:
    """New cards per day, reviews per day and desired retention, if the learner ever chose."""
    found = session.execute(_SETTINGS, {"learner_id": learner_id}).one_or_none()
    return None if found is None else (found[0], found[1], found[2])


def find_parameters(session: Session, learner_id: int, parameters_id: str) -> tuple[float, ...] | None:
    """The values of a parameter set the log names."""
    found = session.get(ParameterSet, (learner_id, parameters_id))
    return None if found is None else tuple(found.parameters)
