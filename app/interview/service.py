"""Sittings as other rooms and the pages ask for them: one open at a time, what they show and what was expected."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.composed import FOLLOW_UP, borrowed_id
from app.content.evidence import Evidence
from app.content.interview_schemas import Interview
from app.core.errors import DomainError, NotFound, Violation
from app.core.records import as_record
from app.grading import levels
from app.interview import expectation, queries, timing
from app.interview.closing import (
    close_if_over,
)
from app.interview.drawing import draw_anew
from app.interview.expectation import Expectation
from app.interview.models import Sitting
from app.interview.offers import (
    is_generated,
)
from app.interview.stored import scorecard_of

LARGEST_SEED = 2**31 - 1
DRAWS = 8  # among which the one is taken that has least in common with the sitting before


def find_sitting(session: Session, learner_id: int, sitting_id: int) -> Sitting:
    """Raises NotFound."""
    sitting = queries.find_sitting(session, learner_id, sitting_id)
    if sitting is None:
        raise NotFound(f"There is no sitting {sitting_id}.")
    return sitting


def find_running(session: Session, learner_id: int, now: datetime) -> Sitting | None:
    """The learner's open sitting, if it still has time."""
    opened = queries.find_open(session, learner_id)
    return opened if opened is not None and not timing.is_over(opened.deadline_at, now) else None


def start(
    session: Session,
    learner_id: int,
    content: Catalogue,
    interview: Interview,
    now: datetime,
    drawn: Mapping[str, object] | None = None,
) -> Sitting:
    """The learner's open sitting if there is one that still runs (starting again returns it), else a new one, of a
    generated interview with what was `drawn` for it."""
    opened = queries.find_open(session, learner_id)
    if opened is not None and not close_if_over(session, content, opened, now):
        return opened
    sitting = Sitting(
        learner_id=learner_id,
        interview_id=interview.id,
        revision=interview.revision,
        drawn=dict(drawn) if drawn is not None else _drawn(session, learner_id, interview),
        started_at=now,
        deadline_at=now + timedelta(minutes=interview.minutes),
    )
    try:
        with session.begin_nested():
            session.add(sitting)
    except IntegrityError:  # another tab was faster: the partial unique index keeps one open
        opened = queries.find_open(session, learner_id)
        assert opened is not None
        return opened
    return sitting


def _drawn(session: Session, learner_id: int, interview: Interview) -> dict[str, object]:
    """The numbers of a new sitting: others than those of the one before it, as far as there are others."""
    last = queries.find_newest_of(session, learner_id, interview.id)
    return draw_anew(interview, last.drawn if last else {}, (secrets.randbelow(LARGEST_SEED) for _ in range(DRAWS)))


def expect(session: Session, sitting: Sitting, level: str) -> None:
    """Keep the level that is expected before the debrief. The first word stands: it is worth something only before."""
    accepted = (*levels.NAMES, expectation.NOT_SAID)
    if sitting.closed_at is None:
        raise DomainError("A level is expected once the sitting is closed.")
    if level not in accepted:
        message = "That is no level."
        raise DomainError("Not kept.", [Violation("level", level, message, ", ".join(levels.NAMES) + ", or nothing")])
    session.execute(
        update(Sitting)
        .where(Sitting.id == sitting.id, Sitting.expected_level.is_(None))
        .values(expected_level=level)
        .execution_options(synchronize_session="fetch")
    )


def list_expectations(session: Session, learner_id: int) -> list[Expectation]:
    """What was expected of closed sittings beside what they became, oldest first."""
    closed = [each for each in queries.list_all(session, learner_id) if each.closed_at is not None]
    found = (expectation.compare(each.expected_level, scorecard_of(each).level) for each in closed)
    return [each for each in found if each is not None]


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Every part of every closed sitting that was asked, answered and judged, for its question, by where that stands.
    A generated one that is sat again, whose answers were seen, says nothing."""
    found, generated = list[Evidence](), set[str]()
    for sitting in queries.list_all(session, learner_id):
        if sitting.interview_id in generated:
            continue
        if is_generated(sitting):
            generated.add(sitting.interview_id)
        if sitting.closed_at is not None:
            named = _items_of(sitting)
            found += [
                Evidence("interview", named(row.id), sitting.closed_at, row.reached / row.points)
                for row in scorecard_of(sitting).rows
                if row.is_evidence and not (row.kind == "coding" and row.verdict == "right")  # the lab's own pass is
            ]
    return found


@dataclass(frozen=True)
class FalseClaim:
    """Something false that was said in the newest sitting of an interview, and not taken back: in which question, by
    where that stands, about what, and the card that answers it."""

    item_id: str
    interview_id: str
    at: datetime
    topic: str
    cure: str


def list_false_claims(session: Session, learner_id: int, since: datetime) -> list[FalseClaim]:
    """What was said that is false and has a card, and was not taken back, in the newest sitting of each interview
    closed `since`."""
    newest = {
        each.interview_id: each
        for each in queries.list_all(session, learner_id)
        if each.closed_at is not None and each.closed_at >= since and each.scorecard
    }
    return [
        FalseClaim(
            f"{_items_of(sitting)(row.id)}.{false.id}", sitting.interview_id, sitting.closed_at, false.topic, false.cure
        )
        for sitting in newest.values()
        if sitting.closed_at is not None
        for row in scorecard_of(sitting).rows
        for false in row.challenged
        if not false.is_taken_back and false.cure
    ]


def _items_of(sitting: Sitting) -> Callable[[str], str]:
    """What a part of a sitting says something of: its question, or the follow-up to it, by where that stands."""
    borrowed = {borrowed_id(each): _item_of(each) for each in sitting.drawn.get("questions", ())}

    def item_of(part: str) -> str:
        question, _, what = part.partition(".")
        own = sitting.interview_id if "questions" in sitting.drawn else f"{sitting.interview_id}.{question}"
        item = borrowed.get(question, own)
        return f"{item}.{FOLLOW_UP}" if what.partition(".")[0] == FOLLOW_UP else item

    return item_of


def _item_of(reference: str) -> str:
    """A task says something of its lab."""
    return reference.partition(".")[0] if reference.startswith("CL") else reference


def list_results(session: Session, learner_id: int) -> dict[str, list[Sitting]]:
    """The closed sittings of each interview, oldest first."""
    found: dict[str, list[Sitting]] = {}
    for sitting in queries.list_all(session, learner_id):
        if sitting.closed_at is not None and sitting.scorecard:
            found.setdefault(sitting.interview_id, []).append(sitting)
    return found


def best_scores(session: Session, learner_id: int) -> dict[str, float]:
    """The best score of each interview, 0 to 1. Words that are not judged yet count nothing in it."""
    return {
        interview_id: max(scorecard_of(sitting).score for sitting in sittings)
        for interview_id, sittings in list_results(session, learner_id).items()
    }


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """Sittings with their answers and scorecards as an export holds them."""
    found = []
    for sitting in queries.list_all(session, learner_id):
        answers = queries.list_answers(session, sitting.id).values()
        kept = [as_record("sitting answer", each, each.saved_at) for each in answers]
        found.append(as_record("sitting", sitting, sitting.started_at) | {"answers": kept})
    return found
