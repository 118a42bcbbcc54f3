"""Every kind of part: what an answer to it is worth, what is said of it, and the learner's own values carried on."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.live import ExpressionError
from app.content.problem_schemas import Problem
from app.grading.questions import ChoiceQuestion, ConfigurationQuestion, NumberQuestion, OrderQuestion
from app.practice import desk as desks
from app.practice.checks import _problem_findings, check_problems
from app.practice.forms import read_form
from app.practice.variants import make_variant

CHOICE: dict[str, Any] = {
    "id": "c",
    "kind": "choice",
    "prompt": "Which?",
    "options": [
        {"id": "few", "text": "Few", "correct": "n < 5", "message": "Below five.", "cure": "C62"},
        {"id": "many", "text": "Many", "correct": "n >= 5", "message": "Five or more."},
    ],
}
SET: dict[str, Any] = {
    "id": "s",
    "kind": "set",
    "prompt": "Which of them?",
    "options": [
        {"id": "one", "text": "One", "correct": True, "message": "One is."},
        {"id": "two", "text": "Two", "correct": True, "message": "Two is."},
        {"id": "three", "text": "Three", "message": "Three is not.", "cure": "C61"},
    ],
}
ORDER: dict[str, Any] = {
    "id": "o",
    "kind": "order",
    "prompt": "Order them",
    "message": "By size.",
    "unit": "GB",
    "items": [
        {"id": "b", "text": "B", "value": "n * 2e9"},
        {"id": "a", "text": "A", "value": "n * 1e9"},
        {"id": "d", "text": "D", "value": "n * 3e9"},
    ],
}
PLAN: dict[str, Any] = {
    "id": "g",
    "kind": "configuration",
    "prompt": "Choose",
    "plan": {
        "model": "llama-2-70b",
        "training": {"sequence": 4096, "micro_batch": 1, "global_batch": 512},
        "parallel": {"sequence_parallel": True},
        "cluster": {"gpu": "a100-80gb", "nodes": "${n * 4}"},
    },
    "fields": {"tensor": [1, 2, 4, 8], "pipeline": [1, 2, 4, 8], "data": [2, 4, 8, 16, 32, 64, 128], "zero": [0, 1]},
}


def problem(*parts: dict[str, Any], **more: Any) -> Problem:
    texts = {"statement": "Say.", "hints": ["x", "y", "z"], "solution": "So."}
    head = {"id": "P99", "slug": "made-up", "title": "Made up", "about": "About", "concepts": ["x"], "minutes": 1}
    return Problem.model_validate({**head, "parameters": {"n": [4]}, "parts": list(parts), **texts, **more})


def part(source: dict[str, Any]) -> Any:
    return make_variant(problem(source), 1).parts[0]


def number(id_: str, key: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "prompt": "How many?", "key": key, "unit": "", **more}


# choice and set


def test_a_choice_is_right_or_wrong_and_says_why() -> None:
    asked = part(CHOICE)
    assert isinstance(asked.question, ChoiceQuestion)
    right = asked.grade("few")
    assert (right.status, right.credit, right.message) == ("correct", 1.0, "Below five.")
    wrong = asked.grade("many")
    assert (wrong.status, wrong.credit, wrong.message, wrong.misconception) == ("wrong", 0.0, "Five or more.", "many")
    assert asked.grade("Few").status == "correct"
    assert asked.said("many") == "Many"


@pytest.mark.parametrize("text", ["fewer", "few, many", "", "1", "<b>few</b>"])
def test_what_is_no_option_costs_nothing(text: str) -> None:
    grade = part(CHOICE).grade(text)
    assert (grade.status, grade.credit) == ("invalid", 0.0)


@pytest.mark.parametrize(
    ("ticked", "status", "credit"),
    [
        ("one, two", "correct", 1.0),
        ("two one", "correct", 1.0),
        ("one", "wrong", 0.5),
        ("one, two, three", "wrong", 0.5),  # two right ticks less one wrong one, of two
        ("one, three", "wrong", 0.0),
        ("three", "wrong", 0.0),
    ],
)
def test_a_wrong_tick_takes_back_a_right_one(ticked: str, status: str, credit: float) -> None:
    grade = part(SET).grade(ticked)
    assert (grade.status, grade.credit) == (status, credit)


def test_a_set_says_what_was_misjudged_and_what_cures_it() -> None:
    grade = part(SET).grade("one, three")
    assert sorted(grade.message.rstrip(".").split(". ")) == ["Three is not", "Two is"], "as they are shown"
    assert (grade.misconception, grade.cure) == ("three", "C61")


# order


@pytest.mark.parametrize(
    ("text", "status", "credit"),
    [
        ("a, b, d", "correct", 1.0),
        ("a > b > d", "correct", 1.0),
        ("b, a, d", "wrong", round(2 * 2 / 3 - 1, 4)),  # two of three pairs stand right
        ("d, b, a", "wrong", 0.0),
        ("a, b", "invalid", 0.0),
        ("a, a, b", "invalid", 0.0),
        ("a, b, x", "invalid", 0.0),
    ],
)
def test_an_order_is_judged_pair_by_pair(text: str, status: str, credit: float) -> None:
    grade = part(ORDER).grade(text)
    assert (grade.status, grade.credit) == (status, credit)


def test_equal_things_may_stand_either_way_and_largest_may_come_first() -> None:
    equal = [
        {"id": "a", "text": "A", "value": "1"},
        {"id": "b", "text": "B", "value": "1"},
        {"id": "c", "text": "C", "value": "n"},
    ]
    asked = part({**ORDER, "items": equal, "direction": "descending"})
    assert isinstance(asked.question, OrderQuestion)
    assert asked.grade("c, a, b").status == asked.grade("c, b, a").status == "correct"
    assert asked.grade("a, b, c").status == "wrong"
    assert part(ORDER).key_text == "A (4 GB), B (8 GB), D (12 GB)"


# configuration


def test_a_configuration_is_judged_by_the_theory_library() -> None:
    asked = part(PLAN)
    assert isinstance(asked.question, ConfigurationQuestion)
    assert asked.grade(asked.answer_text).status == "correct"
    big = asked.grade("tensor 1, pipeline 1, data 128, zero 0")  # 16 × 70e9 bytes on one GPU
    assert (big.status, big.credit, big.misconception) == ("wrong", 0.1, "does-not-fit")
    assert "optimizer" in big.message
    slow = asked.grade("tensor 8, pipeline 8, data 2, zero 1")
    assert slow.status == "wrong"
    assert 0.3 <= slow.credit < 1
    assert "What decides is" in slow.message


@pytest.mark.parametrize(
    "text",
    ["tensor=8, pipeline=2, data=8, zero=1", "[8, 2, 8, 1]", "tp8·pp2·dp8·z1", "8/2/8/1", "TP 8, PP 2, DP 8, ZeRO-1"],
)
def test_a_configuration_is_read_in_any_notation(text: str) -> None:
    assert part(PLAN).question.read(text) == {"tensor": 8, "pipeline": 2, "data": 8, "zero": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tensor 8", "Missing: pipeline, data, zero"),
        ("[8, 2]", "A list of 2 values was read; 4 are asked for"),
        ("banana 3", "banana is not asked for"),
        ("tensor 8, tensor 4, pipeline 2, data 8, zero 1", "two values for tensor"),
        ("tensor 8, pipeline 2, data 16, zero 1", "256"),  # 8 × 2 × 16 are not the 128 there are
        ("tensor 3, pipeline 2, data 8, zero 1", "heads = 64"),
        ("tensor 999999999999, pipeline 2, data 8, zero 1", "tensor"),
        ("tensor 8, pipeline 2, data 8, zero 7", "zero"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_told_and_not_counted(text: str, said: str) -> None:
    grade = part(PLAN).grade(text)
    assert (grade.status, grade.credit) == ("invalid", 0.0)
    assert said in grade.message


def test_a_plan_with_an_unknown_field_or_nothing_that_fits_is_found_by_the_check() -> None:
    with pytest.raises(ExpressionError, match="no field of a plan: tensors"):
        part({**PLAN, "fields": {"tensors": [1]}})
    nothing = {**PLAN, "fields": {"tensor": [1], "pipeline": [1], "data": [128], "zero": [0]}}
    assert any("fits" in reason for _, reason in _problem_findings(problem(nothing)))


# numbers that build on others

CHAIN = (
    number("a", "n * 10.0", slips=[{"id": "twice", "value": "n * 20", "title": "twice", "message": "Twice."}]),
    number(
        "b",
        "answer.a + 2",
        carries=["a"],
        slips=[{"id": "minus", "value": "answer.a - 2", "title": "minus", "message": "Minus."}],
    ),
)


def graded(**answers: str) -> dict[str, Any]:
    desk = desks.grade_alone(problem(*CHAIN), 1, answers)
    return {state.part.id: state.grade for state in desk.parts}


def test_an_error_is_carried_forward() -> None:
    """a is 40, so b is 42; who has 80 for a is right with 82, and with 42."""
    found = graded(a="80", b="82")
    assert (found["a"].status, found["a"].misconception) == ("wrong", "twice")
    assert (found["b"].status, found["b"].credit) == ("correct", 1.0)
    assert "follows from your own a" in found["b"].message
    assert graded(a="80", b="42")["b"].status == "correct"
    assert graded(a="40", b="82")["b"].status == "wrong"
    assert graded(b="82")["b"].status == "wrong"


def test_a_slip_is_recognised_on_top_of_an_own_value() -> None:
    assert graded(a="80", b="78")["b"].misconception == "minus"
    assert graded(a="40", b="38")["b"].misconception == "minus"
    assert graded(a="lots", b="78")["b"].misconception is None


@pytest.mark.parametrize("own", ["0", "-5", "1e29", "1e-29"])
def test_an_absurd_own_value_grades_the_next_part_by_its_key(own: str) -> None:
    assert graded(a=own, b="42")["b"].status == "correct"


def test_a_carried_key_that_cannot_be_computed_is_no_key() -> None:
    made = problem(number("a", "n"), number("b", "8 / (answer.a - 3)", carries=["a"]))
    desk = desks.grade_alone(made, 1, {"a": "3", "b": "7"})  # 8 / 0
    assert desk.parts[1].grade is not None
    assert desk.parts[1].grade.status == "wrong"


def test_a_part_carries_only_numbers_asked_before_it() -> None:
    for parts in ((CHAIN[1], CHAIN[0]), (CHOICE, {**CHAIN[1], "carries": ["c"]})):
        with pytest.raises(ValidationError, match="no earlier number part"):
            problem(*parts)
    with pytest.raises(ValidationError, match="two parts"):
        problem(CHAIN[0], CHAIN[0])


def test_the_right_digits_in_the_wrong_unit_are_worth_half() -> None:
    asked = part({**number("a", "n * 28e9"), "unit": "GB"})
    assert isinstance(asked.question, NumberQuestion)
    for text in ("112 MB", "112 TB", "112 GiB"):
        grade = asked.grade(text)
        assert (grade.status, grade.credit, grade.misconception) == ("wrong", 0.5, "unit")
    assert asked.grade("115 GB").credit == 0


def test_points_weigh_parts_against_each_other() -> None:
    made = problem({**CHOICE, "points": 3}, number("a", "n"))
    assert desks.grade_alone(made, 1, {"c": "few", "a": "5"}).score == 0.75


# text


def test_a_text_part_leads_to_its_rubric_and_has_no_points() -> None:
    made = problem(number("a", "n"), {"id": "t", "kind": "text", "prompt": "Argue.", "rubric": "R01"})
    assert desks.grade_alone(made, 1, {"a": "4"}).score == 1.0
    assert desks.grade_alone(made, 1, {"a": "4", "t": "because"}).score == 1.0
    with pytest.raises(ValidationError, match="graded here"):
        problem({"id": "t", "kind": "text", "prompt": "Argue.", "rubric": "R01"})


def test_a_part_of_no_known_kind_and_a_wrong_field_are_named() -> None:
    with pytest.raises(ValidationError, match="no kind of part"):
        problem({**CHOICE, "kind": "essay"})
    with pytest.raises(ValidationError) as raised:
        problem({**CHOICE, "optoins": []})
    assert ("parts", 0, "optoins") in [detail["loc"] for detail in raised.value.errors()]


# the form


def test_a_form_is_read_by_part() -> None:
    made = problem(CHOICE, SET, ORDER, PLAN, number("a", "n"))
    fields = [
        ("answer.c", "few"),
        ("answer.s", "one"),
        ("answer.s", "two"),
        ("answer.o.b", "2"),
        ("answer.o.a", "1"),
        ("answer.o.d", "3"),
        ("answer.g.tensor", "8"),
        ("answer.g.pipeline", "2"),
        ("answer.g.data", "8"),
        ("answer.g.zero", "1"),
        ("answer.a", "4"),
        ("csrf", "x"),
    ]
    answers = read_form(made, fields)
    assert answers == {
        "c": "few",
        "s": "one, two",
        "o": "a, b, d",
        "g": "tensor 8, pipeline 2, data 8, zero 1",
        "a": "4",
    }
    parts = {each.id: each for each in make_variant(made, 1).parts}
    assert parts["o"].filled("a, b, d") == {"a": "1", "b": "2", "d": "3"}
    assert parts["g"].filled("tensor 8, data x")["tensor"] == "8"


def test_two_things_in_one_place_are_an_incomplete_order() -> None:
    made = problem(ORDER)
    answers = read_form(made, [("answer.o.a", "1"), ("answer.o.b", "1"), ("answer.o.d", "")])
    assert make_variant(made, 1).parts[0].grade(answers["o"]).status == "invalid"
    assert read_form(made, [("answer.o.a", ""), ("answer.o.b", ""), ("answer.o.d", "")]) == {"o": ""}


# what the content check finds


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ({**CHOICE, "options": [{**each, "correct": False} for each in CHOICE["options"]]}, "no option is right"),
        ({**CHOICE, "options": [{**each, "correct": True} for each in CHOICE["options"]]}, "here are 2"),
        ({**ORDER, "items": [{**each, "value": "1"} for each in ORDER["items"]]}, "any order is right"),
        (number("a", "0 * n"), "relative tolerance"),
        (number("a", "n", slips=[{"id": "same", "value": "n", "title": "x", "message": "x"}]), "in 0 of 200"),
    ],
)
def test_the_content_check_finds(source: dict[str, Any], found: str) -> None:
    assert any(found in reason for _, reason in _problem_findings(problem(source)))


def test_the_content_check_finds_a_rubric_and_a_cure_that_do_not_exist() -> None:
    argued = {"id": "t", "kind": "text", "prompt": "Argue.", "rubric": "R99"}
    made = problem(CHOICE, argued)
    found = [(location, reason) for _, location, reason in check_problems(Catalogue(problems={"P99": made}))]
    assert (("parts", 1, "rubric"), "there is no rubric R99") in found
    assert (("parts", 0, "options"), "option few is cured by C62, which is no card") in found
