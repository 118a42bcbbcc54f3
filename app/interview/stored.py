"""What the database holds of a sitting, as the rest of the room reads it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.content.coding import as_called_now
from app.interview import queries
from app.interview.models import Sitting, SittingAnswer
from app.interview.parts import (
    Reaction,
    Reactions,
)
from app.interview.scorecards import Scorecard


def reactions_in(saved: Mapping[str, SittingAnswer]) -> Reactions:
    """What the interviewer asked on account of answers, by their part."""
    return {part: Reaction.from_json(answer.reaction) for part, answer in saved.items() if answer.reaction}


def answers_of(session: Session, sitting: Sitting) -> dict[str, SittingAnswer]:
    """What was answered, by part."""
    return {as_called_now(part): answer for part, answer in queries.list_answers(session, sitting.id).items()}


def scorecard_of(sitting: Sitting) -> Scorecard:
    """What a closed sitting came to; an empty card before it is closed."""
    return Scorecard.from_json(sitting.scorecard) if sitting.scorecard else Scorecard()
