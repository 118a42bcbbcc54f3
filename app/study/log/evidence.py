"""What reviews say of what a learner knows, and the review log as an export holds it. Reached through the service."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.content.evidence import Evidence
from app.core.records import as_record
from app.study.fsrs import scheduling
from app.study.models import Review


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Every review that stands, oldest first: remembered, or not."""
    forgotten = scheduling.LEVELS[1]
    query = (
        select(Review.card_id, Review.reviewed_at, Review.rating)
        .where(Review.learner_id == learner_id, Review.undone_at.is_(None), Review.kind == "review")
        .order_by(Review.id)
    )
    return [Evidence("card", card, at, float(rating != forgotten)) for card, at, rating in session.execute(query)]


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """Every review, those that were undone as well: from these each card's state can be rebuilt."""
    query = select(Review).where(Review.learner_id == learner_id).order_by(Review.id)
    return [as_record("review", row, row.reviewed_at) for row in session.scalars(query)]
