"""Reading what a learner remembers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, case, func, select
from sqlalchemy.orm import Session

from app.study.models import CardState, Review, StudySettings


@dataclass(frozen=True)
class Scheduled:
    """What sorting needs to know of a card, without its memory."""

    card_id: str
    revision: int
    is_learning: bool
    due_at: datetime


# Built once: putting a statement together costs more than SQLite needs to answer it.
_SCHEDULED = (
    select(CardState.card_id, CardState.revision, CardState.is_learning, CardState.due_at)
    .where(CardState.learner_id == bindparam("learner_id"), CardState.due_at.is_not(None))
    .order_by(CardState.due_at)
)
_REVIEWS_SINCE = select(
    func.count(Review.id), func.coalesce(func.sum(case((Review.memory_before.is_(None), 1), else_=0)), 0)
).where(
    Review.learner_id == bindparam("learner_id"), Review.reviewed_at >= bindparam("since"), Review.undone_at.is_(None)
)
_SETTINGS = select(StudySettings.new_per_day, StudySettings.reviews_per_day, StudySettings.desired_retention).where(
    StudySettings.learner_id == bindparam("learner_id")
)


def list_scheduled(session: Session, learner_id: int) -> list[Scheduled]:
    """Every card this learner has met and not unmet by undoing, soonest first."""
    rows = session.execute(_SCHEDULED, {"learner_id": learner_id})
    return [
        Scheduled(card_id, revision, is_learning, due_at)
        for card_id, revision, is_learning, due_at in rows
        if due_at is not None
    ]


def find_state(session: Session, learner_id: int, card_id: str) -> CardState | None:
    return session.get(CardState, (learner_id, card_id))


def count_reviews_since(session: Session, learner_id: int, since: datetime) -> tuple[int, int]:
    """Reviews that stand, made since `since`, and how many of them introduced a card."""
    reviews, new = session.execute(_REVIEWS_SINCE, {"learner_id": learner_id, "since": since}).one()
    return reviews, int(new)


def find_last_review(session: Session, learner_id: int) -> Review | None:
    """The newest review that stands: what undo takes back."""
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.undone_at.is_(None))
        .order_by(Review.id.desc())
        .limit(1)
    )
    return session.scalar(query)


def has_reviews(session: Session, learner_id: int) -> bool:
    """Whether there is a review that stands."""
    query = select(Review.id).where(Review.learner_id == learner_id, Review.undone_at.is_(None)).limit(1)
    return session.scalar(query) is not None


def find_settings(session: Session, learner_id: int) -> tuple[int, int | None, float] | None:
    """New cards per day, reviews per day and desired retention, if the learner ever chose."""
    found = session.execute(_SETTINGS, {"learner_id": learner_id}).one_or_none()
    return None if found is None else (found.new_per_day, found.reviews_per_day, found.desired_retention)
