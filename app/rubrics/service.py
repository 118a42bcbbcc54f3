"""Answering in free text: graded at once, kept, and judged by the learner where the grader is unsure.

Where a second grader is set, its opinion is asked once the answer is kept, while no transaction is open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app.content.evidence import Evidence
from app.content.rubric_schemas import RubricFile
from app.content.sources import item_then, keep_source
from app.core.db import Database
from app.core.errors import DomainError, NotFound, Stale, Violation
from app.core.records import as_record
from app.core.texts import storable
from app.grading.rubrics.points import CREDITS
from app.rubrics import queries
from app.rubrics.grading import grade_json, grade_text
from app.rubrics.models import RubricAnswer
from app.rubrics.second import SecondGrader


def submit_answer(
    session: Session, learner_id: int, rubric: RubricFile, text: str, now: datetime, second: SecondGrader | None = None
) -> RubricAnswer:
    """Grade and keep an answer. Raises DomainError when there is nothing to grade, or too much.

    With a `second` grader the answer is marked as asked of it; `ask_second` asks.
    """
    kept = storable(text)
    found = grade_text(rubric, kept)
    row = RubricAnswer(
        learner_id=learner_id,
        rubric_id=rubric.id,
        revision=rubric.revision,
        answered_at=now,
        text=kept,
        grade=grade_json(found),
        judged={},
        score=found.score,
        level=found.level,
        source=keep_source(session, rubric, now),
        second={"status": "asked", "model": second.model} if second else None,
    )
    session.add(row)
    session.flush()
    return row


def ask_second(
    database: Database, learner_id: int, rubric: RubricFile, answer_id: int, second: SecondGrader | None
) -> RubricAnswer:
    """Ask the second grader, if any, what it makes of a kept answer, and keep that as well.

    Takes as long as the second grader may; no transaction is open meanwhile.
    """
    with database.read() as session:
        row = find_answer(session, learner_id, rubric, answer_id)
    if second is None or row.second is None or row.second["status"] != "asked":
        return row
    opinion = second.judge(rubric, row.text)
    with database.write() as session:
        row = find_answer(session, learner_id, rubric, answer_id)
        row.second = opinion
        session.flush()
    return row


def answer_json(row: RubricAnswer) -> dict[str, object]:
    """A graded answer as programs get it: the built-in grade, which counts, and the second opinion beside it."""
    return {"id": row.id, "rubric": row.rubric_id, **row.grade, "second_opinion": row.second}


def judge(
    session: Session, learner_id: int, rubric: RubricFile, answer_id: int, judged: Mapping[str, str]
) -> RubricAnswer:
    """Keep the learner's decision on points the grader heard something of; its own verdicts stay.

    Raises NotFound, DomainError for points that were missed, and Stale when the rubric was revised meanwhile.
    """
    row = queries.find_answer(session, learner_id, answer_id, lock=True)
    if row is None or row.rubric_id != rubric.id:
        raise NotFound(f"There is no answer {answer_id} of yours to {rubric.id}.")
    if row.revision != rubric.revision:
        raise Stale(f"{rubric.id} was revised since you answered; nothing was changed. Answer it again.")
    open_to_judge = [point["id"] for point in row.grade["points"] if point["verdict"] != "missed"]
    wrong = [
        Violation(
            point,
            decision,
            "It cannot be judged so.",
            f"{', '.join(CREDITS)}, for {', '.join(open_to_judge) or 'no point'}",
        )
        for point, decision in judged.items()
        if point not in open_to_judge or decision not in CREDITS
    ]
    if wrong:
        raise DomainError("This cannot be judged; nothing was changed.", wrong)
    row.judged = {**row.judged, **judged}
    found = grade_text(rubric, row.text, row.judged)
    row.score, row.level = found.score, found.level
    # what made the level is no verdict on a point, and follows what was judged
    row.grade = {**row.grade, "lifted_by": list(found.lifted_by), "notes": list(found.notes)}
    session.flush()
    return row


def find_answer(session: Session, learner_id: int, rubric: RubricFile, answer_id: int) -> RubricAnswer:
    """Raises NotFound."""
    row = queries.find_answer(session, learner_id, answer_id)
    if row is None or row.rubric_id != rubric.id:
        raise NotFound(f"There is no answer {answer_id} of yours to {rubric.id}.")
    return row


def rubric_then(session: Session, rubric: RubricFile, row: RubricAnswer) -> RubricFile:
    """The rubric in the words `row` was graded by; as it is now where they are not kept."""
    return item_then(session, rubric, row.source)


def history(session: Session, learner_id: int, rubric: RubricFile) -> Sequence[RubricAnswer]:
    return queries.list_answers(session, learner_id, rubric.id)


def marks(session: Session, learner_id: int) -> Mapping[str, RubricAnswer]:
    """The newest answer by rubric, for lists."""
    return queries.newest_answers(session, learner_id)


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Every answer with its score of record."""
    return [Evidence("free answer", *found) for found in queries.list_scores(session, learner_id)]


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """Answers with their grades as an export holds them."""
    return [as_record("free answer", row, row.answered_at) for row in queries.list_all(session, learner_id)]
