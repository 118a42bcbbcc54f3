"""What the `formats` program should measure: limits, sums and loss scales, to the last bit (F42 to F44)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise, repeat

from app.theory.lab_runs.programs.parts import Expected, Point
from app.theory.number_formats import FORMATS, DynamicScaling, NumberFormat, rounded, scaled_gradient, updated_weight
from labs.spec import FormatsOptions, SpecError

_NAMES = ("fp32", "bf16", "fp16", "fp8-e5m2", "fp8-e4m3")


def expect(options: FormatsOptions, _ranks: int) -> Expected:
    """The formats' limits, a weight after its updates, the loss scale for the known gradient.

    Of the small GPT nothing is known beforehand.
    """
    steps = list(_scales(options))
    quantities = {
        "fp16_largest": FORMATS["fp16"].max,
        "bf16_epsilon": FORMATS["bf16"].epsilon,
        "updates_swallowed": sum(before == after for before, after in pairwise(_weights(options, "bf16"))),
        "first_scale": next((scale for scale, overflows in steps if not overflows), steps[-1][0]),
    }
    scales = (Point("loss_scale", "known gradient", step, scale) for step, (scale, _) in enumerate(steps, start=1))
    return Expected((*_limits(), *_sums(options), *scales), quantities)


def _limits() -> Iterator[Point]:
    for name in _NAMES:
        record: NumberFormat = FORMATS[name]
        for value in (record.min_subnormal, record.min_normal, record.max):
            yield Point("range", name, record.exponent_bits, value)
        yield Point("epsilon", name, record.mantissa_bits, record.epsilon)


def _sums(options: FormatsOptions) -> Iterator[Point]:
    for name in _NAMES:
        weights = _weights(options, name)
        for number in options.shown_updates:
            yield Point("sum", name, number, weights[number])
    for number in options.shown_updates:
        yield Point("sum", "exact", number, options.weight + number * options.update)


def _weights(options: FormatsOptions, number_format: str) -> list[float]:
    """A weight before the first update and after each; the update is held in the format as well."""
    start, update = (rounded(value, number_format) for value in (options.weight, options.update))
    updates = repeat(update, options.updates)
    return list(accumulate(updates, lambda weight, more: updated_weight(weight, more, number_format), initial=start))


def _scales(options: FormatsOptions) -> Iterator[tuple[float, bool]]:
    """For every step the loss scale, and whether the gradient overflows fp16 with it."""
    rule = DynamicScaling(interval_steps=options.growth_interval)
    scale, good = rule.initial, 0
    for _ in range(options.steps):
        overflows = _overflows(options.gradient, scale)
        yield scale, overflows
        good = 0 if overflows else good + 1
        if overflows:
            scale *= rule.backoff
        elif good == rule.interval_steps:
            scale, good = scale * rule.growth, 0


def _overflows(gradient: float, scale: float) -> bool:
    try:
        scaled_gradient(gradient, scale)
    except SpecError:
        return True
    return False
