"""The bubble in closed form: how long a stage of a pipeline idles in a step, as the papers write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from labs.spec import SpecError, Violation

ASKED = ("fraction", "overhead", "utilisation")
COMPARED_SCHEDULES = ("1f1b", "zb1p", "dualpipe")


def bubble(stages: int, micro_batches: int, asked: str = "fraction") -> float:
    """F22: idle time of GPipe and synchronous 1F1B with equal stages.

    `asked`: `fraction` = idle over total, (p−1)/(m+p−1); `overhead` = extra over ideal, (p−1)/m;
    `utilisation` = m/(m+p−1).
    Source: Huang et al. 2019 (GPipe), section 2.3; Narayanan et al. 2021 call the overhead "bubble time fraction".
    """
    return _idle(stages - 1, micro_batches, asked)


def _idle(idle: float, ideal: float, asked: str) -> float:
    """`idle` time next to `ideal` work, as the ratio asked for."""
    if asked == "overhead":
        return idle / ideal
    if asked == "utilisation":
        return ideal / (ideal + idle)
    return idle / (ideal + idle)


def pipeline_seconds(stages: int, micro_batches: int, forward_seconds: float, backward_seconds: float) -> float:
    """F22: duration of a step's passes, (m+p−1)(t_f+t_b), with the times of one micro-batch on one of equal stages."""
    return (micro_batches + stages - 1) * (forward_seconds + backward_seconds)


def micro_batches_for_bubble(stages: int, idle_fraction: float, virtual_stages: int = 1) -> int:
    """F22, F23: the fewest micro-batches whose idle fraction is at most `idle_fraction`, m ≥ (p−1)(1−f)/(v·f).

    Interleaving (v > 1) takes them in multiples of the stages.
    """
    if not 0 < idle_fraction < 1:
        message = "No number of micro-batches gives this."
        raise SpecError([Violation("idle_fraction", idle_fraction, message, "more than 0, less than 1")])
    least = (stages - 1) * (1 - idle_fraction) / (virtual_stages * idle_fraction)
    whole = max(1, ceil(least * (1 - 1e-12)))  # 7 × 0.9 / 0.1 is 63, whatever its last bit says
    return whole if virtual_stages == 1 else ceil(whole / stages) * stages


def interleaved_bubble(stages: int, micro_batches: int, virtual_stages: int, asked: str = "fraction") -> float:
    """F23: idle time with `virtual_stages` (v) model chunks per stage: overhead (p−1)/(v·m).

    `asked` as in `bubble`. Raises SpecError where the micro-batches are no multiple of the stages.
    Source: Narayanan et al. 2021, section 2.2.2.
    """
    if virtual_stages > 1 and micro_batches % stages:
        message = f"Interleaving takes micro-batches in groups of {stages}, one per stage."
        raise SpecError([Violation("micro_batches", micro_batches, message, f"a multiple of {stages}")])
    return _idle(stages - 1, virtual_stages * micro_batches, asked)


@dataclass(frozen=True)
class ZeroBubble:
    """A schedule that runs weight gradients as passes of their own, and what is left of its bubble.

    A stage idles (p−1)(T_F + T_B − `weights_filled` × T_W); it holds `memory_stages` × p + `memory_rest` micro-batches.
    """

    name: str
    title: str
    weights_filled: int | None  # None: no bubble, and known only where the three passes take equally long
    memory_stages: int
    memory_rest: int
    source: str


_QI = "Qi et al. 2023 (Zero Bubble Pipeline Parallelism)"
ZERO_BUBBLES: Mapping[str, ZeroBubble] = {
    record.name: record
    for record in (
        ZeroBubble("zb-h1", "ZB-H1, the memory of 1F1B", 1, 1, 0, f"{_QI}, section 2"),
        ZeroBubble("zb-h2", "ZB-H2, about twice the memory", 2, 2, -1, f"{_QI}, section 2"),
        ZeroBubble("zb-v", "ZB-V, two chunks per stage in a V", None, 1, 0, f"{_QI}, section 6"),
    )
}


def zero_bubble(
    stages: int,
    micro_batches: int,
    variant: str = "zb-h1",
    forward_seconds: float = 1.0,
    input_gradient_seconds: float = 1.0,
    weight_gradient_seconds: float = 1.0,
    asked: str = "fraction",
) -> float:
    """F24: idle time of the zero-bubble schedules; the seconds are of one micro-batch's three passes on one stage.

    With equal passes ZB-H1's overhead is (p−1)/(3m), a third of 1F1B's; that of ZB-H2 and ZB-V is 0.
    Those two still start the stages one after the other, which a step without a global synchronisation hides behind
    the end of the step before.
    Raises SpecError where the closed form does not hold: a weight gradient that takes longer than one of the others,
    and for ZB-V unequal passes.
    Source: Qi et al. 2023, sections 2 and 6.
    """
    times = (forward_seconds, input_gradient_seconds, weight_gradient_seconds)
    record = ZERO_BUBBLES[variant]
    if record.weights_filled is None:
        _check_equal(times)
        return _idle(0.0, micro_batches * sum(times), asked)
    shorter = min(forward_seconds, input_gradient_seconds)
    if weight_gradient_seconds > shorter:
        message = "The closed form needs a weight gradient no longer than the other two passes."
        raise SpecError([Violation("weight_gradient_seconds", weight_gradient_seconds, message, f"0 to {shorter:g}")])
    left = forward_seconds + input_gradient_seconds - record.weights_filled * weight_gradient_seconds
    return _idle((stages - 1) * left, micro_batches * sum(times), asked)


def _check_equal(times: tuple[float, float, float]) -> None:
    names = ("input_gradient_seconds", "weight_gradient_seconds")
    message = "The idle time of ZB-V is known only where its three passes take equally long."
    wrong = [
        Violation(name, value, message, f"forward_seconds, {times[0]:g}")
        for name, value in zip(names, times[1:], strict=True)
        if value != times[0]
    ]
    if wrong:
        raise SpecError(wrong)


def schedule_idle_seconds(
    schedule: str,
    stages: int,
    forward_seconds: float = 1.0,
    backward_seconds: float = 2.0,
    weight_gradient_seconds: float = 1.0,
    pair_seconds: float = 3.0,
) -> float:
    """F63: idle time of a step: (p−1)(F+B) in 1F1B, (p−1)(F+B−2W) in ZB1P, (p/2−1)(P+B−3W) in DualPipe.

    B is the whole backward, W its part for the weights, P a forward and a backward that run as a pair. Raises SpecError
    for an odd number of stages in DualPipe, and where the weights' part is too long for the closed form. Source:
    DeepSeek-AI 2024 (DeepSeek-V3), table 2.
    """
    if schedule == "1f1b":
        return (stages - 1) * (forward_seconds + backward_seconds)
    if schedule == "dualpipe" and stages % 2:
        raise SpecError([Violation("stages", stages, "Micro-batches enter at both ends.", "an even number")])
    first = pair_seconds if schedule == "dualpipe" else forward_seconds
    filled = 3 if schedule == "dualpipe" else 2
    left = first + backward_seconds - filled * weight_gradient_seconds
    if left < 0:
        most = (first + backward_seconds) / filled
        message = "The closed form needs weights' parts that fit into what they fill."
        raise SpecError([Violation("weight_gradient_seconds", weight_gradient_seconds, message, f"0 to {most:g}")])
    return (stages // 2 - 1 if schedule == "dualpipe" else stages - 1) * left
