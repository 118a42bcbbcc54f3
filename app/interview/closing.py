"""The end of a sitting: closed exactly once, graded when all that it handed in was judged."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.core.errors import DomainError, NotFound, Violation
from app.interview import programs, queries, scoring, timing
from app.interview.boards import heard
from app.interview.drawing import values_of
from app.interview.models import Sitting, SittingAnswer
from app.interview.offers import (
    interview_of,
)
from app.interview.pace import paced
from app.interview.parts import (
    parts_of,
)
from app.interview.scorecards import Scorecard
from app.interview.stored import answers_of, reactions_in

ANSWERED, ENDED = "answered", "candidate"  # by what a sitting is closed: all was answered, or its candidate ended it


def close(session: Session, content: Catalogue, sitting: Sitting, now: datetime, by: str) -> bool:
    """End a sitting and grade it, once: finishing, what is sent after the deadline and the sweep may all try."""
    queries.lock_sitting(session, sitting.id)  # answers on their way in come before or after, not in between
    ended_at = max(sitting.started_at, min(now, sitting.deadline_at))  # a clock may have been set back since
    changed = session.execute(
        update(Sitting)
        .where(Sitting.id == sitting.id, Sitting.closed_at.is_(None))
        .values(closed_at=ended_at, closed_by=by)
    )
    session.refresh(sitting)
    if changed.rowcount != 1:  # type: ignore[attr-defined]
        return False
    _hand_in_drafts(session, content, sitting, now)
    settle(session, content, sitting, now)
    return True


def settle(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> bool:
    """Grade a closed sitting once all that it handed in was judged, or was given up; returns whether it is graded."""
    if sitting.scorecard is not None or sitting.closed_at is None:
        return sitting.scorecard is not None
    queries.lock_sitting(session, sitting.id)
    graded = _graded(session, content, sitting, now)
    if graded is None:
        return False
    programs.give_up(session, sitting, answers_of(session, sitting), now)
    sitting.scorecard = graded.to_json()
    session.flush()
    return True


def _hand_in_drafts(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> None:
    """What was written and not given counts as it was saved."""
    saved = answers_of(session, sitting)
    for part in parts_of(interview_of(content, sitting)):
        if part.kind == "coding" and part.id in saved and not programs.is_blank(part, saved[part.id].answer):
            with suppress(DomainError):  # it is no program
                programs.hand_in(session, sitting, part, saved, now)


def close_if_over(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> bool:
    """Close a sitting whose time is up; returns whether it was up."""
    if sitting.closed_at is None and timing.is_over(sitting.deadline_at, now):
        close(session, content, sitting, now, "deadline")
        return True
    return False


def as_it_stands(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> Sitting:
    """The sitting to show. One whose time is up is shown as closing it will leave it, and nothing is written."""
    if sitting.closed_at is None and timing.is_over(sitting.deadline_at, now):
        graded = None if _has_drafts(session, content, sitting) else _graded(session, content, sitting, now)
        session.expunge(sitting)
        sitting.closed_at, sitting.closed_by = sitting.deadline_at, "deadline"
    elif sitting.closed_at is not None and sitting.scorecard is None:
        graded = _graded(session, content, sitting, now)
        session.expunge(sitting)
    else:
        return sitting
    if graded is not None:
        sitting.scorecard = graded.to_json()
    return sitting


def _has_drafts(session: Session, content: Catalogue, sitting: Sitting) -> bool:
    """Whether closing it will hand something in."""
    saved = answers_of(session, sitting)
    return any(
        part.kind == "coding"
        and part.id in saved
        and "submission" not in (saved[part.id].judged or {})
        and not programs.is_blank(part, saved[part.id].answer)
        for part in parts_of(interview_of(content, sitting))
    )


def close_overdue(session: Session, content: Catalogue, now: datetime) -> int:
    """The sweep: close what nobody touched after its deadline, and grade what the judge has come to meanwhile."""
    closed = sum(close(session, content, sitting, now, "sweep") for sitting in queries.list_overdue(session, now))
    for sitting in queries.list_unsettled(session):
        settle(session, content, queries.lock_sitting(session, sitting.id), now)
    return closed


def judge(session: Session, content: Catalogue, sitting: Sitting, part_id: str, met: set[str], now: datetime) -> None:
    """The learner's own judgement of a text answer, point by point; may be corrected later."""
    if sitting.closed_at is None:
        raise DomainError("A sitting is judged once it is closed.")
    interview = interview_of(content, sitting)
    part = next((each for each in parts_of(interview) if each.id == part_id), None)
    answer = session.get(SittingAnswer, (sitting.id, part_id))
    if part is None or part.question.kind != "text" or answer is None:
        raise NotFound(f"There is no text answer {part_id!r} to judge.")
    known = {point.id for point in part.question.rubric}
    if met - known:
        raise DomainError(
            "Not judged.",
            [Violation("met", sorted(met - known), "Not points of this rubric.", ", ".join(sorted(known)))],
        )
    answer.judged = {point.id: point.id in met for point in part.question.rubric}
    session.flush()
    graded = _graded(session, content, sitting, now)
    if sitting.scorecard is not None and graded is not None:
        sitting.scorecard = graded.to_json()
        session.flush()


def _graded(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> Scorecard | None:
    """None while the judge has yet to say something of a program."""
    interview = interview_of(content, sitting)
    saved = answers_of(session, sitting)
    handed_in = programs.outcomes(session, content, sitting, saved, now)
    if handed_in is None:
        return None
    texts = heard({part: answer.answer for part, answer in saved.items()})
    judged: dict[str, Mapping[str, bool]] = {part: answer.judged for part, answer in saved.items() if answer.judged}
    values, reactions = values_of(interview, sitting.drawn), reactions_in(saved)
    card = scoring.scorecard(interview, values, texts, judged, reactions, handed_in)
    card = paced(card, interview, sitting.started_at, saved)
    return scoring.with_levels(card, interview, values, texts, reactions)
