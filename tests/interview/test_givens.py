"""What a candidate asks to be told before computing: asked for, given at its price, and never handed over."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Given, Interview, Question
from app.interview.criteria import criteria
from app.interview.drawing import draw, values_of
from app.interview.givens_checks import givens_findings
from app.interview.parts import parts_of
from app.interview.prompts import prompt
from app.interview.scorecards import Scorecard
from app.interview.scoring import scorecard

ASK = "ask-failures"


def test_what_is_needed_is_told_once_it_was_chosen_and_what_was_left_out_has_its_price(client: TestClient) -> None:
    sitting = client.post("/interview/operations").headers["location"]
    page = client.get(f"{sitting}?part={ASK}").text
    assert "at a price of 1.33 points each" in " ".join(page.split())
    assert "GPU-hours, each of which" not in page
    chosen = {"part": ASK, "answer": ["rate", "price"]}
    client.post(f"{sitting}/answers", data=chosen, headers={"Accept": "application/json"})
    page = client.get(f"{sitting}?part={ASK}").text
    assert page.count(" checked>") == 2, "a draft comes back"
    assert "GPU-hours, each of which" not in page
    for refused in ("", "rate, colour"):
        reply = client.post(f"{sitting}/answers", data={"part": ASK, "answer": refused, "final": "true"})
        assert reply.status_code == 422
    given = client.post(f"{sitting}/answers", data={**chosen, "final": "true"})
    assert given.headers["location"].endswith("?part=between")
    better = {"part": ASK, "answer": ["rate", "stop", "restart"], "final": "true"}
    assert client.post(f"{sitting}/answers", data=better).status_code == 409, "what was asked for stays"
    told = client.get(f"{sitting}?part=between").text
    assert "GPU-hours, each of which" in told
    assert told.count("given to you, −") == 2
    assert told.count("not needed, −") == 1
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": ""})
    debrief = client.get(sitting).text
    assert "1 of 3 asked for" in debrief
    assert (debrief.count("Had to be told</b>"), debrief.count("Not needed</b>")) == (2, 1)


def _card(content: Catalogue, chosen: str, **more: str) -> Scorecard:
    interview = content.interviews["M8"]
    return scorecard(interview, values_of(interview, draw(interview, 1)), {ASK: chosen, **more}, {})


@pytest.mark.parametrize(
    ("chosen", "verdict", "reached"),
    [
        ("rate, stop, restart", "right", 4.0),
        ("rate, stop", "2 of 3 asked for", 4 * 2 / 3),
        ("rate, stop, restart, loss", "3 of 3 asked for", 4 * 2 / 3),
        ("rate, stop, restart, last, utilisation, tokens, price, loss, interval", "3 of 3 asked for", 0.0),
        ("", "no answer", 0.0),
    ],
)
def test_what_was_asked_for_counts_once(content: Catalogue, chosen: str, verdict: str, reached: float) -> None:
    card = _card(content, chosen)
    row = card.row(ASK)
    assert (row.verdict, row.reached, card.points) == (verdict, pytest.approx(reached, abs=1e-3), 100)
    if chosen:
        assert row.lost == pytest.approx(min(row.points, sum(each.price for each in row.givens)), abs=1e-3)
    assert Scorecard.from_json(card.to_json()) == card
    assert card.reached == pytest.approx(row.reached, abs=0.01), "and nowhere else"
    rows = _card(content, chosen, mfu="1 %", between="1 h").rows  # all is asked, and nothing else of structure said
    structure = next(each for each in criteria(rows) if each.id == "structure")
    assert structure.rule.startswith(f"{reached:.3g} of "), structure.rule


def test_a_sitting_from_before_the_question_is_not_marked_down_for_it(content: Catalogue) -> None:
    card = _card(content, "", between="10 h")
    assert (card.row(ASK).verdict, card.row(ASK).points, card.points) == ("not asked", 0.0, 96)
    assert card.row("between").verdict in ("right", "wrong")


def test_nothing_is_computed_before_what_it_needs_was_asked_for(content: Catalogue) -> None:
    interview = content.interviews["M8"]
    values = values_of(interview, draw(interview, 1))
    between = next(each for each in parts_of(interview) if each.id == "between")
    assert prompt(between, values, {}) is None
    assert prompt(between, values, {ASK: "loss"}) is not None


def _with(interview: Interview, changed: dict[str, dict[str, Any]]) -> Interview:
    questions = [each.model_copy(update=changed.get(each.id, {})) for each in interview.questions]
    return interview.model_copy(update={"questions": tuple(questions)})


def test_the_check_finds_givens_that_are_handed_over_untold_or_needless(content: Catalogue) -> None:
    interview = content.interviews["M8"]
    assert not list(givens_findings(interview))
    givens = {each.id: each for each in next(each for each in interview.questions if each.id == ASK).givens}

    def findings(given: str, **fields: str) -> str:
        changed = {**givens, given: givens[given].model_copy(update=fields)}
        return " ".join(givens_findings(_with(interview, {ASK: {"givens": tuple(changed.values())}})))

    handed = _with(interview, {"mfu": {"prompt": "It writes for {{ writing }} s."}})
    assert "the prompts of mfu hand over writing" in " ".join(givens_findings(handed))
    assert "told what follows from writing" in findings("stop", reply="Not long: {{ restart | s }}.")
    assert "no key behind ask-failures is computed from the reply to stop" in findings("stop", reply="{{ name }}.")
    assert "price of ask-failures, which is not needed, tells writing" in findings("price", message="{{ writing }} s")
    alone = _with(interview, {each: {"builds_on": ()} for each in ("between", "lost")})
    assert "nothing is computed from what is asked for" in " ".join(givens_findings(alone))


def test_a_choice_of_givens_has_what_it_needs(content: Catalogue) -> None:
    question = next(each for each in content.interviews["M8"].questions if each.id == ASK)
    few = question.model_dump()
    few["givens"] = few["givens"][:5]
    with pytest.raises(ValidationError, match="3 of 5 givens are needed: at least 2, and at most half"):
        Question.model_validate(few)
    with pytest.raises(ValidationError, match="what is needed has a reply"):
        Given.model_validate({"id": "a", "text": "A?", "message": "A.", "correct": True})
