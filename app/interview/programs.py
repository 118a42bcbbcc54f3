"""Programs written in a sitting: handed in to the judge of code labs, and what came of them.

A part's answer keeps the submission that counts (`judged["submission"]`) and the newest that only tried the visible
checks (`judged["run"]`). One counts for a part, and is made once: when the answer is given, or the sitting is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.codelabs import service as codelabs
from app.content.catalogue import Catalogue
from app.content.coding import TaskQuestion
from app.core.errors import DomainError, Violation
from app.interview.hints import opened
from app.interview.models import Sitting, SittingAnswer
from app.interview.parts import Part
from app.interview.to_grade import Programs
from labs.spec.code import Mode

# The judge takes seconds, and a submission has an end of its own after two minutes; then it is done without.
JUDGED_WITHIN = timedelta(minutes=5)  # of being handed in

NEVER_JUDGED = "The judge had nothing to say of it in time. It does not count."


def tried(session: Session, sitting: Sitting, part: Part, answer: SittingAnswer, hints: int, now: datetime) -> None:
    """Have a draft run with the visible checks. Raises DomainError."""
    _handed_in(session, sitting, part, answer, "run", hints, now)


def hand_in(session: Session, sitting: Sitting, part: Part, saved: Mapping[str, SittingAnswer], now: datetime) -> None:
    """Have an answer judged, once. Raises DomainError for what cannot be a program."""
    answer = saved[part.id]
    if is_blank(part, answer.answer):
        why = Violation(part.id, "…", "Nothing is written yet.", "your program")
        raise DomainError("Not taken yet.", [why])
    if "submission" not in (answer.judged or {}):
        _handed_in(session, sitting, part, answer, "submit", opened(part, saved), now)


def _handed_in(
    session: Session,
    sitting: Sitting,
    part: Part,
    answer: SittingAnswer,
    mode: Mode,
    hints: int,
    now: datetime,
) -> None:
    assert isinstance(part.question, TaskQuestion), "asked of code labs alone"
    row = codelabs.hand_in(session, sitting.learner_id, part.question.lab, answer.answer, mode, hints, now)
    answer.judged = {**(answer.judged or {}), "run" if mode == "run" else "submission": row.id}


def standing(
    session: Session, content: Catalogue, sitting: Sitting, answer: SittingAnswer | None
) -> codelabs.ShownProgress | None:
    """How far the newest run of the visible checks is, as a page shows it; None before there was one."""
    number = (answer.judged or {}).get("run") if answer else None
    return codelabs.show_standing(session, sitting.learner_id, content, number) if number else None


def is_blank(part: Part, text: str) -> bool:
    """Whether nothing was written beyond what the editor opened with."""
    assert isinstance(part.question, TaskQuestion), "asked of code labs alone"
    return text.replace("\r\n", "\n").strip() in ("", part.question.lab.starter.strip())


def outcomes(
    session: Session, content: Catalogue, sitting: Sitting, saved: Mapping[str, SittingAnswer], now: datetime
) -> Programs | None:
    """What came of everything that was handed in; None while the judge may still say something."""
    found = {}
    for part, answer in saved.items():
        if not (number := (answer.judged or {}).get("submission")):
            continue
        row = codelabs.find_submission(session, sitting.learner_id, number)
        lab = content.labs.get(row.lab_id)
        if lab is None or (answer.judged or {}).get("given_up"):
            found[part] = codelabs.Outcome(True, why_not=NEVER_JUDGED)
            continue
        found[part] = codelabs.outcome(row, lab)
        if not found[part].ended:
            if now <= row.created_at + JUDGED_WITHIN:  # not since the sitting's end: it may be closed long after
                return None
            found[part] = codelabs.Outcome(True, why_not=NEVER_JUDGED)
    return found


def give_up(session: Session, sitting: Sitting, saved: Mapping[str, SittingAnswer], now: datetime) -> None:
    """Take back what the judge has not come to, so that it is never scored behind the sitting's back."""
    for answer in saved.values():
        if number := (answer.judged or {}).get("submission"):
            row = codelabs.find_submission(session, sitting.learner_id, number)
            if not codelabs.has_ended(row):
                codelabs.cancel(session, sitting.learner_id, number, now)
                answer.judged = {**(answer.judged or {}), "given_up": True}
