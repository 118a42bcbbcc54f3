"""The first guess: made once, or skipped."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.errors import DomainError, Violation
from app.core.records import as_record
from app.first.finding import lacking
from app.first.models import FirstGuess
from app.first.numbers import LEAST_BYTES, MOST_BYTES, PARAMETERS
from app.grading.quantities import Unreadable, read_quantity

__all__ = ["DECK", "PARAMETERS", "find_guess", "lacking", "list_records", "lock_guess", "skip"]

DECK = "DK2"  # memory anatomy: its cards go on from the sixteen bytes
ACCEPTED = "a number of GB from 1 to 1,000"


def find_guess(session: Session, learner_id: int) -> FirstGuess | None:
    """What was guessed or skipped; None while the question is open."""
    return session.get(FirstGuess, learner_id)


def lock_guess(session: Session, learner_id: int, text: str, now: datetime) -> FirstGuess:
    """Keep a guess as it was typed, in GB where it has no unit. A first guess stays: a second one changes nothing.

    Raises DomainError where it cannot be read or is out of range.
    """
    try:
        guess_bytes = read_quantity(text, "bytes", "GB").value
    except Unreadable as error:
        raise DomainError("Your guess was not locked.", [Violation("guess", text, str(error), ACCEPTED)]) from None
    if not LEAST_BYTES <= guess_bytes <= MOST_BYTES:
        violation = Violation("guess", text, "This is off the scale.", ACCEPTED)
        raise DomainError("Your guess was not locked.", [violation])
    return _keep(session, learner_id, guess_bytes, now)


def skip(session: Session, learner_id: int, now: datetime) -> FirstGuess:
    """Go on without a guess. One that was made stays."""
    return _keep(session, learner_id, None, now)


def _keep(session: Session, learner_id: int, guess_bytes: float | None, now: datetime) -> FirstGuess:
    made = FirstGuess(learner_id=learner_id, guess_bytes=guess_bytes, guessed_at=now)
    try:
        with session.begin_nested():
            session.add(made)
        return made
    except IntegrityError:  # answered before, perhaps in another tab just now
        found = session.get_one(FirstGuess, learner_id, populate_existing=True)
    if found.guess_bytes is None:
        found.guess_bytes, found.guessed_at = guess_bytes, now  # skipped at first, answered later
        session.flush()
    return found


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """The guess as an export holds it."""
    found = find_guess(session, learner_id)
    return [as_record("first_guess", found, found.guessed_at)] if found else []
