"""Reading answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.rubrics.models import RubricAnswer


def find_answer(session: Session, learner_id: int, answer_id: int, *, lock: bool = False) -> RubricAnswer | None:
    """This learner's answer of that id. With `lock` others who would change it wait."""
    found = select(RubricAnswer).where(RubricAnswer.learner_id == learner_id, RubricAnswer.id == answer_id)
    return session.scalar(found.with_for_update() if lock else found)


def list_answers(session: Session, learner_id: int, rubric_id: str, limit: int = 5) -> Sequence[RubricAnswer]:
    """The newest answers to a rubric."""
    return session.scalars(
        select(RubricAnswer)
        .where(RubricAnswer.learner_id == learner_id, RubricAnswer.rubric_id == rubric_id)
        .order_by(RubricAnswer.id.desc())
        .limit(limit)
    ).all()


def newest_answers(session: Session, learner_id: int) -> Mapping[str, RubricAnswer]:
    """The newest answer to each rubric that was answered, by rubric."""
    newest = (
        select(func.max(RubricAnswer.id)).where(RubricAnswer.learner_id == learner_id).group_by(RubricAnswer.rubric_id)
    )
    found = session.scalars(select(RubricAnswer).where(RubricAnswer.id.in_(newest)))
    return {answer.rubric_id: answer for answer in found}


def list_all(session: Session, learner_id: int) -> Sequence[RubricAnswer]:
    """Every answer, oldest first."""
    return session.scalars(
        select(RubricAnswer).where(RubricAnswer.learner_id == learner_id).order_by(RubricAnswer.id)
    ).all()


def list_scores(session: Session, learner_id: int) -> Sequence[tuple[str, datetime, float]]:
    """Rubric, time and score of every answer, oldest first."""
    query = select(RubricAnswer.rubric_id, RubricAnswer.answered_at, RubricAnswer.score)
    found = session.execute(query.where(RubricAnswer.learner_id == learner_id).order_by(RubricAnswer.id))
    return [(rubric_id, at, score) for rubric_id, at, score in found]
