"""Questions that build on earlier answers: the candidate's own numbers go on, and nothing is asked or crashes early."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.core.db import Database
from app.interview import answering, closing, drawing, pages, parts, prompts, questions, rows, scoring, service
from tests.conftest import NOW
from tests.support.sat import sit

STATE = {
    "id": "state",
    "kind": "number",
    "title": "State",
    "prompt": "How much?",
    "minutes": 1,
    "points": 10,
    "explanation": "Sixteen bytes each.",
    "key": "training_state(parameters=7e9)",
    "unit": "GB",
}
TRAP = {
    "id": "trap",
    "kind": "choice",
    "title": "Trap",
    "learn": "Double nothing",
    "prompt": "Twice {{ said.state | GB }}?",
    "minutes": 1,
    "points": 5,
    "explanation": "No.",
    "builds_on": ["state"],
    "options": [
        {
            "id": "yes",
            "text": "It is {{ (2 * said.state) | GB }}.",
            "message": "No.",
            "ask": "Is it?",
            "did": "doubled",
        },
        {"id": "no", "text": "It is {{ training_state(parameters=7e9) | GB }}.", "correct": True, "message": "Yes."},
    ],
}
GPUS = {
    "id": "gpus",
    "kind": "number",
    "title": "GPUs",
    "prompt": "For your {{ said.state | GB }}?",
    "minutes": 1,
    "points": 5,
    "explanation": "{{ (80e9 / said.state) | number }}",
    "key": "80e9 / said.state",
    "unit": "",
    "builds_on": ["state"],
}
WORDS = {
    "id": "words",
    "kind": "text",
    "title": "Words",
    "prompt": "Why?",
    "minutes": 1,
    "points": 5,
    "builds_on": ["trap"],
    "explanation": "Because.",
    "exemplar": "Because.",
    "weak": "Whatever.",
    "cure": "C01",
    "rubric": [{"id": "why", "topic": "the reason", "text": "Of it.", "met": ["because"]}],
}


def _interview(*questions: dict[str, Any]) -> Interview:
    head = {"id": "M1", "slug": "short", "title": "Short", "about": "It.", "concepts": ["memory"], "minutes": 9}
    return Interview.model_validate({**head, "parameters": {}, "questions": questions})


def _prompts(interview: Interview, answers: dict[str, str]) -> Iterator[str | None]:
    for part in parts.parts_of(interview):
        found = prompts.prompt(part, {}, answers)
        yield None if found is None else str(found.striptags())


def _rows(interview: Interview, answers: dict[str, str]) -> dict[str, rows.Row]:
    return {row.id: row for row in scoring.scorecard(interview, {}, answers, {}).rows}


def test_a_later_question_goes_by_the_candidates_own_number() -> None:
    interview = _interview(STATE, GPUS)
    assert list(_prompts(interview, {"state": "40 GB"})) == ["How much?", "For your 40 GB?"]
    rows = _rows(interview, {"state": "40 GB", "gpus": "2"})
    assert (rows["state"].verdict, rows["gpus"].verdict) == ("wrong", "right")


def test_who_sees_a_wrong_number_and_says_what_is_so_is_right() -> None:
    rows = _rows(_interview(STATE, GPUS), {"state": "40 GB", "gpus": "0.714"})  # 80 / 112, not 80 / 40
    assert (rows["state"].verdict, rows["gpus"].verdict, rows["gpus"].key) == ("wrong", "right", "0.7143")
    assert rows["gpus"].message == "From your own 40 GB it would be 2; what is right counts as well."
    assert _rows(_interview(STATE, GPUS), {"state": "40 GB", "gpus": "1.4"})["gpus"].verdict == "wrong"


def test_a_follow_up_takes_what_is_so_beside_what_follows_from_ones_own_number(content: Catalogue) -> None:
    sat = sit(content, "M9")
    first, ranks = 16e9 * sat.values["billions"], sat.values["ranks"]
    for follow in (first / 2 / ranks, first / ranks):
        answers = {"q1": f"{first / 2 / 1e9} GB", "q1.follow": f"{follow / 1e9} GB"}
        card = scoring.scorecard(sat.interview, sat.values, answers, {})
        assert [card.row(each).verdict for each in answers] == ["wrong", "right"], follow


def test_nothing_is_asked_before_what_it_builds_on_is_answered() -> None:
    interview = _interview(STATE, TRAP, WORDS)
    assert list(_prompts(interview, {})) == ["How much?", None, None]
    assert list(_prompts(interview, {"state": "112 GB"})) == ["How much?", "Twice 112 GB?", None]
    assert list(_prompts(interview, {"state": "112 GB", "trap": "yes"}))[2] == "Why?"
    rows = _rows(interview, {"words": "typed all the same"})
    assert [rows[each].verdict for each in ("trap", "words")] == ["not asked", "not asked"]


def test_a_number_without_consequence_asks_nothing_and_breaks_nothing() -> None:
    interview = _interview(STATE, GPUS)
    assert list(_prompts(interview, {"state": "0 GB"})) == ["How much?", None]
    assert _rows(interview, {"state": "0 GB", "gpus": "2"})["gpus"].verdict == "not asked"


def test_what_a_choice_offers_is_computed_and_gives_no_formula_away() -> None:
    trap = parts.parts_of(_interview(STATE, TRAP))[1]
    choice = questions.offered(trap, {}, {"state": "7 GB"}, 1)
    assert {option.id: option.text for option in choice.options} == {"yes": "It is 14 GB.", "no": "It is 112 GB."}
    row = _rows(_interview(STATE, TRAP), {"state": "7 GB", "trap": "no"})["trap"]
    assert (row.verdict, row.said_text, row.key) == ("right", "It is 112 GB.", "It is 112 GB.")


def test_prompts_show_what_let_computes_without_its_formula(content: Catalogue) -> None:
    interview = content.interviews["M5"]
    values = drawing.values_of(interview, drawing.draw(interview, 1))
    gap = next(part for part in parts.parts_of(interview) if part.id == "gap")
    asked = prompts.prompt(gap, values, {"time": "300 days"})
    assert asked is not None
    assert "days" in asked
    assert "data-live" not in asked


@pytest.mark.parametrize("wrong", [({**GPUS, "builds_on": ["trap"]}, "no earlier question"), (STATE, "two questions")])
def test_it_builds_on_earlier_questions_only(wrong: tuple[dict[str, Any], str]) -> None:
    with pytest.raises(ValidationError, match=wrong[1]):
        _interview(STATE, wrong[0])


def test_the_index_says_how_the_last_sitting_went_and_the_best(database: Database, content: Catalogue) -> None:
    interview = content.interviews["M9"]
    for hours, answer in ((0, True), (1, False)):
        now = NOW + timedelta(hours=hours)
        with database.write() as session:
            sitting = service.start(session, 1, content, interview, now)
            if answer:
                answering.save_answer(session, content, sitting, "q2", "memory-alone", True, now)
            closing.close(session, content, sitting, now, "candidate")
    with database.read() as session:
        offers = {each["interview"].id: each for each in pages.index(session, 1, content, now)["interviews"]}
        assert service.best_scores(session, 1) == {"M9": 0.1}
    assert offers["M9"]["last"].scorecard["score"] == 0.0
    assert offers["M9"]["best"] == 0.1
    assert offers["M1"]["last"] is None
    assert next(iter(offers)) == "M1"
