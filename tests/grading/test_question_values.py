"""What a question says and what an answer to it is worth, to the figure."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import pytest
from markupsafe import Markup

from app.grading.numbers import KnownSlip
from app.grading.questions import ConfigurationQuestion, NumberQuestion, OrderItem, OrderQuestion, shuffled
from app.grading.questions.choice import ChoiceQuestion, Option
from app.grading.questions.configuration import TERMS
from app.grading.questions.number import Carried
from app.grading.questions.pairs import PairsQuestion, Right
from app.units import SCALES, digits, scaled

# number


def test_a_number_says_its_key_range_and_how_it_is_written() -> None:
    asked = NumberQuestion(112e9, "GB", 0.05)
    assert (asked.dimension, asked.key_text, asked.answer_text) == ("bytes", "112 GB", "112 GB")
    assert asked.accepted_text == "106 to 118 GB"
    assert asked.said("112 gigabytes") == "112 gigabytes"


def test_how_a_number_is_written_says_no_number() -> None:
    said = {unit: NumberQuestion(1, unit, 0.05).written_as for unit in SCALES}
    assert not [each for each in said.values() if re.search(r"\d", each)]
    assert (said["GB"], said["s"], said["×"], said["billion"]) == ("… GB", "… s", "…×", "…B")


@pytest.mark.parametrize(("tolerance", "exact"), [(0.0, True), (0.001, True), (0.0011, False), (0.05, False)])
def test_a_number_is_exact_where_nothing_has_room_beside_it(tolerance: float, exact: bool) -> None:
    assert NumberQuestion(8, "", tolerance).is_exact is exact


def test_a_slip_on_the_right_key_is_told_whatever_was_carried() -> None:
    slip = KnownSlip("forgot-optimizer", 28e9, "optimizer left out", "The optimizer's twelve bytes are missing.")
    asked = NumberQuestion(112e9, "GB", 0.05, (slip,))
    carried = Carried(("a",), 224e9, (KnownSlip("other", 28e9, "something else", "Not this one."),))
    found = asked.grade("28 GB", carried)
    assert (found.status, found.misconception) == ("wrong", "forgot-optimizer")
    assert asked.grade("30 TB", carried).misconception is None
    assert asked.grade("224 GB", carried).message == "It follows from your own a, so it counts in full."
    assert asked.grade("112 GB", carried).status == "correct"


# choice


def choice(*correct: bool) -> ChoiceQuestion:
    options = tuple(
        Option(f"o{place}", Markup().join(f"Option {place}"), is_right) for place, is_right in enumerate(correct)
    )
    return ChoiceQuestion(options, several=True)


@pytest.mark.parametrize(
    ("ticked", "credit"), [("o0", 0.1429), ("o0 o1", 0.2857), ("o0 o1 o2 o7", 0.2857), ("o7", 0.0), ("o0 o7", 0.0)]
)
def test_ticks_are_worth_their_share_of_seven_in_four_digits(ticked: str, credit: float) -> None:
    assert choice(*[True] * 7, False).grade(ticked).credit == credit


# order


def order(direction: Any = "ascending") -> OrderQuestion:
    return OrderQuestion(
        tuple(OrderItem(each, Markup().join(each), float(place)) for place, each in enumerate("abcd")), direction
    )


@pytest.mark.parametrize(
    ("given", "credit", "placed", "pairs"),
    [
        ("b a c d", 0.6667, "Two of 4 items are in their", 5),
        ("b c a d", 0.3333, "One of 4 items is in its", 4),
        ("d c b a", 0.0, "None of 4 items is in its", 0),
    ],
)
def test_an_order_says_how_many_items_are_in_place(given: str, credit: float, placed: str, pairs: int) -> None:
    found = order().grade(given)
    said = f"{placed} place; {pairs} of 6 pairs stand the right way round."
    assert (found.status, found.credit, found.message) == ("wrong", credit, said)


@pytest.mark.parametrize(
    ("given", "beside"), [("bacd", "bacd"), ("bcda", "bacd"), ("dabc", "acbd"), ("cdba", "acbd"), ("abdc", "abcd")]
)
def test_beside_an_order_items_of_one_value_stand_where_they_were_put(given: str, beside: str) -> None:
    """a and b tie, or b and c do: what stands on a place of its value is held beside itself."""
    values = {"a": 0.0, "b": 0.0, "c": 1.0, "d": 2.0} if beside != "acbd" else {"a": 0.0, "b": 1.0, "c": 1.0, "d": 2.0}
    question = OrderQuestion(tuple(OrderItem(each, Markup().join(each), value) for each, value in values.items()))
    right = question.beside(question.placed(" ".join(given)) or ())
    assert "".join(each.id for each in right) == beside
    assert question.grade(" ".join(each.id for each in right)).status == "correct"


def test_an_order_is_read_out_by_its_texts() -> None:
    assert order().said("b, a, d, c") == "b, a, d, c"
    assert order().said("what?") == "what?"
    named = OrderQuestion((OrderItem("x", Markup("First <b>thing</b>"), 1.0), OrderItem("y", Markup("Second"), 2.0)))
    assert named.said("y, x") == "Second, First thing"


def test_an_order_that_is_no_order_is_filled_as_far_as_nothing() -> None:
    assert order("descending").answer_text == "d, c, b, a"
    assert order().filled("b a c d") == {"b": "1", "a": "2", "c": "3", "d": "4"}
    assert order().filled("b a") == {}
    invalid = order().grade("a b")
    assert (invalid.status, invalid.message) == ("invalid", "Every item needs an answer; 2 of 4 have one.")
    assert order().grade("a a b c").message == "a is chosen twice; each item has one of its own."
    assert order().grade("a b c x").message == "'x' is not offered. Accepted: a, b, c, d."


# pairs


def pairs() -> PairsQuestion:
    lefts = tuple(Markup().join(f"L{place}") for place in range(7))
    rights = tuple(Right(f"r{place}", Markup().join(f"R{place}")) for place in range(7))
    return PairsQuestion(lefts, rights, tuple(each.id for each in rights))


@pytest.mark.parametrize(
    ("given", "status", "credit", "message"),
    [
        ("r0 r1 r2 r3 r4 r5 r6", "correct", 1.0, ""),
        ("r1 r0 r2 r3 r4 r5 r6", "wrong", 0.7143, "2 of 7 belong elsewhere."),
        ("r1 r2 r0 r3 r4 r5 r6", "wrong", 0.5714, "3 of 7 belong elsewhere."),
        ("r0 r1", "invalid", 0.0, "Every pair needs an answer; 2 of 7 have one."),
        ("r0 r0 r2 r3 r4 r5 r6", "invalid", 0.0, "r0 is chosen twice; each pair has one of its own."),
    ],
)
def test_pairs_are_worth_the_share_that_is_right(given: str, status: str, credit: float, message: str) -> None:
    found = pairs().grade(given)
    assert (found.status, found.credit, found.message) == (status, credit, message)


def test_pairs_are_read_out_by_their_texts() -> None:
    assert pairs().answer_text == "r0, r1, r2, r3, r4, r5, r6"
    assert pairs().key_text.startswith("L0: R0; L1: R1; ")
    assert pairs().said("r6 r5 r4 r3 r2 r1 r0") == "R6; R5; R4; R3; R2; R1; R0"
    assert pairs().said("what?") == "what?"


# configuration

PLAN: dict[str, Any] = {
    "model": "llama-2-70b",
    "training": {"sequence": 4096, "micro_batch": 1, "global_batch": 512},
    "parallel": {"sequence_parallel": True},
    "cluster": {"gpu": "a100-80gb", "nodes": 16},
}
FIELDS: dict[str, tuple[int | str, ...]] = {
    "tensor": (1, 2, 4, 8),
    "pipeline": (1, 2, 4, 8),
    "data": (2, 4, 8, 16, 32, 64, 128),
    "zero": (0, 1),
}


def configuration(objective: str, within: float = 0.02) -> ConfigurationQuestion:
    return ConfigurationQuestion(PLAN, FIELDS, objective, within)


def test_a_configuration_says_what_keeps_it_from_being_asked() -> None:
    assert configuration("time").problem is None
    assert ConfigurationQuestion(PLAN, {"tensors": (1,)}, "time", 0.02).problem == "no field of a plan: tensors"
    most = {"tensor": tuple(range(1, 101)), "pipeline": tuple(range(1, 201))}
    assert ConfigurationQuestion(PLAN, most, "time", 0.02).problem is None
    many = {"tensor": tuple(range(1, 202)), "pipeline": tuple(range(1, 202))}
    assert ConfigurationQuestion(PLAN, many, "time", 0.02).problem == "more than 20,000 combinations to try"


@pytest.mark.parametrize("objective", ["time", "memory"])
def test_the_best_configuration_is_that_of_least_cost_and_nothing_tried_is_better(objective: str) -> None:
    asked = configuration(objective)
    fitting = [each for each in asked.combinations() if each.fits]
    cost = {"time": lambda each: each.seconds, "memory": lambda each: each.memory}[objective]
    best = min(fitting, key=cost)
    assert asked.key == asked.best().chosen
    assert cost(asked.best()) == cost(best)
    found = asked.grade(asked.answer_text)
    assert (found.status, found.credit) == ("correct", 1.0)
    assert found.message.startswith("It fits, in ")
    assert found.message.endswith("a step: nothing tried is better.")


@pytest.mark.parametrize(
    ("objective", "title", "said"),
    [("time", "slower than need be", "% longer than"), ("memory", "larger than need be", "% larger.")],
)
def test_a_worse_configuration_is_told_by_how_much(objective: str, title: str, said: str) -> None:
    asked = configuration(objective)
    best = asked.best()
    worse = max((each for each in asked.combinations() if each.fits), key=asked.cost)
    ratio = asked.cost(worse) / asked.cost(best)
    found = asked.grade(worse.text)
    assert (found.status, found.misconception, found.title) == ("wrong", "far-from-best", title)
    assert found.credit == round(max(0.15, 2 - ratio), 2)
    assert said in found.message
    percent = float(found.message.split(" % ")[0].rsplit(" ", 1)[1])
    assert percent == pytest.approx(100 * (ratio - 1), rel=0.06)
    assert best.text in found.message


def test_what_decides_is_said_with_both_values_in_three_digits() -> None:
    found = configuration("time").grade("tensor 8, pipeline 8, data 2, zero 1")
    mine, best = (
        configuration("time").judged({"tensor": 8, "pipeline": 8, "data": 2, "zero": 1}),
        configuration("time").best(),
    )
    assert "What decides is " in found.message
    for part in found.message.split("What decides is ")[1].split(": ")[1].rstrip(".").split(" against "):
        digits = part.removesuffix(" s").replace(".", "").replace(",", "").lstrip("0")
        assert 0 < len(digits.rstrip("0") or "0") <= 3, part
    assert mine.seconds > best.seconds
    assert f"{float(f'{mine.seconds:.3g}'):g} s a step" in found.message


def test_within_the_tolerance_a_configuration_is_right_and_told_what_is_better() -> None:
    asked = configuration("time", within=10.0)
    worse = max((each for each in asked.combinations() if each.fits), key=asked.cost)
    found = asked.grade(worse.text)
    assert (found.status, found.credit) == ("correct", 1.0)
    assert "% longer than" in found.message


def test_what_decides_is_the_term_in_which_the_best_gains_most() -> None:
    asked = configuration("time")
    mine, best = asked.judged({"tensor": 8, "pipeline": 8, "data": 2, "zero": 1}), asked.best()
    gains = {name: getattr(mine.estimate.time, name) - getattr(best.estimate.time, name) for name in TERMS}
    largest = max(gains, key=lambda name: gains[name])
    values = [scaled(getattr(each.estimate.time, largest), "s", 3) for each in (mine, best)]
    assert asked.grade(mine.text).message.endswith(
        f"longer than {best.text} at {scaled(best.seconds or 0, 's', 3)}. "
        f"What decides is {TERMS[largest]}: {values[0]} against {values[1]}."
    )


def test_how_much_larger_is_said_in_two_digits() -> None:
    asked = configuration("memory")
    best = asked.best()
    for worse in (each for each in asked.combinations() if each.fits and each.memory > 1.5 * best.memory):
        percent = digits(100 * (worse.memory / best.memory - 1), 2)
        assert asked.grade(worse.text).message.endswith(f"takes {best.text}: yours is {percent} % larger.")


def test_only_configurations_that_use_every_gpu_are_tried() -> None:
    found = configuration("time").combinations()
    degrees = [prod(int(each.chosen[name]) for name in ("tensor", "pipeline", "data")) for each in found]
    assert len(degrees) > 10
    assert set(degrees) == {128}


def test_without_gpus_a_configuration_is_judged_by_its_memory_alone() -> None:
    plan = {name: PLAN[name] for name in ("model", "training", "parallel")}
    asked = ConfigurationQuestion(plan, {"tensor": (1, 2, 4, 8), "zero": (0, 1)}, "memory", 0.02)
    assert asked.grade("tensor 8, zero 0").message == "It fits, in 149 GB; the least is 149 GB, with tensor 8, zero 0."
    assert asked.grade("tensor 2, zero 0").message == "It fits, in 598 GB; the least is 149 GB, with tensor 8, zero 0."


def test_one_value_of_several_is_no_list_and_long_numbers_stay_text() -> None:
    asked = configuration("time")
    assert asked.read("8") == "Missing: tensor, pipeline, data, zero."
    assert asked.read("8, 2") == "A list of 2 values was read; 4 are asked for: tensor, pipeline, data, zero."
    assert asked.read("123456789, 1, 1, 0") == {"tensor": 123456789, "pipeline": 1, "data": 1, "zero": 0}
    assert asked.read("1234567890, 1, 1, 0") == {"tensor": "1234567890", "pipeline": 1, "data": 1, "zero": 0}


# shuffling


def test_an_order_that_is_never_shown_is_not_shown() -> None:
    items = ["a", "b"]
    shown = [shuffled(f"card {seed}", items, never=items) for seed in range(50)]
    assert shown == [["b", "a"]] * 50
    assert {tuple(shuffled(f"card {seed}", items)) for seed in range(50)} == {("a", "b"), ("b", "a")}
    assert shuffled("x", ["a", "a"], never=["a", "a"]) == ["a", "a"]
