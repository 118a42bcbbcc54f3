"""What the interview's templates are handed, but for a sitting under way (`sitting_page`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from markupsafe import Markup
from sqlalchemy.orm import Session

from app.content import recipes
from app.content.catalogue import Catalogue
from app.content.coding import CodingRound
from app.content.concept_map import named
from app.content.interview_schemas import Interview
from app.content.rounds import Round
from app.core.errors import DomainError, NotFound
from app.grading import levels
from app.grading.hints import share_left
from app.interview import drawing, offers, queries, service, stored, timing
from app.interview.closing import ANSWERED, ENDED
from app.interview.debrief import debrief
from app.interview.earlier import MOST_EARLIER, Before, learned
from app.interview.expectation import NOT_SAID, compare, over_sittings
from app.interview.models import Sitting, SittingAnswer
from app.interview.parts import (
    FOLLOW_UP_SHARE,
    PUSHED_SHARE,
    Values,
    has_board,
    known_to,
    parts_of,
)
from app.interview.prompts import prompt
from app.interview.questions import layout_of, scene
from app.interview.rows import NO_ANSWER, NOT_ASKED
from app.interview.scorecards import Scorecard
from app.interview.sitting_page import board_of
from app.theory.planner.groups import LaidCluster


def index(session: Session, learner_id: int, content: Catalogue, now: datetime) -> dict[str, object]:
    """The interviews there are, the one under way and the closed ones."""
    opened = queries.find_open(session, learner_id)
    if opened is not None and timing.is_over(opened.deadline_at, now):
        opened = None  # the next touch or sweep closes it
    closed = queries.list_closed(session, learner_id)
    expectations = service.list_expectations(session, learner_id)
    results = service.list_results(session, learner_id)
    return {
        "interviews": [_offer(content, each, results.get(each.id, [])) for each in _in_order(content)],
        "levels": levels.for_page(),
        "opened": opened,
        "opened_title": short_title(content, opened) if opened else "",
        "left": timing.left_text(timing.seconds_left(opened.deadline_at, now)) if opened else "",
        "closed": [_closed(content, each) for each in closed],
        "expectations": over_sittings(expectations),
        "generate": generation(content, {}, None),
    }


def generation(content: Catalogue, said: Mapping[str, str], error: DomainError | None) -> dict[str, object]:
    """The form of a generated sitting as it was filled in, with what is wrong by field."""
    return {
        "said": {
            "minutes": "30",
            "focus": recipes.ANYTHING,
            "role": recipes.ANYTHING,
            "seed": "",
            "coding": "",
            **said,
        },
        "foci": recipes.foci(content),
        "roles": content.roles,
        "shortest": recipes.SHORTEST,
        "longest": recipes.LONGEST,
        "wrong": {each.field: each for each in error.violations} if error else {},
        "error": error,
    }


def _closed(content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """A closed sitting as the index lists it. Before its level was guessed it does not say it."""
    return {
        "sitting": sitting,
        "title": _title(content, sitting),
        "is_seen": sitting.expected_level is not None,
        "expectation": compare(sitting.expected_level, stored.scorecard_of(sitting).level),
    }


def _title(content: Catalogue, sitting: Sitting) -> str:
    """What a sitting is called; its interview's id alone where content no longer has it."""
    try:
        interview = offers.interview_of(content, sitting)
        return f"{interview.label}, {interview.title}"
    except NotFound:
        return sitting.interview_id


def short_title(content: Catalogue, sitting: Sitting) -> str:
    """What a sitting is called in a few words."""
    if not offers.is_generated(sitting):
        return sitting.interview_id
    try:
        return offers.interview_of(content, sitting).title
    except NotFound:
        return sitting.interview_id


def _in_order(content: Catalogue) -> list[Interview]:
    return sorted(content.interviews.values(), key=lambda each: (each.id[0], int(each.id[1:])))


def _offer(content: Catalogue, interview: Interview, results: list[Sitting]) -> dict[str, object]:
    """An interview as the index shows it: what it probes, how long it is and how it went."""
    scores = [stored.scorecard_of(each).score for each in results]
    return {
        "interview": interview,
        "probes": named(content.concepts, interview.concepts),
        "parts": len(parts_of(interview)),
        "last": results[-1] if results else None,
        "best": max(scores) if len(scores) > 1 else None,
    }


def intro(content: Catalogue, interview: Interview, opened: Sitting | None) -> dict[str, object]:
    """What to expect of an interview."""
    return {
        "interview": interview,
        "opened": opened,
        "opened_title": short_title(content, opened) if opened else "",
        "content": content,
        "parts": len(parts_of(interview)),
        "probes": named(content.concepts, interview.concepts),
        "words": sum(question.kind == "text" for question in interview.questions),
        "follow_ups": sum(question.follow_up is not None for question in interview.questions),
        "levels": levels.for_page(),
        "share": FOLLOW_UP_SHARE,
        "pushed_share": PUSHED_SHARE,
        "problems": _problems(interview) if isinstance(interview, Round) else [],
        "hint_share": share_left(1) if any(question.hints for question in interview.questions) else None,
        "givens": any(question.kind == "givens" for question in interview.questions),
        # of what was generated alone
        "recipe": (),
        "on_focus": None,
        "is_weakest": False,
        "was_sat": False,
        # of a coding round, where programs cannot be run
        "instead": "",
        "is_coding": isinstance(interview, CodingRound),
        "writes": any(question.kind == "coding" for question in interview.questions),
    }


def _problems(whole: Round) -> list[dict[str, object]]:
    """The problems of a round, with what of it they are."""
    asked = {name: [each for each in whole.questions if each.problem.id == name] for name in whole.problems}
    return [
        {
            "problem": whole.problems[name],
            "parts": len(questions),
            "minutes": sum(each.minutes for each in questions),
            "points": sum(each.points for each in questions),
        }
        for name, questions in asked.items()
    ]


def expectation(content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """A closed sitting before its debrief."""
    return {
        "sitting": sitting,
        "interview": offers.interview_of(content, sitting),
        "choices": [{"id": each, "text": each.capitalize()} for each in levels.NAMES]
        + [{"id": NOT_SAID, "text": "I would rather not say"}],
        "closed_by": _closed_by(sitting),
    }


def judging(content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """A closed sitting whose programs are still with the judge."""
    return {"sitting": sitting, "interview": offers.interview_of(content, sitting), "closed_by": _closed_by(sitting)}


def _closed_by(sitting: Sitting, card: Scorecard | None = None) -> str:
    """Who ended a sitting; with what was still open, where there is a card that says so."""
    all_given = card is not None and not any(row.verdict == NO_ANSWER for row in card.rows)
    if sitting.closed_by == ANSWERED or (sitting.closed_by == ENDED and all_given):
        return "you answered everything"
    return "you ended it" if sitting.closed_by == ENDED else "time was up"


def scorecard(session: Session, content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """The scorecard of a closed sitting."""
    interview: Interview = offers.interview_of(content, sitting)
    saved = stored.answers_of(session, sitting)
    card = _with_questions(stored.scorecard_of(sitting), interview, sitting, saved)
    used = ((sitting.closed_at or sitting.deadline_at) - sitting.started_at).total_seconds()
    values = drawing.values_of(interview, sitting.drawn)
    scenes = {question.id: scene(question, values) for question in interview.questions}
    earlier = _earlier_sittings(session, content, interview, sitting)
    return {
        "sitting": sitting,
        "interview": interview,
        "scenes": scenes,
        "boards": {part.id: board_of(saved, part.id) for part in parts_of(interview) if has_board(part)},
        "laid": _laid(interview, card, values, saved),
        "card": card,
        "debrief": debrief(content, interview, sitting, card, saved, stored.reactions_in(saved)),
        "earlier": earlier,
        "learned": learned(earlier[-1].card, card) if earlier else (),
        "levels": levels.for_page(),
        "minutes_used": used / 60,
        "counts_for": named(content.concepts, interview.concepts),
        "html": Markup,
        "closed_by": _closed_by(sitting, card),
        "expectation": compare(sitting.expected_level, card.level),
        "expectations": over_sittings(service.list_expectations(session, sitting.learner_id)),
    }


def _laid(
    interview: Interview, card: Scorecard, values: Values, saved: Mapping[str, SittingAnswer]
) -> dict[str, dict[str, LaidCluster]]:
    """The layout that was placed and the best one, as they lie on the cluster, by part."""
    texts = {part: answer.answer for part, answer in saved.items()}
    found: dict[str, dict[str, LaidCluster]] = {}
    for part in parts_of(interview):
        known = known_to(part, values, texts) if part.kind == "layout" else None
        if known is None or card.row(part.id).verdict == NOT_ASKED:
            continue
        question = layout_of(part, known)
        mine = question.filled(texts.get(part.id, ""))
        yours = {"Yours": question.figured(mine)} if mine else {}
        found[part.id] = yours | {f"The best the search finds: {question.key_text}": question.best().cluster}
    return found


def _earlier_sittings(session: Session, content: Catalogue, interview: Interview, sitting: Sitting) -> list[Before]:
    """The last sittings of this interview before this one, oldest first, of those whose debrief was opened."""
    results = service.list_results(session, sitting.learner_id).get(interview.id, [])
    before = [each for each in results if each.id < sitting.id and each.expected_level is not None]
    return [_before(session, content, each) for each in before[-MOST_EARLIER:]]


def _before(session: Session, content: Catalogue, sitting: Sitting) -> Before:
    card, saved = stored.scorecard_of(sitting), stored.answers_of(session, sitting)
    interview = offers.interview_of(content, sitting)  # of a coding round each has tasks of its own
    debriefed = debrief(content, interview, sitting, card, saved, stored.reactions_in(saved))
    return Before(sitting.id, sitting.started_at, card, debriefed.criteria)


def _with_questions(
    card: Scorecard, interview: Interview, sitting: Sitting, saved: Mapping[str, SittingAnswer]
) -> Scorecard:
    """The card with what was asked; one of an earlier version kept no questions, and is given today's."""
    if all(row.asked or row.verdict == NOT_ASKED for row in card.rows):
        return card
    values, texts = drawing.values_of(interview, sitting.drawn), {part: answer.answer for part, answer in saved.items()}
    asked = {part.id: str(prompt(part, values, texts) or "") for part in parts_of(interview)}
    return Scorecard(tuple(replace(row, asked=row.asked or asked.get(row.id, "")) for row in card.rows))
