"""How numbers are written."""

from __future__ import annotations

import pytest

from app.grading.quantities import read_quantity
from app.units import SCALES, bytes_text, count_text, digits, latex_number, scaled


@pytest.mark.parametrize(
    ("value", "significant", "text"),
    [
        (0, 4, "0"),
        (38.5, 4, "38.5"),
        (38.46, 3, "38.5"),
        (1120.0, 4, "1,120"),
        (293125.0, 4, "293,125"),
        (0.00058, 4, "0.00058"),
        (9.9996, 4, "10"),
        (-3.0, 4, "−3"),
        (float("inf"), 4, "infinity"),
        (float("nan"), 4, "not a number"),
    ],
)
def test_digits(value: float, significant: int, text: str) -> None:
    assert digits(value, significant) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.12e11, "GB", "112 GB"),
        (1.12e12, "GB", "1,120 GB"),
        (2**34, "GiB", "16 GiB"),
        (0.0059, "ms", "5.9 ms"),
        (0.179487, "%", "17.95 %"),
        (6575342.0, "days", "76.1 days"),
        (535, "", "535"),
        (25e9, "GB/s", "25 GB/s"),
        (999e12, "FLOPs", "999,000,000,000,000 FLOPs"),
        (1.575007e24, "FLOPs", "1.575 × 10²⁴ FLOPs"),
        (9.99996e20, "FLOPs", "1 × 10²¹ FLOPs"),
    ],
)
def test_a_value_in_base_units_is_written_in_a_unit(value: float, unit: str, text: str) -> None:
    assert scaled(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (512, "512 B"), (1e3, "1 kB"), (29.66e6, "29.7 MB"), (14e9, "14 GB"), (1.12e12, "1.12 TB")],
)
def test_bytes_are_written_in_the_unit_that_suits_them(value: float, text: str) -> None:
    assert bytes_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(512, "512"), (124.4e6, "124M"), (7e9, "7B"), (1.5e12, "1.5T"), (65536, "65,536")]
)
def test_counts_carry_their_magnitude(value: float, text: str) -> None:
    assert count_text(value) == text


@pytest.mark.parametrize(
    ("value", "latex"),
    [
        (7e9, r"7 \times 10^{9}"),
        (1e9, "10^{9}"),
        (999_999_999, "10^{9}"),
        (5e-6, r"5 \times 10^{-6}"),
        (0.98, "0.98"),
        (128, "128"),
        (32768, "32{,}768"),
        (0, "0"),
    ],
)
def test_numbers_in_formulas(value: float, latex: str) -> None:
    assert latex_number(value) == latex


@pytest.mark.parametrize("unit", list(SCALES))
@pytest.mark.parametrize("number", [0.25, 1, 17.95, 1120, 123456])
def test_what_is_written_can_be_typed_in(unit: str, number: float) -> None:
    """The page shows keys in these units; whoever types one must be understood."""
    dimension, factor = SCALES[unit]
    read = read_quantity(scaled(number * factor, unit, 6), dimension)
    assert read.value == pytest.approx(number * factor, rel=1e-5)
