"""Right, wrong with its cause, or not readable and then not counted."""

from __future__ import annotations

import pytest

from app.grading.numbers import Grade, KnownSlip, grade_number, within

KEY = 112e9
WEIGHTS = KnownSlip("weights-only", 14e9, "weights only", "That is the weights alone.", "C27")
NEAR = KnownSlip("near", 113e9, "near", "That is next to the key.")


def grade(text: str, *slips: KnownSlip, key: float = KEY, asked: str = "bytes", tolerance: float = 0.02) -> Grade:
    return grade_number(text, key, asked, tolerance, slips)


@pytest.mark.parametrize("text", ["112 GB", "104.3 GiB", "0.112 TB", "109.8 GB", "114.2 GB", "896 Gbit", "16*7 GB"])
def test_the_key_within_its_tolerance_is_correct_in_any_unit(text: str) -> None:
    found = grade(text, WEIGHTS)
    assert (found.status, found.credit, found.misconception) == ("correct", 1.0, None)


@pytest.mark.parametrize("text", ["109.7 GB", "114.3 GB", "−112 GB", "112 GiB"])
def test_beyond_the_tolerance_it_is_wrong(text: str) -> None:
    found = grade(text)
    assert (found.status, found.credit) == ("wrong", 0.0)
    assert found.message


@pytest.mark.parametrize("text", ["112", "112 GB/s", "", "lots", "112 s"])
def test_what_cannot_be_read_is_invalid_and_not_wrong(text: str) -> None:
    found = grade(text, WEIGHTS)
    assert (found.status, found.credit, found.value) == ("invalid", 0.0, None)
    assert found.message


def test_a_known_slip_is_told_by_its_cause_and_its_cure() -> None:
    found = grade("14 GB", WEIGHTS)
    assert (found.status, found.misconception, found.title, found.cure) == (
        "wrong",
        "weights-only",
        "weights only",
        "C27",
    )
    assert found.message == "That is the weights alone."
    assert found.value == 14e9


def test_a_slip_is_recognised_more_narrowly_than_a_key() -> None:
    assert grade("14.1 GB", WEIGHTS).misconception == "weights-only"
    assert grade("14.2 GB", WEIGHTS).misconception is None


def test_a_slip_that_would_count_as_right_is_never_reported() -> None:
    assert grade("113 GB", NEAR).status == "correct"
    assert grade("114 GB", NEAR).status == "correct"
    assert grade("114.5 GB", NEAR, tolerance=0.02).misconception is None
    assert grade("114.1 GB", KnownSlip("same", KEY, "", ""), tolerance=0.01).misconception is None


def test_the_first_slip_that_fits_names_the_cause() -> None:
    twin = KnownSlip("twin", 14e9, "twin", "Another way to the same number.")
    assert grade("14 GB", WEIGHTS, twin).misconception == "weights-only"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("112 TB", "too large by a factor of a thousand"),
        ("112 MB", "too small by a factor of a thousand"),
        ("112 kB", "too small by a factor of a million"),
        ("112 PB", "too large by a factor of a million"),
        ("896 GB", "too large by a factor of eight. Bits for bytes?"),
        ("14 GB", "too small by a factor of eight. Bits for bytes?"),
        ("224 GB", "too large by a factor of two"),
        ("56 GB", "too small by a factor of two"),
        ("1120 GB", "too large by a factor of 10"),
        ("0 GB", "Check the formula and the sign"),
        ("−112 GB", "Check the formula and the sign"),
    ],
)
def test_a_wrong_answer_without_a_known_cause_gets_a_pointer(text: str, said: str) -> None:
    assert said in grade(text).message


def test_a_key_of_zero_takes_zero_alone() -> None:
    assert grade("0 GB", key=0.0).status == "correct"
    assert grade("1 B", key=0.0).status == "wrong"


def test_the_smallest_and_largest_quantities_there_are_can_be_graded() -> None:
    for key in (1e-30, 1.0, 1e30):
        for text in ("1e-30 B", "1e30 B", "1e-320 B", "1e31 B"):
            assert grade(text, key=key).status in ("correct", "wrong", "invalid")


def test_the_edge_of_a_tolerance_is_inside() -> None:
    assert within(102.0, 100.0, 0.02)
    assert within(98.0, 100.0, 0.02)
    assert not within(102.001, 100.0, 0.02)
    assert within(-98.0, -100.0, 0.02)
