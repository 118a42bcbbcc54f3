"""What the interview's templates are handed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from markupsafe import Markup
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.concept_map import named
from app.content.schemas import Interview
from app.core.errors import DomainError
from app.grading import levels
from app.grading.questions.number import example_of
from app.interview import queries, service, timing
from app.interview.models import Sitting
from app.interview.parts import FOLLOW_UP_SHARE, offered, parts_of, prompt
from app.interview.scoring import Scorecard


def index(session: Session, learner_id: int, content: Catalogue, now: datetime) -> dict[str, Any]:
    """The interviews there are, the one under way and the closed ones."""
    opened = queries.find_open(session, learner_id)
    if opened is not None and timing.is_over(opened.deadline_at, now):
        opened = None  # the next touch or sweep closes it
    closed = queries.list_closed(session, learner_id)
    results = service.list_results(session, learner_id)
    return {
        "interviews": [_offer(content, each, results.get(each.id, [])) for each in _in_order(content)],
        "levels": levels.for_page(),
        "opened": opened,
        "opened_interview": content.interviews.get(opened.interview_id) if opened else None,
        "left": timing.left_text(timing.seconds_left(opened.deadline_at, now)) if opened else "",
        "closed": [{"sitting": each, "interview": content.interviews.get(each.interview_id)} for each in closed],
    }


def _in_order(content: Catalogue) -> list[Interview]:
    return sorted(content.interviews.values(), key=lambda each: (each.id[0], int(each.id[1:])))


def _offer(content: Catalogue, interview: Interview, results: list[Sitting]) -> dict[str, Any]:
    """An interview as the index shows it: what it probes, how long it is and how it went."""
    scores = [service.scorecard_of(each).score for each in results]
    return {
        "interview": interview,
        "probes": named(content.concepts, interview.concepts),
        "parts": len(parts_of(interview)),
        "last": results[-1] if results else None,
        "best": max(scores) if len(scores) > 1 else None,
    }


def intro(content: Catalogue, found: Interview, opened: Sitting | None) -> dict[str, Any]:
    """What to expect of an interview."""
    return {
        "interview": found,
        "opened": opened,
        "content": content,
        "parts": len(parts_of(found)),
        "probes": named(content.concepts, found.concepts),
        "words": sum(question.kind == "text" for question in found.questions),
        "follow_ups": sum(question.follow_up is not None for question in found.questions),
        "levels": levels.for_page(),
        "share": FOLLOW_UP_SHARE,
    }


def sitting(
    session: Session,
    content: Catalogue,
    found: Sitting,
    wanted: str,
    now: datetime,
    *,
    typed: str | None = None,
    error: DomainError | None = None,
) -> dict[str, Any]:
    """One part of a sitting under way."""
    interview = service.find_interview(content, found.interview_id)
    values = service.values_of(interview, found.drawn)
    saved = service.answers_of(session, found)
    texts = {part: answer.answer for part, answer in saved.items() if answer.final}
    rows: list[dict[str, Any]] = []
    for number, part in enumerate(parts_of(interview), 1):
        given = saved.get(part.id)
        asked = prompt(part, values, texts)
        rows.append(
            {
                "part": part,
                "prompt": asked,
                "answer": given.answer if given else "",
                "final": bool(given and given.final),
                "saved_at": given.saved_at if given else None,
                "title": part.title,
                "number": number,
                "short": "follow-up" if part.is_follow_up else part.question.title,
            }
        )
    asked_rows = [row for row in rows if row["prompt"] is not None]
    current = next((row for row in asked_rows if row["part"].id == wanted), None) or next(
        (row for row in asked_rows if not row["final"]), asked_rows[-1]
    )
    if typed is not None:
        current = {**current, "answer": typed}
    seconds = timing.seconds_left(found.deadline_at, now)
    part = current["part"]
    unit = part.source.unit
    return {
        "sitting": found,
        "interview": interview,
        "rows": rows,
        "current": current,
        "error": error,
        "seconds_left": seconds,
        "left": timing.left_text(seconds),
        "example": example_of(unit) if unit is not None else "",
        "kind": part.question.kind,
        "choice": offered(part, values, texts, found.id) if part.kind == "choice" else None,
        "all_final": all(row["final"] for row in asked_rows),
    }


def next_part(session: Session, content: Catalogue, found: Sitting, part_id: str) -> str:
    """The part behind `part_id` that is asked and still open; else the first open one; else `part_id`."""
    interview = service.find_interview(content, found.interview_id)
    values = service.values_of(interview, found.drawn)
    saved = service.answers_of(session, found)
    texts = {part: answer.answer for part, answer in saved.items() if answer.final}
    ids = [part.id for part in parts_of(interview) if prompt(part, values, texts) is not None]
    still_open = [each for each in ids if not (each in saved and saved[each].final)]
    behind = [each for each in still_open if ids.index(each) > ids.index(part_id)] if part_id in ids else []
    return (behind or still_open or [part_id])[0]


def scorecard(content: Catalogue, found: Sitting) -> dict[str, Any]:
    """The scorecard of a closed sitting."""
    interview: Interview = service.find_interview(content, found.interview_id)
    card = service.scorecard_of(found)
    used = ((found.closed_at or found.deadline_at) - found.started_at).total_seconds()
    return {
        "sitting": found,
        "interview": interview,
        "card": card,
        "levels": levels.for_page(),
        "minutes_used": used / 60,
        "counts_for": named(content.concepts, interview.concepts),
        "cures": _cures(content, card),
        "html": Markup,
        "closed_by": "you ended it" if found.closed_by == "candidate" else "time was up",
    }


def _cures(content: Catalogue, card: Scorecard) -> list[dict[str, Any]]:
    """The cards for the slips that were made, each once, with the questions they were made in."""
    found: dict[str, dict[str, Any]] = {}
    for row in card.rows:
        if row.cure and row.cure in content.cards:
            cure = content.cards[row.cure]
            found.setdefault(cure.id, {"card": cure, "titles": []})["titles"].append(row.title)
    return list(found.values())
