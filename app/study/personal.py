"""Parameters fitted to a learner's own reviews: when there are enough, asking for a fit, and what became of it.

The fit itself runs in a process of its own (worker/optimise.py): it takes torch and minutes. Here is only the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.errors import DomainError
from app.core.models import Learner
from app.study.fsrs import parameters
from app.study.fsrs.losses import Comparison, History
from app.study.fsrs.scheduling import KNOWN
from app.study.models import ParameterFit, ParameterSet, Review

FEWEST_TO_FIT = 512  # reviews after the first day: py-fsrs returns the defaults below
FEWEST_HELD_OUT = 128
FEWEST = FEWEST_TO_FIT + FEWEST_HELD_OUT  # four fifths are fitted to, one fifth judges
MOST_REVIEWS = 20_000  # the fit takes about 4 ms a review
AGAIN_AFTER = timedelta(days=14)
AGAIN_SHARE = 1.2  # as many reviews again as this times those of the last fit
GIVE_UP_AFTER = timedelta(hours=3)


@dataclass(frozen=True)
class Standing:
    """What the page shows: the reviews there are, the fit under way, the newest finished one, the one in use."""

    reviews: int
    open: ParameterFit | None
    last: ParameterFit | None
    used: ParameterFit | None

    @property
    def is_enough(self) -> bool:
        return self.reviews >= FEWEST


def standing(session: Session, learner_id: int) -> Standing:
    """Where a learner stands with parameters of their own."""
    newest = select(ParameterFit).where(ParameterFit.learner_id == learner_id).order_by(ParameterFit.id.desc()).limit(1)
    return Standing(
        count_reviews(session, learner_id),
        session.scalar(newest.where(ParameterFit.finished_at.is_(None))),
        session.scalar(newest.where(ParameterFit.finished_at.is_not(None))),
        session.scalar(newest.where(ParameterFit.is_used)),
    )


def count_reviews(session: Session, learner_id: int) -> int:
    """Standing reviews of cards known from a day before, counted no further than a fit reads."""
    known = (
        select(Review.id)
        .where(Review.learner_id == learner_id, Review.undone_at.is_(None), Review.phase == KNOWN)
        .limit(MOST_REVIEWS)
    )
    return session.scalar(select(func.count()).select_from(known.subquery())) or 0


def ask(session: Session, learner_id: int, now: datetime) -> None:
    """Ask for a fit. Raises DomainError where there are too few reviews; one that is under way is enough."""
    reviews = count_reviews(session, learner_id)
    if reviews < FEWEST:
        raise DomainError(
            f"There are {reviews:,} reviews of cards you knew from a day before. A fit needs {FEWEST}: "
            f"{FEWEST_TO_FIT} to learn from and {FEWEST_HELD_OUT} later ones to be judged by."
        )
    try:
        with session.begin_nested():
            session.add(ParameterFit(learner_id=learner_id, asked_at=now, reviews=reviews))
    except IntegrityError:
        return  # asked already; the page shows that one


def ask_where_due(session: Session, now: datetime) -> int:
    """Ask for every learner whose log has grown enough since the last fit; returns for how many."""
    asked = 0
    for learner_id in session.scalars(select(Learner.id)).all():
        found = standing(session, learner_id)
        last = found.last
        grown = last is None or (
            now - last.asked_at >= AGAIN_AFTER and found.reviews >= min(AGAIN_SHARE * last.reviews, MOST_REVIEWS)
        )
        if found.open is None and found.is_enough and grown:
            ask(session, learner_id, now)
            asked += 1
    return asked


def claim_next(session: Session, now: datetime) -> int | None:
    """Take the oldest fit that waits; None where none does. A duplicate nudge claims nothing."""
    waiting = select(ParameterFit.id).where(ParameterFit.started_at.is_(None), ParameterFit.finished_at.is_(None))
    fit_id = session.scalar(waiting.order_by(ParameterFit.id).limit(1))
    if fit_id is None:
        return None
    claimed = session.execute(
        update(ParameterFit).where(ParameterFit.id == fit_id, ParameterFit.started_at.is_(None)).values(started_at=now)
    )
    return fit_id if claimed.rowcount == 1 else None  # type: ignore[attr-defined]


def read_histories(session: Session, fit_id: int) -> list[History]:
    """The reviews a fit reads, card by card: whole histories of as many cards, newest first, as it can take."""
    fit = session.get_one(ParameterFit, fit_id)
    rows = session.execute(
        select(
            Review.card_id, Review.revision, Review.rating, Review.reviewed_at, Review.time_zone, Review.day_starts_hour
        )
        .where(Review.learner_id == fit.learner_id, Review.undone_at.is_(None), Review.kind == "review")
        .order_by(Review.id.desc())
    )
    found: dict[tuple[str, int], History] = {}
    taken = 0
    for card_id, revision, rating, at, zone, starts in rows:
        key = (card_id, revision)
        if key not in found and taken >= MOST_REVIEWS:
            continue
        found.setdefault(key, History()).add(rating, at, zone, starts)
        taken += 1
    return [history.reversed() for history in found.values()]


def finish(
    session: Session, fit_id: int, values: Sequence[float], comparison: Comparison, now: datetime
) -> ParameterFit:
    """Keep the outcome; the fit is used only where it predicted the held-out reviews better than the default."""
    fit = session.get_one(ParameterFit, fit_id)
    found = parameters.validated(values)
    fit.parameters, fit.parameters_id = list(found), parameters.identify(found)
    fit.held_out, fit.default_loss, fit.fitted_loss = comparison.held_out, comparison.default, comparison.fitted
    fit.difference_error, fit.finished_at = comparison.difference_error, now
    is_better = comparison.fitted < comparison.default
    session.execute(update(ParameterFit).where(ParameterFit.learner_id == fit.learner_id).values(is_used=False))
    fit.is_used = is_better
    if session.get(ParameterSet, (fit.learner_id, fit.parameters_id)) is None:
        session.add(
            ParameterSet(learner_id=fit.learner_id, id=fit.parameters_id, parameters=list(found), created_at=now)
        )
    session.flush()
    return fit


def fail(session: Session, fit_id: int, reason: str, now: datetime) -> None:
    """A fit that came to nothing; what is in use stays."""
    session.execute(
        update(ParameterFit)
        .where(ParameterFit.id == fit_id, ParameterFit.finished_at.is_(None))
        .values(finished_at=now, failure=reason[:400])
    )


def give_up_on_stale(session: Session, now: datetime) -> None:
    """Fits whose process is gone without a word."""
    session.execute(
        update(ParameterFit)
        .where(ParameterFit.finished_at.is_(None), ParameterFit.started_at < now - GIVE_UP_AFTER)
        .values(finished_at=now, failure="The fit did not end within three hours.")
    )
