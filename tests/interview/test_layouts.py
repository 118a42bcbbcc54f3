"""Layouts placed in a sitting: what is asked about one, what changing it earns, and what the debrief says."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.interview_schemas import LaidOut, Question
from app.interview.drawing import draw, values_of
from app.interview.parts import Part, Reaction, parts_of
from app.interview.prompts import prompt
from app.interview.questions import right_answer
from app.interview.reacting import react
from app.interview.rows import Row
from app.interview.scoring import scorecard

WITH_LAYOUTS = ("M4", "M5")
ACROSS = {"M4": "pipeline 8, tensor 8", "M5": "data 64, tensor 8"}
FITTING = {"M4": "tensor 4, data 4, pipeline 4", "M5": "tensor 8, data 64"}


def _talk(content: Catalogue, name: str, said: list[str]) -> tuple[list[Part], dict[str, str], dict[str, Reaction]]:
    """The parts that come of a layout and the replies to what is asked about it."""
    interview = content.interviews[name]
    values, reactions, answers = values_of(interview, draw(interview, 1)), dict[str, Reaction](), dict[str, str]()
    part = next(each for each in parts_of(interview) if each.kind == "layout")
    asked = [part]
    for text in said:
        answers[part.id] = text
        found = react(part, parts_of(interview, reactions), values, answers, reactions)
        if found is None:
            break
        reactions[part.id] = found
        part = next(each for each in parts_of(interview, reactions) if each.id == found.asks)
        asked.append(part)
    return asked, answers, reactions


def _row(content: Catalogue, name: str, answers: dict[str, str], reactions: dict[str, Reaction]) -> Row:
    interview = content.interviews[name]
    return scorecard(interview, values_of(interview, draw(interview, 1)), answers, {}, reactions).row("layout")


@pytest.mark.parametrize("name", WITH_LAYOUTS)
def test_a_layout_over_nodes_is_asked_what_it_costs_and_may_be_changed(content: Catalogue, name: str) -> None:
    asked, answers, reactions = _talk(content, name, [ACROSS[name], "1 ms", FITTING[name]])
    assert [each.role for each in asked] == ["asked", "own", "again"]
    interview = content.interviews[name]
    values = values_of(interview, draw(interview, 1))
    question = str(prompt(asked[1], values, answers))
    assert "across 8 nodes" in question
    assert "which link" in str(prompt(asked[2], values, answers)).lower()
    changed, stayed = (
        _row(content, name, answers, reactions),
        _row(content, name, {**answers, "layout.again": ACROSS[name]}, reactions),
    )
    assert (changed.verdict, stayed.verdict) == ("corrected", "wrong")
    assert 0 < stayed.reached <= 0.2 * stayed.points, "the one thing that is asked is missed"
    assert changed.reached == pytest.approx((stayed.reached + stayed.points) / 2), "half of what was lost"
    assert stayed.cure == "C70"
    assert any(not held and "Tensor 8 over 8 nodes" in text for text, held in stayed.checks)
    assert stayed.at_levels[0][0] == "strong hire"


@pytest.mark.parametrize("name", WITH_LAYOUTS)
def test_a_good_layout_is_asked_what_follows_from_it_and_nothing_more(content: Catalogue, name: str) -> None:
    asked, answers, reactions = _talk(content, name, [FITTING[name], "1 %" if name == "M4" else "1 GB", "none"])
    assert [each.role for each in asked] == ["asked", "own"]
    row = _row(content, name, answers, reactions)
    assert (row.verdict, row.reached, row.kind) == ("right", 10.0, "layout")
    assert all(held for _, held in row.checks)
    interview = content.interviews[name]
    values = values_of(interview, draw(interview, 1))
    assert asked[0].kind == "layout"
    assert right_answer(asked[0], values, {}).startswith("tensor 4, context 1")


def test_a_layout_for_other_gpus_is_questioned_at_once_and_earns_nothing(content: Catalogue) -> None:
    asked, answers, reactions = _talk(content, "M5", ["tensor 8, data 32"])
    assert [each.role for each in asked] == ["asked", "again"]
    assert reactions["layout"].slip == "gpus"
    row = _row(content, "M5", answers, reactions)
    assert (row.verdict, row.reached) == ("wrong", 0.0)
    assert row.checks == (("tensor 8 × data 32 = 256 GPUs, and there are 512.", False),)


def test_what_a_layout_question_needs(content: Catalogue) -> None:
    whole = next(each for each in content.interviews["M5"].questions if each.kind == "layout")
    fields = whole.model_dump(exclude_none=True)
    for missing in ("plan", "layouts", "cure"):
        with pytest.raises(ValidationError):
            Question.model_validate({name: each for name, each in fields.items() if name != missing})
    with pytest.raises(ValidationError, match="without a mistake"):
        Question.model_validate({**fields, "layouts": [each for each in fields["layouts"] if "mistake" in each]})
    with pytest.raises(ValidationError, match="has a mistake and its cure"):
        LaidOut(said="tensor 8", level="no hire", mistake="memory")
