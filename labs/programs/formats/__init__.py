"""What number formats hold, what they lose, and what loss scaling mends.

First the formats themselves: their limits are searched for, and a small update is added to a weight until it shows
which of them notice. Then gradients: how small those of a real model are, which of them fp16 turns to zero, how a loss
scale finds its place, and the same model trained each way.
"""

from __future__ import annotations

from itertools import islice, pairwise
from math import isfinite

from labs.programs.formats.arithmetic import (
    FORMATS,
    add_again_and_again,
    find_epsilon,
    find_largest,
    find_smallest,
    find_smallest_normal,
)
from labs.programs.formats.scaling import scales_for
from labs.programs.formats.training import WAYS, Training, share_lost, shares_by_exponent, train
from labs.programs.running import Bench
from labs.spec import FormatsOptions


def measure(options: FormatsOptions, bench: Bench) -> dict[str, float]:
    """Limits, swallowed updates, a loss scale that finds its place, and losses."""
    limits = _find_limits(bench)
    swallowed = _swallow(options, bench)
    first_scale = _scale(options, bench)
    trained = _train(options, bench)
    _look_at_gradients(trained["fp32"], bench)
    return {**limits, "updates_swallowed": swallowed, "first_scale": first_scale}


def _find_limits(bench: Bench) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in FORMATS:
        largest, epsilon = find_largest(each, bench.device), find_epsilon(each, bench.device)
        for value in (find_smallest(each, bench.device), find_smallest_normal(each, bench.device), largest):
            bench.point("range", each.name, each.exponent_bits, value)
        bench.point("epsilon", each.name, each.mantissa_bits, epsilon)
        name = each.name.replace("-", "_")
        found |= {f"{name}_largest": largest, f"{name}_epsilon": epsilon}
    return found


def _swallow(options: FormatsOptions, bench: Bench) -> int:
    """Add the update again and again in every format; count those that a bf16 weight does not notice."""
    swallowed = 0
    for each in FORMATS:
        start = float(each.held(options.weight, bench.device))
        sums = add_again_and_again(each, options.weight, options.update, bench.device)
        weights = [start, *islice(sums, options.updates)]
        for number in options.shown_updates:
            bench.point("sum", each.name, number, weights[number])
        if each.name == "bf16":
            swallowed = sum(before == after for before, after in pairwise(weights))
    for number in options.shown_updates:
        bench.point("sum", "exact", number, options.weight + number * options.update)
    return swallowed


def _scale(options: FormatsOptions, bench: Bench) -> float:
    """The scale of every step for the known gradient. Returns the first that did not overflow, or the last tried."""
    steps = list(islice(scales_for(options.gradient, options.growth_interval, bench.device), options.steps))
    for number, (scale, _) in enumerate(steps, start=1):
        bench.point("loss_scale", "known gradient", number, scale)
    skipped = sum(overflowed for _, overflowed in steps)
    bench.say(f"Loss scaling for a gradient of {options.gradient:g}: {skipped} of {options.steps} steps skipped.")
    return next((scale for scale, overflowed in steps if not overflowed), steps[-1][0])


def _train(options: FormatsOptions, bench: Bench) -> dict[str, Training]:
    trained = {way.name: train(way, options, bench.seed, bench.device) for way in WAYS}
    for way in WAYS:
        done = trained[way.name]
        for number, loss in enumerate(done.losses, start=1):
            if isfinite(loss):
                bench.point("training", way.name, number, loss)
        for number, scale in enumerate(done.scales if way.scaled else (), start=1):
            bench.point("loss_scale", "small GPT", number, scale)
    return trained


def _look_at_gradients(trained: Training, bench: Bench) -> None:
    """How small the gradients of the model are, and what each format makes of them at which scale."""
    for exponent, share in shares_by_exponent(trained.gradients).items():
        bench.point("gradients", "gradients", exponent, share)
    for each in FORMATS:
        for exponent in range(0, 25, 4):
            bench.point("underflow", each.name, 2.0**exponent, share_lost(trained.gradients, each, 2.0**exponent))
