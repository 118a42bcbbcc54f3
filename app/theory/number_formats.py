"""Floating-point formats as data, and what they do to a value: rounding, spacing, underflow, overflow (F42–F44).

Everything is exact: a value comes in as a Python float (fp64), which holds every value of every format here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, frexp, ldexp

from labs.spec import SpecError, Violation


@dataclass(frozen=True)
class NumberFormat:
    """Sign, `exponent_bits`, `mantissa_bits`, IEEE bias 2^(e−1) − 1, subnormals.

    `reserved` is how many of the largest bit patterns are no numbers: the whole top exponent in IEEE formats, the one
    NaN of fp8 E4M3, none in fp4.
    """

    name: str
    title: str
    exponent_bits: int
    mantissa_bits: int
    reserved: int
    source: str

    @property
    def bits(self) -> int:
        """Bits of a value, the sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def smallest_exponent(self) -> int:
        """Exponent of the smallest normal number, 1 − bias."""
        return 2 - int(2 ** (self.exponent_bits - 1))

    @property
    def max(self) -> float:
        """The largest finite number."""
        code = 2 ** (self.exponent_bits + self.mantissa_bits) - 1 - self.reserved
        exponent, mantissa = divmod(code, 2**self.mantissa_bits)
        return ldexp(2**self.mantissa_bits + mantissa, self.smallest_exponent + exponent - 1 - self.mantissa_bits)

    @property
    def min_normal(self) -> float:
        """The smallest number held with full precision."""
        return ldexp(1.0, self.smallest_exponent)

    @property
    def min_subnormal(self) -> float:
        """The smallest number above 0, and the spacing of all numbers below `min_normal`."""
        return ldexp(1.0, self.smallest_exponent - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """The spacing of numbers from 1 to 2."""
        return ldexp(1.0, -self.mantissa_bits)


def _ieee(name: str, title: str, exponent_bits: int, mantissa_bits: int, source: str) -> NumberFormat:
    return NumberFormat(name, title, exponent_bits, mantissa_bits, 2**mantissa_bits, source)


_FP8 = "Micikevicius et al. 2022 (FP8 Formats for Deep Learning), table 1"
FORMATS: Mapping[str, NumberFormat] = {
    record.name: record
    for record in (
        _ieee("fp32", "IEEE single precision", 8, 23, "IEEE 754-2019, table 3.5"),
        _ieee("tf32", "NVIDIA's TensorFloat-32, held in 32 bits", 8, 10, "NVIDIA A100 white paper"),
        _ieee("bf16", "bfloat16, fp32 with a short mantissa", 8, 7, "Kalamkar et al. 2019"),
        _ieee("fp16", "IEEE half precision", 5, 10, "IEEE 754-2019, table 3.5"),
        _ieee("fp8-e5m2", "FP8 for gradients", 5, 2, _FP8),
        NumberFormat("fp8-e4m3", "FP8 for weights and activations, no infinity", 4, 3, 1, _FP8),
        NumberFormat("fp4-e2m1", "FP4, no infinity and no NaN", 2, 1, 0, "OCP Microscaling Formats 1.0, table 5"),
    )
}
PROPERTIES = ("max", "min-normal", "min-subnormal", "epsilon")


def format_limit(number_format: str, asked: str = "max") -> float:
    """F42: a limit of a format: `max`, `min-normal`, `min-subnormal` or `epsilon` (the spacing at 1)."""
    record = FORMATS[number_format]
    return {
        "max": record.max,
        "min-normal": record.min_normal,
        "min-subnormal": record.min_subnormal,
        "epsilon": record.epsilon,
    }[asked]


def spacing(value: float, number_format: str) -> float:
    """F42: the distance from `value` to the next larger magnitude in its binade, 2^(⌊log₂|x|⌋ − mantissa bits).

    Below the smallest normal number it stays that of the subnormals.
    """
    record = FORMATS[number_format]
    exponent = frexp(value)[1] - 1 if value else record.smallest_exponent
    return ldexp(1.0, max(exponent, record.smallest_exponent) - record.mantissa_bits)


def rounded(value: float, number_format: str, saturate: bool = False) -> float:
    """F42: `value` in the format, to nearest, ties to even, as hardware converts.

    Raises SpecError where that is beyond the largest number, unless `saturate` clamps it there, as FP8 libraries do.
    """
    largest = FORMATS[number_format].max
    if saturate:
        return max(-largest, min(_nearest(value, number_format), largest))
    return _held("value", value, _nearest(value, number_format), number_format)


def _nearest(value: float, number_format: str) -> float:
    """`value` rounded as if the format had no largest number."""
    step = spacing(value, number_format)
    return float(round(value / step) * step)


def _held(field: str, value: float, held: float, number_format: str) -> float:
    """`held`, unless the format cannot hold it: then SpecError at the input it came from."""
    largest = FORMATS[number_format].max
    if abs(held) > largest:
        message = f"It overflows {number_format}, whose largest number is {largest:g}."
        raise SpecError([Violation(field, value, message, "a smaller magnitude")])
    return held


def round_up_probability(value: float, number_format: str) -> float:
    """F44: how often stochastic rounding takes the larger neighbour: the share of the spacing below `value`.

    So the mean of many roundings is the value itself. Source: Gupta et al. 2015, section 3.
    """
    steps = value / spacing(value, number_format)
    return steps - floor(steps)


def updated_weight(weight: float, update: float, number_format: str) -> float:
    """F44: what a weight kept in the format is after adding `update`. Raises SpecError where one of them overflows."""
    before = _held("weight", weight, _nearest(weight, number_format), number_format)
    return _held("update", update, _nearest(before + update, number_format), number_format)


def swallow_threshold(weight: float, number_format: str) -> float:
    """F44: updates smaller than this leave a weight in the format as it was: half its spacing.

    At a power of two, whose lower neighbour is nearer, a decrease is lost below half of that.
    """
    held = _held("weight", weight, _nearest(weight, number_format), number_format)
    return spacing(held, number_format) / 2


def is_swallowed(weight: float, update: float, number_format: str) -> bool:
    """F44: whether adding `update` leaves a weight in the format as it was."""
    return updated_weight(weight, update, number_format) == updated_weight(weight, 0.0, number_format)


def smallest_gradient(loss_scale: float, number_format: str = "fp16", asked: str = "min-subnormal") -> float:
    """F43: the smallest true gradient that survives in the format when the loss is multiplied by `loss_scale`.

    `asked`: `min-subnormal`; `min-normal` for full precision; `rounds-to-zero` for the magnitude that, with all below,
    becomes 0. Source: Micikevicius et al. 2018 (Mixed Precision Training), section 3.2.
    """
    record = FORMATS[number_format]
    smallest = {
        "min-subnormal": record.min_subnormal,
        "min-normal": record.min_normal,
        "rounds-to-zero": record.min_subnormal / 2,
    }
    return smallest[asked] / loss_scale


def largest_gradient(loss_scale: float, number_format: str = "fp16") -> float:
    """F43: the largest true gradient that does not overflow in the format at `loss_scale`."""
    return FORMATS[number_format].max / loss_scale


def scaled_gradient(gradient: float, loss_scale: float, number_format: str = "fp16") -> float:
    """F43: what is left of a gradient that was multiplied by `loss_scale`, held in the format and divided again.

    Raises SpecError naming the gradient where it overflows.
    """
    scaled = _nearest(gradient * loss_scale, number_format)
    return _held("gradient", gradient, scaled, number_format) / loss_scale


@dataclass(frozen=True)
class DynamicScaling:
    """When a loss scale is changed. Defaults of torch.amp.GradScaler."""

    initial: float = 65536.0
    growth: float = 2.0
    backoff: float = 0.5
    interval_steps: int = 2000


def dynamic_loss_scale(
    good_steps: int, overflows: int, initial: float = 65536.0, rule: DynamicScaling | None = None
) -> float:
    """F43: the loss scale after `overflows` skipped steps, then `good_steps` in a row without one.

    Source: PyTorch documentation of torch.amp.GradScaler: ×2 after 2,000 good steps, ×½ at each overflow.
    """
    rule = rule or DynamicScaling()
    return float(initial * rule.backoff**overflows * rule.growth ** (good_steps // rule.interval_steps))


def tensor_scale(largest_magnitude: float, number_format: str = "fp8-e4m3") -> float:
    """F43: the factor that takes a tensor's largest magnitude to the largest number of the format (FP8 scaling).

    Source: Micikevicius et al. 2022, section 3. Recipes round it down to a power of two or keep a margin.
    """
    return FORMATS[number_format].max / largest_magnitude
