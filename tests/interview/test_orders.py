"""Arranged parts: each interview has one, it is never shown as it is right, and who puts a step too early is asked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.grading.questions.order import OrderItem, OrderQuestion
from app.interview.drawing import draw, values_of
from app.interview.parts import Reaction, parts_of
from app.interview.prompts import prompt
from app.interview.questions import right_answer, to_arrange
from app.interview.reacting import react
from app.interview.rows import Row
from app.interview.scoring import scorecard
from app.theory.pipeline.orders import Plan, one_f_one_b

STEPS = [
    {"id": "gather", "value": "1", "text": "Gather"},
    {"id": "compute", "value": "2", "text": "Compute", "ask": "With what?"},
    {"id": "free", "value": "3", "text": "Free", "ask": "Who still needs it?"},
    {"id": "log", "value": "3", "text": "Log", "ask": "Log what?"},
]
RIGHT, EARLY = "gather, compute, log, free", "gather, free, compute, log"


def _interview(**changes: Any) -> Interview:
    question = {
        "id": "unit",
        "kind": "order",
        "title": "Unit",
        "learn": "Follow one unit",
        "prompt": "Arrange.",
        "minutes": 2,
        "points": 12,
        "explanation": "One needs the other.",
        "criterion": "depth",
        "cure": "C63",
        "items": STEPS,
    }
    head = {"id": "M1", "slug": "short", "title": "Short", "about": "One.", "concepts": ["memory"], "minutes": 3}
    return Interview.model_validate({**head, "parameters": {}, "questions": [question | changes]})


def _asked(interview: Interview, said: str) -> Reaction | None:
    (part,) = parts_of(interview)
    return react(part, [part], {}, {"unit": said}, {})


def _row(said: str, again: str = "") -> Row:
    interview = _interview()
    reaction = _asked(interview, said)
    reactions = {"unit": reaction} if reaction else {}
    return scorecard(interview, {}, {"unit": said, "unit.again": again}, {}, reactions).row("unit")


def test_every_typed_interview_has_one_and_never_shows_it_right(content: Catalogue) -> None:
    for interview in (each for each in content.interviews.values() if not each.is_round):
        arranged = [part for part in parts_of(interview) if part.kind == "order"]
        assert arranged, interview.id
        for part in arranged:
            said = dict.fromkeys((each.id for each in part.builds_on), "1 ms")
            for seed in range(5):
                shown = to_arrange(part, values_of(interview, draw(interview, seed)), said, seed)
                assert shown.grade(", ".join(item.id for item in shown.items)).status == "wrong"


def test_who_puts_a_step_too_early_is_asked_about_it_once() -> None:
    interview = _interview()
    found = _asked(interview, EARLY)
    assert found == Reaction("unit.again", said="Free", slip="free")
    again = parts_of(interview, {"unit": found})[1]
    assert (again.role, again.points) == ("again", 6.0)
    asked = str(prompt(again, {}, {}))
    assert "Let me stop at ‘Free’, where you put it. Who still needs it?" in asked
    assert react(again, [again], {}, {"unit": EARLY, "unit.again": EARLY}, {"unit": found}) is None
    assert _asked(interview, RIGHT) is None


def test_put_right_when_asked_it_earns_half_of_what_it_lost() -> None:
    assert (_row(RIGHT).verdict, _row(RIGHT).reached, _row(RIGHT).criterion) == ("right", 12.0, "depth")
    stayed, righted = _row(EARLY, EARLY), _row(EARLY, RIGHT)
    assert (stayed.verdict, stayed.reached) == ("wrong", pytest.approx(8.0, abs=1e-3)), "one of six pairs, twice"
    assert (righted.verdict, righted.reached) == ("corrected", pytest.approx(10.0, abs=1e-3))
    assert righted.placed[1] == ("Compute", "Free")
    assert len(righted.pushed[0].placed) == len(righted.placed), "the second order stands in the debrief as well"
    assert Row.from_json({**vars(righted), "pushed": []}).placed == righted.placed


def test_of_two_that_send_the_same_either_is_right_on_either_place(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    card = scorecard(interview, values_of(interview, draw(interview, 1)), {"q4": "zero-1, fsdp, ddp, zero-2"}, {})
    assert card.row("q4").message == "One of 4 items is in its place; 4 of 6 pairs stand the right way round."
    assert card.row("q4").placed == (("ZeRO-1", "ZeRO-1"), ("DDP", "FSDP"), ("ZeRO-2", "DDP"), ("FSDP", "ZeRO-2"))


def test_an_order_that_proves_nothing_is_no_question() -> None:
    for wrong, message in (
        ({"items": STEPS[:3]}, "3 items are soon guessed"),
        ({"criterion": None}, "needs a criterion"),
        ({"cure": None}, "needs cure"),
        ({"kind": "choice"}, "no other, has items"),
    ):
        with pytest.raises(ValidationError, match=message):
            _interview(**wrong)


def test_the_first_step_too_early_is_named_and_equal_ones_may_stand_either_way() -> None:
    items = tuple(OrderItem(each["id"], each["text"], float(each["value"])) for each in STEPS)  # type: ignore[arg-type]
    order = OrderQuestion(items)
    early = {said: found.id if (found := order.too_early(said)) else None for said in (RIGHT, EARLY, "gather, free")}
    assert early == {RIGHT: None, EARLY: "free", "gather, free": None}


def test_the_passes_of_m4_are_those_of_the_schedule(content: Catalogue) -> None:
    interview = content.interviews["M4"]
    part = next(each for each in parts_of(interview) if each.kind == "order")
    right = right_answer(part, values_of(interview, draw(interview, 1)), {}).split(", ")
    passes = one_f_one_b(Plan(rank=1, stages=4, micro_batches=16, chunks=(1,)))
    played = [f"{each.kind.lower()}{each.micro_batch + 1}" for each in passes]
    assert right == played[: len(right)]


def test_it_is_arranged_saved_given_and_told_over_http(client: TestClient) -> None:
    sitting = client.post("/interview/M9").headers["location"]

    def save(*ids: str, final: bool = True) -> str:
        data = {"part": "q4", "answer": list(ids), "final": str(final)}
        return " ".join(client.post(f"{sitting}/answers", data=data, headers={"Accept": "text/html"}).text.split())

    untouched = client.get(f"{sitting}?part=q4").text
    assert "data-untouched" in untouched
    assert "data-as-shown" in untouched
    assert "Nothing is moved yet" in save()
    assert "Every item needs an answer; 2 of 4" in save("ddp", "zero-2")
    save("fsdp", "zero-2", "zero-1", "ddp", final=False)
    draft = client.get(f"{sitting}?part=q4").text
    assert "data-untouched" not in draft
    assert "data-as-shown" not in draft
    assert re.findall(r'type="hidden" name="answer" value="([\w-]+)"', draft) == ["fsdp", "zero-2", "zero-1", "ddp"]
    save("fsdp", "zero-2", "zero-1", "ddp")
    asked = client.get(f"{sitting}?part=q4.again").text
    assert "How often does FSDP gather" in asked
    assert "Stay with your order" in asked
    data = {"part": "q4.again", "answer": ["zero-1", "ddp", "zero-2", "fsdp"], "final": "true"}
    client.post(f"{sitting}/answers", data=data)
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": ""})
    told = " ".join(client.get(sitting).text.split())
    assert "You: FSDP" in told
    assert "<ol><li>ZeRO-1</li>" in told.replace("> <", "><"), "the second order beside the first"
    assert "Put right" in told
    assert "5 of 10 points" in told
