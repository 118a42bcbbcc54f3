"""Number formats, exactly: against their standards, against Python's own fp16 and fp32, and bit by bit."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from app.theory import number_formats as formats
from app.theory.number_formats import FORMATS, rounded
from labs.spec import SpecError
from tests.theory.worked import OPENING, PERCENT, Example, worked

# Format: max, smallest normal, smallest subnormal, spacing at 1; each with its power of ten.
LIMITS = [
    ("fp32", "max", 1e38, "3.403"),
    ("fp32", "min-normal", 1e-38, "1.175"),
    ("fp32", "min-subnormal", 1e-45, "1.401"),
    ("fp32", "epsilon", 1e-7, "1.192"),
    ("bf16", "max", 1e38, "3.390"),
    ("bf16", "min-normal", 1e-38, "1.175"),
    ("bf16", "min-subnormal", 1e-41, "9.184"),
    ("bf16", "epsilon", 1e-3, "7.8125"),
    ("fp16", "max", 1, "65504"),
    ("fp16", "min-normal", 1e-5, "6.104"),
    ("fp16", "min-subnormal", 1e-8, "5.960"),
    ("fp16", "epsilon", 1e-4, "9.766"),
    ("tf32", "epsilon", 1e-4, "9.766"),
    ("tf32", "min-normal", 1e-38, "1.175"),
    ("fp8-e4m3", "max", 1, "448"),
    ("fp8-e4m3", "min-normal", 1, "0.015625"),
    ("fp8-e4m3", "min-subnormal", 1, "0.001953125"),
    ("fp8-e5m2", "max", 1, "57344"),
    ("fp8-e5m2", "min-normal", 1e-5, "6.104"),
    ("fp8-e5m2", "min-subnormal", 1e-5, "1.526"),
    ("fp4-e2m1", "max", 1, "6"),
    ("fp4-e2m1", "min-subnormal", 1, "0.5"),
]

EXAMPLES: list[Example] = [
    *(("format_limit", {"number_format": name, "asked": asked}, unit, shown) for name, asked, unit, shown in LIMITS),
    # from 1 to 2 it is 2^-7; 0.02 lies between 2^-6 and 2^-5, so 2^-13
    ("format_spacing", OPENING, 1e-3, "7.8125"),
    ("format_spacing", {"value": 0.02}, 1e-4, "1.22"),
    ("format_spacing", {"value": 3000, "number_format": "fp16"}, 1, "2"),
    # 2,049 lies between 2,048 and 2,050: to even
    ("format_rounded", OPENING, 1, "2048"),
    ("format_rounded", {"value": 2051, "number_format": "fp16"}, 1, "2052"),
    # 0.1 = 1.6 × 2^-4, and 1.6 × 128 = 204.8: 205/2048
    ("format_rounded", {"value": 0.1}, 1, "0.10009766"),
    # 1.6 × 8 = 12.8: 13/128
    ("format_rounded", {"value": 0.1, "number_format": "fp8-e4m3"}, 1, "0.1015625"),
    ("smallest_gradient", OPENING, 1e-11, "5.82"),
    ("smallest_gradient", {"loss_scale": 1, "asked": "rounds-to-zero"}, 1e-8, "2.98"),
    # 6.104e-5/65,536
    ("smallest_gradient", {"loss_scale": 65536, "asked": "min-normal"}, 1e-10, "9.31"),
    ("largest_gradient", OPENING, 1, "0.9995"),
    # 1e-7 is a subnormal, 2 × 5.96e-8; times 1,024 it is 1.02e-4, with all eleven bits
    ("scaled_gradient", {"gradient": 1e-7, "loss_scale": 1}, 1e-7, "1.192"),
    ("scaled_gradient", OPENING, 1e-7, "1.000"),
    ("scaled_gradient", {"gradient": 2e-8, "loss_scale": 1}, 1e-8, "0"),
    # doubled twice, or halved once and doubled twice
    ("dynamic_loss_scale", OPENING, 1, "262144"),
    ("dynamic_loss_scale", {"good_steps": 5999, "overflows": 1}, 1, "131072"),
    # torch.amp.GradScaler doubles after the 2,000th good step in a row
    ("dynamic_loss_scale", {"good_steps": 1999, "overflows": 0}, 1, "65536"),
    ("dynamic_loss_scale", {"good_steps": 2000, "overflows": 0}, 1, "131072"),
    # 448/3.5
    ("tensor_scale", OPENING, 1, "128"),
    # 1.22e-4 apart: an update of 1e-4 moves the weight a whole step, one of 1e-5 not at all (164/8192 is nearest 0.02)
    ("updated_weight", OPENING, 1, "0.02014160"),
    ("updated_weight", {"weight": 0.02, "update": 1e-5}, 1, "0.02001953"),
    ("swallow_threshold", OPENING, 1, "0.0039"),
    ("swallow_threshold", {"weight": 0.02}, 1e-5, "6.1"),
    # 1.6 × 128 = 204.8
    ("round_up_probability", OPENING, PERCENT, "80.0"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_precision_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def values(seed: str, low: int, high: int) -> Iterator[float]:
    """Doubles of both signs over the binades from `low` to `high`, and zero."""
    source = random.Random(seed)
    yield 0.0
    for _ in range(3000):
        yield source.choice([-1, 1]) * math.ldexp(source.uniform(0.5, 1), source.randint(low, high))


def test_every_fp16_number_rounds_to_itself_and_halves_to_even() -> None:
    """All positive codes of Python's own half precision, with what lies between them."""
    numbers = [struct.unpack("<e", struct.pack("<H", code))[0] for code in range(0x7C00)]
    assert numbers[-1] == FORMATS["fp16"].max
    for code, (low, high) in enumerate(pairwise(numbers)):
        assert rounded(low, "fp16") == low
        assert rounded((low + high) / 2, "fp16") == (high if code % 2 else low)
        assert formats.spacing(low, "fp16") == high - low


@pytest.mark.parametrize(("number_format", "code", "low", "high"), [("fp16", "e", -30, 15), ("fp32", "f", -155, 127)])
def test_rounding_is_that_of_struct(number_format: str, code: str, low: int, high: int) -> None:
    for value in values(number_format, low, high):
        assert rounded(value, number_format) == struct.unpack(f"<{code}", struct.pack(f"<{code}", value))[0]


def bfloat16(value: float) -> float:
    """bf16 by the bits of fp32: half of the dropped 16 is added, one less where the kept part is even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", struct.pack("<I", kept))[0])


def test_bf16_is_the_upper_half_of_fp32() -> None:
    for value in values("bf16", -149, 127):
        single = rounded(value, "fp32")  # so that rounding happens once, from what fp32 holds
        assert rounded(single, "bf16") == bfloat16(single)


# E4M3's codes by hand: 2^(e−7) × (1 + m/8), subnormals m/8 × 2^-6, and the last code is NaN.
E4M3 = [m / 8 * 2**-6 for m in range(8)] + [2.0 ** (e - 7) * (1 + m / 8) for e in range(1, 16) for m in range(8)][:-1]


def test_e4m3_holds_its_127_numbers_and_rounds_to_the_nearest() -> None:
    assert [rounded(value, "fp8-e4m3") for value in E4M3] == E4M3
    assert max(E4M3) == 448
    source = random.Random("e4m3")
    for value in (source.uniform(0, 448) for _ in range(500)):
        assert abs(rounded(value, "fp8-e4m3") - value) == min(abs(each - value) for each in E4M3)


def test_e2m1_holds_its_eight_numbers() -> None:
    found = sorted({rounded(step / 100, "fp4-e2m1") for step in range(601)})
    assert found == [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def refused(function: Any, *given: Any) -> set[str]:
    with pytest.raises(SpecError) as raised:
        function(*given)
    return {violation.field for violation in raised.value.violations}


def test_overflow_begins_half_a_spacing_beyond_the_largest_number() -> None:
    assert rounded(65519.99, "fp16") == 65504
    with pytest.raises(OverflowError):
        struct.pack("<e", 65520.0)
    assert refused(rounded, 65520.0, "fp16") == {"value"}
    assert rounded(464.0, "fp8-e4m3") == 448
    assert refused(rounded, -465.0, "fp8-e4m3") == {"value"}
    assert refused(formats.updated_weight, 440.0, 40.0, "fp8-e4m3") == {"update"}
    assert refused(formats.scaled_gradient, 2.0, 65536.0) == {"gradient"}


def test_saturation_keeps_the_largest_number() -> None:
    assert rounded(1e6, "fp8-e4m3", saturate=True) == 448
    assert rounded(-1e6, "fp8-e5m2", saturate=True) == -57344
    assert rounded(3.3, "fp8-e4m3", saturate=True) == 3.25


def test_an_update_is_swallowed_below_half_the_spacing() -> None:
    assert formats.is_swallowed(1.5, 0.0038, "bf16")
    assert not formats.is_swallowed(1.5, 0.0040, "bf16")
    assert formats.is_swallowed(0.02, 1e-5, "bf16")
    assert not formats.is_swallowed(0.02, 1e-4, "bf16")
    assert not formats.is_swallowed(0.02, 1e-5, "fp32")


def test_a_decrease_from_a_power_of_two_is_lost_below_a_quarter_only() -> None:
    """Below 1 bf16 numbers are 2^-8 apart, above 2^-7."""
    assert formats.is_swallowed(1.0, 2**-8, "bf16")  # a tie, to even
    assert formats.is_swallowed(1.0, -(2**-9), "bf16")
    assert not formats.is_swallowed(1.0, -(2**-8), "bf16")


def test_stochastic_rounding_is_right_on_average() -> None:
    for value in (0.1, 1.37, 3e-5, 700.3):
        step, up = formats.spacing(value, "bf16"), formats.round_up_probability(value, "bf16")
        below = math.floor(value / step) * step
        assert (1 - up) * below + up * (below + step) == pytest.approx(value, rel=1e-12)


def test_bits_of_a_format() -> None:
    assert {name: record.bits for name, record in FORMATS.items()} == {
        "fp32": 32,
        "tf32": 19,
        "bf16": 16,
        "fp16": 16,
        "fp8-e5m2": 8,
        "fp8-e4m3": 8,
        "fp4-e2m1": 4,
    }
