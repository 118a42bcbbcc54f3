"""What a format can hold, found by trying, as one would with a machine that came without a manual.

A format with e bits of exponent and m of mantissa holds 2^(1−bias) to nearly 2^(bias+1) with m bits after the leading
one, bias = 2^(e−1) − 1; below, in equal steps, down to 2^(1−bias−m). (IEEE 754-2019, section 3; Micikevicius et al.
2022, table 1, for fp8, whose E4M3 has no infinity and so reaches further.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Format:
    """A format by its name, and its bits for the exponent and the mantissa. fp8 is computed with by casts: sums are
    made in fp32 and rounded, as hardware that multiplies fp8 does."""

    name: str
    dtype: torch.dtype
    exponent_bits: int
    mantissa_bits: int

    def held(self, value: float, device: torch.device) -> Tensor:
        """The nearest number of the format, as a tensor without dimensions."""
        return torch.tensor(value, dtype=torch.float64, device=device).to(self.dtype)

    def holds(self, value: float, device: torch.device) -> bool:
        """Whether `value` is a number of the format."""
        return float(self.held(value, device)) == value

    def plus(self, one: Tensor, other: Tensor) -> Tensor:
        """Their sum, rounded to the format."""
        if self.dtype.itemsize == 1:
            return (one.float() + other.float()).to(self.dtype)
        return one + other


FORMATS = (
    Format("fp32", torch.float32, 8, 23),
    Format("bf16", torch.bfloat16, 8, 7),
    Format("fp16", torch.float16, 5, 10),
    Format("fp8-e5m2", torch.float8_e5m2, 5, 2),
    Format("fp8-e4m3", torch.float8_e4m3fn, 4, 3),
)


def find_epsilon(number_format: Format, device: torch.device) -> float:
    """The distance from 1 to the next number: halve x until 1 + x is 1."""
    one, x = number_format.held(1.0, device), 1.0
    while float(number_format.plus(one, number_format.held(x / 2, device))) != 1.0:
        x /= 2
    return x


def find_largest(number_format: Format, device: torch.device) -> float:
    """Double until it overflows (to infinity; in E4M3 to what is largest there), then add what still fits."""
    largest = 1.0
    while number_format.holds(2 * largest, device):
        largest *= 2
    step = largest / 2
    while step > 0 and number_format.holds(largest + step, device):
        largest, step = largest + step, step / 2
    return largest


def find_smallest(number_format: Format, device: torch.device) -> float:
    """The smallest number above zero: halve until the result is zero."""
    x = 1.0
    while float(number_format.held(x / 2, device)) != 0.0:
        x /= 2
    return x


def find_smallest_normal(number_format: Format, device: torch.device) -> float:
    """The smallest number with all its bits: halve 1 + epsilon until its last bit is lost."""
    epsilon, x = find_epsilon(number_format, device), 1.0
    while number_format.holds(x / 2 * (1 + epsilon), device):
        x /= 2
    return x


def add_again_and_again(number_format: Format, weight: float, update: float, device: torch.device) -> Iterator[float]:
    """A weight after every update, both held in the format. It stands still once an update is less than half the
    distance to the next number: the update is swallowed."""
    held, step = number_format.held(weight, device), number_format.held(update, device)
    while True:
        held = number_format.plus(held, step)
        yield float(held)
