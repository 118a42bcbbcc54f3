"""Reading submissions, their events and desks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.codelabs.models import PUZZLE, RUNNING, WAITING, CodeChunk, CodeDesk, CodeSubmission


def find_submission(session: Session, learner_id: int, submission_id: int) -> CodeSubmission | None:
    query = select(CodeSubmission).where(CodeSubmission.id == submission_id, CodeSubmission.learner_id == learner_id)
    return session.scalar(query)


def find_newest(session: Session, learner_id: int, lab_id: str, *, puzzle: bool = False) -> CodeSubmission | None:
    """The newest submission to a lab, or to its puzzle, whatever became of it."""
    query = select(CodeSubmission).where(CodeSubmission.learner_id == learner_id, CodeSubmission.lab_id == lab_id)
    query = query.where((CodeSubmission.mode == PUZZLE) == puzzle)
    return session.scalar(query.order_by(CodeSubmission.id.desc()).limit(1))


def find_newest_ended(session: Session) -> CodeSubmission | None:
    """Anybody's: it tells whether programs can be judged."""
    query = select(CodeSubmission).where(CodeSubmission.status.in_(("judged", "failed")))
    return session.scalar(query.order_by(CodeSubmission.id.desc()).limit(1))


def list_submissions(session: Session, learner_id: int) -> Sequence[CodeSubmission]:
    """Oldest first."""
    query = select(CodeSubmission).where(CodeSubmission.learner_id == learner_id).order_by(CodeSubmission.id)
    return session.scalars(query).all()


def labs_tried(session: Session, learner_id: int, *, puzzle: bool = False) -> set[str]:
    query = select(CodeSubmission.lab_id).where(CodeSubmission.learner_id == learner_id).distinct()
    return set(session.scalars(query.where((CodeSubmission.mode == PUZZLE) == puzzle)))


def count_waiting(session: Session, learner_id: int) -> int:
    query = select(func.count(CodeSubmission.id)).where(CodeSubmission.learner_id == learner_id)
    return session.scalar(query.where(CodeSubmission.status == WAITING)) or 0


def list_queue(session: Session) -> Sequence[CodeSubmission]:
    """Waiting submissions in the order they are taken: every learner's first before anybody's second."""
    turn = func.row_number().over(partition_by=CodeSubmission.learner_id, order_by=CodeSubmission.id)
    turns = select(CodeSubmission.id, turn.label("turn")).where(CodeSubmission.status == WAITING).subquery()
    query = select(CodeSubmission).join(turns, turns.c.id == CodeSubmission.id)
    return session.scalars(query.order_by(turns.c.turn, CodeSubmission.id)).all()


def list_running(session: Session) -> Sequence[CodeSubmission]:
    return session.scalars(select(CodeSubmission).where(CodeSubmission.status == RUNNING)).all()


def list_chunks(session: Session, submission_id: int, after: int) -> Sequence[CodeChunk]:
    query = select(CodeChunk).where(CodeChunk.submission_id == submission_id, CodeChunk.sequence > after)
    return session.scalars(query.order_by(CodeChunk.sequence)).all()


def find_desk(session: Session, learner_id: int, lab_id: str) -> CodeDesk | None:
    return session.get(CodeDesk, (learner_id, lab_id))


def list_desks(session: Session, learner_id: int) -> Sequence[CodeDesk]:
    return session.scalars(select(CodeDesk).where(CodeDesk.learner_id == learner_id)).all()


def list_passed(session: Session, learner_id: int) -> Sequence[CodeDesk]:
    """Desks of labs that were passed, by when they first were."""
    query = select(CodeDesk).where(CodeDesk.learner_id == learner_id, CodeDesk.passed_at.is_not(None))
    return session.scalars(query.order_by(CodeDesk.passed_at)).all()


def list_passed_puzzles(session: Session, learner_id: int) -> dict[str, datetime]:
    """When each puzzle was first put together right, by the lab that it is of."""
    query = select(CodeSubmission.lab_id, func.min(CodeSubmission.ended_at)).group_by(CodeSubmission.lab_id)
    query = query.where(CodeSubmission.learner_id == learner_id, CodeSubmission.mode == PUZZLE)
    return {lab: at for lab, at in session.execute(query.where(CodeSubmission.passed.is_(True))) if at is not None}


def is_silent(submission: CodeSubmission, since: datetime) -> bool:
    return (submission.heartbeat_at or submission.created_at) < since
