"""Reading variants and attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from app.practice.models import Attempt, Variant


class Settled(NamedTuple):
    """A variant that is done with: when it was issued and settled, its score 0..1, and how many hints were open."""

    problem_id: str
    issued_at: datetime
    at: datetime
    score: float
    hints_opened: int


def find_variant(
    session: Session, learner_id: int, problem_id: str, seed: int, *, lock: bool = False
) -> Variant | None:
    """The variant of this seed, if it was issued to this learner.

    With `lock` others who would change it wait: PostgreSQL locks the row, on SQLite the writing session is alone.
    """
    found = select(Variant).where(
        Variant.learner_id == learner_id, Variant.problem_id == problem_id, Variant.seed == seed
    )
    return session.scalar(found.with_for_update() if lock else found)


def find_open_variant(session: Session, learner_id: int, problem_id: str, revision: int) -> Variant | None:
    """The newest variant that is not settled."""
    return session.scalar(
        select(Variant)
        .where(
            Variant.learner_id == learner_id,
            Variant.problem_id == problem_id,
            Variant.revision == revision,
            Variant.settled_at.is_(None),
        )
        .order_by(Variant.id.desc())
        .limit(1)
    )


def list_newest(session: Session, learner_id: int, problem_id: str, limit: int) -> Sequence[Variant]:
    """The variants issued last."""
    issued = select(Variant).where(Variant.learner_id == learner_id, Variant.problem_id == problem_id)
    return session.scalars(issued.order_by(Variant.id.desc()).limit(limit)).all()


def list_attempts(session: Session, variant_id: int) -> Sequence[Attempt]:
    return session.scalars(select(Attempt).where(Attempt.variant_id == variant_id).order_by(Attempt.id)).all()


def list_settled(session: Session, learner_id: int, problem_id: str, limit: int = 5) -> Sequence[Variant]:
    """The newest settled variants of a problem."""
    return session.scalars(
        select(Variant)
        .where(Variant.learner_id == learner_id, Variant.problem_id == problem_id, Variant.settled_at.is_not(None))
        .order_by(Variant.settled_at.desc(), Variant.id.desc())
        .limit(limit)
    ).all()


def list_tried(
    session: Session, learner_id: int, limit: int, before: int | None = None, problem_id: str | None = None
) -> Sequence[Variant]:
    """Variants that were answered or settled, by when last, newest first; those that come after variant `before`."""
    answered = (
        select(Attempt.variant_id, func.max(Attempt.answered_at).label("at"))
        .where(Attempt.learner_id == learner_id)
        .group_by(Attempt.variant_id)
        .subquery()
    )
    at = func.coalesce(answered.c.at, Variant.settled_at)
    tried = select(Variant, at).outerjoin(answered, answered.c.variant_id == Variant.id)
    found = tried.where(Variant.learner_id == learner_id, at.is_not(None))
    if before is not None:
        newer = session.scalar(found.where(Variant.id == before).with_only_columns(at))
        if newer is None:
            return []
        found = found.where(or_(at < newer, and_(at == newer, Variant.id < before)))
    if problem_id is not None:
        found = found.where(Variant.problem_id == problem_id)
    return session.scalars(found.order_by(at.desc(), Variant.id.desc()).limit(limit)).all()


def list_all_settled(session: Session, learner_id: int) -> Sequence[Settled]:
    """Every settled variant, oldest first."""
    rows = session.execute(
        select(Variant.problem_id, Variant.issued_at, Variant.settled_at, Variant.score, Variant.hints_opened)
        .where(Variant.learner_id == learner_id, Variant.settled_at.is_not(None))
        .order_by(Variant.settled_at, Variant.id)
    )
    return [
        Settled(problem_id, issued_at, at, score or 0.0, hints)
        for problem_id, issued_at, at, score, hints in rows
        if at is not None
    ]


def list_settled_since(session: Session, learner_id: int, since: datetime) -> Sequence[Variant]:
    """The variants settled since then, the oldest first."""
    settled = select(Variant).where(Variant.learner_id == learner_id, Variant.settled_at >= since)
    return session.scalars(settled.order_by(Variant.settled_at, Variant.id)).all()


def list_all_variants(session: Session, learner_id: int) -> Sequence[Variant]:
    return session.scalars(select(Variant).where(Variant.learner_id == learner_id).order_by(Variant.id)).all()


def list_all_attempts(session: Session, learner_id: int) -> Sequence[Attempt]:
    return session.scalars(select(Attempt).where(Attempt.learner_id == learner_id).order_by(Attempt.id)).all()
