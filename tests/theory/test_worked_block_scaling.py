"""Scaled blocks against figures worked out by hand, and against rounding each value."""

from __future__ import annotations

import pytest

from app.theory import block_scaling
from app.theory.number_formats import FORMATS, rounded
from tests.theory.worked import OPENING, Example, worked

EXAMPLES: list[Example] = [
    ("block_scaled_bits", OPENING, 1, "8.25"),
    ("block_scaled_bits", {"number_format": "fp4-e2m1", "block": 16}, 1, "4.5"),
    ("block_scaled_bits", {"number_format": "fp4-e2m1", "block": 32}, 1, "4.25"),
    ("block_scaled_bits", {"number_format": "fp8-e4m3", "block": 128, "scale_bits": 32}, 1, "8.25"),
    # 2^-10 / 448: a range of 458,752; FP4's is 0.25 to 6; E5M2's 2^-17 to 57,344
    ("lost_below", OPENING, 1, "1.000"),
    ("lost_below", {"largest_magnitude": 24, "number_format": "fp4-e2m1"}, 1, "1.000"),
    ("lost_below", {"largest_magnitude": 1, "number_format": "fp8-e5m2"}, 1e-10, "1.33"),
    # 1.9: 2^0 over 2^8, where 486.4 is clipped; 1.9/448 is just above 2^-8, so 2^-7
    ("block_scale", {"largest_magnitude": 1.9, "rounding": "down"}, 2**-8, "1"),
    ("block_scale", OPENING, 2**-8, "2"),
    ("block_scale", {"largest_magnitude": 1.7}, 2**-8, "1"),
    ("block_scale", {"largest_magnitude": 3.2, "number_format": "fp4-e2m1", "rounding": "down"}, 1, "0.5"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[1]}")
def test_a_formula_of_blocks_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


@pytest.mark.parametrize("name", ["fp8-e4m3", "fp8-e5m2", "fp4-e2m1"])
def test_what_is_lost_is_what_rounds_to_zero_and_no_more(name: str) -> None:
    largest = 3.7
    scale = FORMATS[name].max / largest
    limit = block_scaling.lost_below(largest, name)
    assert rounded(limit * scale * 0.999, name) == 0
    assert rounded(limit * scale * 1.001, name) > 0


@pytest.mark.parametrize("largest", [0.013, 0.99, 1.0, 1.5, 1.75, 1.76, 1.9, 1.999, 448.0, 449.0, 6e4])
def test_rounded_up_a_scale_clips_nothing_and_is_the_least_that_does_not(largest: float) -> None:
    for name in ("fp8-e4m3", "fp4-e2m1"):
        up, down = (block_scaling.block_scale(largest, name, each) for each in block_scaling.ROUNDINGS[::-1])
        assert largest / up <= FORMATS[name].max < largest / (up / 2)
        assert down in (up, up / 2)  # the same, or clipped
