"""A wrong number beside the right one: what it lacks has a name and its size."""

from __future__ import annotations

import json

import pytest

from app.content.structures import structure_of
from app.grading.numbers import KnownSlip
from app.grading.questions import NumberQuestion
from app.reveal.number import SaidNumber, said_number

STATE = 16 * 7e9
HALF = KnownSlip("half", STATE / 4, "fp8 everywhere", "That is 4 bytes a parameter.")

CALLED = (
    KnownSlip("weights", STATE / 8, "weights only", "That is 2 bytes a parameter."),
    KnownSlip("habit", 12.6e9, "habit", "That is what one says."),
    KnownSlip("by-hand", 150e9, "by hand", "That is what one adds up."),
)


def _said(text: str, slips: tuple[KnownSlip, ...] = ()) -> SaidNumber | None:
    key = "training_state(parameters=7e9)"
    question = NumberQuestion(STATE, "GB", 0.02, slips, lambda: structure_of(key, {}, {}))
    return said_number(question, text, question.grade(text))


@pytest.mark.parametrize(
    ("text", "finding", "gap"),
    [
        ("98 GB", "You left out the weights or the gradients", "weights or the gradients, 14 GB"),  # the same number
        ("84 GB", "You left out the fp32 master copy", "fp32 master copy, 28 GB"),
        ("28 GB", "Fp8 everywhere", "fp8 everywhere: 84 GB too little"),
        ("14 GB", "Weights only", "gradients, fp32 master copy and optimizer's moments, 98 GB"),
        ("12.6 GB", "Habit", "habit: 99.4 GB too little"),  # nothing of the sum says what it has
        ("150 GB", "By hand", "by hand: 38 GB too much"),
        (
            "43 GB",
            "You left out the weights and the optimizer's moments, or the gradients and the optimizer's moments",
            "weights and the optimizer's moments, or the gradients and the optimizer's moments, 70 GB",
        ),
        ("35 GB", "", "77 GB more than you said"),
        ("200 GB", "", "88 GB too much"),
    ],
)
def test_the_gap_has_the_name_of_the_mistake(text: str, finding: str, gap: str) -> None:
    said = _said(text, (HALF, *CALLED))
    assert said is not None
    meter = said.meter("State")
    assert meter.gap is not None
    assert said.gap.finding == finding
    assert meter.gap_text == gap
    assert f"it is {meter.row.said(STATE)}" in meter.aria
    assert sum(float(width) for _, width in meter.segments) == pytest.approx(100)
    labels = [label for _, together in meter.labels for label in together]
    assert sorted(labels) == [("is", f"it is {meter.row.said(STATE)}"), ("you", f"you {text}")]


@pytest.mark.parametrize("text", ["112 GB", "113 GB", "-3 GB", "12 GB/s", "0 GB"])
def test_what_is_right_unread_or_nothing_is_not_drawn(text: str) -> None:
    assert _said(text) is None


def test_a_number_far_off_stands_at_the_end_and_leaves_the_right_one_its_room() -> None:
    said = _said("112 TB")
    assert said is not None
    meter = said.meter("State")
    assert meter.is_beyond
    assert meter.place(meter.row.predicted or 0) == "100.00"
    assert float(meter.place(STATE)) > 25


def test_it_is_stored_and_read_again() -> None:
    said = _said("84 GB")
    assert said is not None
    assert SaidNumber.from_json(json.loads(json.dumps(said.to_json()))) == said
