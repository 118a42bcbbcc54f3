"""Reading sittings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.interview.models import Sitting, SittingAnswer


def find_open(session: Session, learner_id: int) -> Sitting | None:
    return session.scalar(select(Sitting).where(Sitting.learner_id == learner_id, Sitting.closed_at.is_(None)))


def find_sitting(session: Session, learner_id: int, sitting_id: int) -> Sitting | None:
    return session.scalar(select(Sitting).where(Sitting.id == sitting_id, Sitting.learner_id == learner_id))


def find_newest_of(session: Session, learner_id: int, interview_id: str) -> Sitting | None:
    query = select(Sitting).where(Sitting.learner_id == learner_id, Sitting.interview_id == interview_id)
    return session.scalar(query.order_by(Sitting.id.desc()).limit(1))


def lock_sitting(session: Session, sitting_id: int) -> Sitting:
    """The sitting as it is now, kept from changing until this transaction ends."""
    query = select(Sitting).where(Sitting.id == sitting_id).with_for_update().execution_options(populate_existing=True)
    return session.scalars(query).one()


def list_overdue(session: Session, now: datetime) -> Sequence[Sitting]:
    """Open sittings whose deadline has passed."""
    return session.scalars(select(Sitting).where(Sitting.closed_at.is_(None), Sitting.deadline_at < now)).all()


def list_unsettled(session: Session) -> Sequence[Sitting]:
    """Closed sittings without a scorecard: a program that was handed in is still with the judge."""
    return session.scalars(select(Sitting).where(Sitting.closed_at.is_not(None), Sitting.scorecard.is_(None))).all()


def list_closed(session: Session, learner_id: int, limit: int = 10) -> Sequence[Sitting]:
    query = select(Sitting).where(Sitting.learner_id == learner_id, Sitting.closed_at.is_not(None))
    return session.scalars(query.order_by(Sitting.id.desc()).limit(limit)).all()


def list_answers(session: Session, sitting_id: int) -> dict[str, SittingAnswer]:
    found = session.scalars(select(SittingAnswer).where(SittingAnswer.sitting_id == sitting_id))
    return {answer.part_id: answer for answer in found}


def list_all(session: Session, learner_id: int) -> Sequence[Sitting]:
    """Every sitting, oldest first."""
    return session.scalars(select(Sitting).where(Sitting.learner_id == learner_id).order_by(Sitting.id)).all()
