"""The engine against what others measured: predictions, errors, and how they are summed up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from statistics import mean

from app.theory.planner.engine.constants import FITTED, Constants
from app.theory.planner.engine.flops import hardware_flops, model_flops
from app.theory.planner.engine.memory import stage_memories
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.resolve import plan_of
from app.theory.planner.engine.timing import step_seconds as step_seconds_of
from app.theory.planner.requests import EstimateRequest

SECANTS, SAME = 6, 1e-6  # steps at most, and of a step: near enough
NO_TIME = 1e-9  # times as long: as good as none


@dataclass(frozen=True)
class Prediction:
    """What the engine says of a plan on a GPU. FLOP rates are per GPU: hardware ones count recomputation,
    causal ones half of attention's scores."""

    step_seconds: float
    tokens_per_second_per_gpu: float
    hardware_flops_per_second_per_gpu: float
    model_flops_per_second_per_gpu: float
    causal_flops_per_second_per_gpu: float
    mfu: float
    hfu: float
    peak_bytes: float

    def at(self, step_seconds: float) -> tuple[float, float]:
        """(MFU, HFU) had the step taken `step_seconds`."""
        return self.mfu * self.step_seconds / step_seconds, self.hfu * self.step_seconds / step_seconds


def predict(request: EstimateRequest, constants: Constants = FITTED) -> Prediction:
    """The engine's answer for `request`, which names a GPU, with `constants` in place of the fitted ones."""
    plan = plan_of(request, constants)
    assert plan.device is not None
    memories = stage_memories(plan)
    seconds = step_seconds_of(plan, memories).step
    training = plan.training
    tokens = plan.micro_batches * training.micro_batch * training.sequence * plan.parallel.data
    each = tokens / seconds / plan.parallel.world_size
    peak = plan.device.peak_flops_per_second
    return Prediction(
        seconds,
        each,
        hardware_flops(plan) * each,
        model_flops(plan) * each,
        model_flops(plan, "causal-attention") * each,
        model_flops(plan) * each / peak,
        hardware_flops(plan) * each / peak,
        max(memory.total for memory in memories),
    )


@dataclass(frozen=True)
class AttentionRate:
    """Where a step that was not predicted may have gone: `share` of the predicted one is attention, whose kernel ran at
    `times` its published rate if all else took what the engine says."""

    share: float
    times: float


def attention_rate(request: EstimateRequest, step_seconds: float) -> AttentionRate:
    """Of a plan with a fused kernel whose step took `step_seconds`; infinite where no rate would do."""
    plan = plan_of(request)
    now, without = _step_at(plan, 1.0), _step_at(plan, NO_TIME)
    if step_seconds <= without:
        return AttentionRate(1.0 - without / now, inf)
    # Seconds of a step grow about in proportion to those of its attention: what hides behind it bends them a little.
    (slow, longer), (slower, longest) = (1.0, now), (2.0, _step_at(plan, 2.0))
    for _ in range(SECANTS):
        if longest == longer or abs(longest / step_seconds - 1.0) < SAME:
            break
        nearer = max(NO_TIME, slower + (step_seconds - longest) * (slower - slow) / (longest - longer))
        slow, longer, slower, longest = slower, longest, nearer, _step_at(plan, nearer)
    return AttentionRate(1.0 - without / now, 1.0 / slower)


def _step_at(plan: Plan, slower: float) -> float:
    """Seconds of a step whose attention takes `slower` times as long."""
    assert plan.device is not None
    rates = plan.device.attention.times(1.0 / slower)
    at = replace(plan, device=replace(plan.device, attention=rates))
    return step_seconds_of(at, stage_memories(at)).step


@dataclass(frozen=True)
class Comparison:
    """One measured value beside its prediction. `error` is signed, relative to the measurement."""

    source: str
    row: str
    quantity: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1.0

    @property
    def is_time(self) -> bool:
        """Whether it is about speed; memory has no fitted constant."""
        return self.quantity != "peak_bytes"


def compare(
    source: str, row: str, request: EstimateRequest, measured: Mapping[str, float], constants: Constants = FITTED
) -> list[Comparison]:
    """Every measured value of a row beside its prediction."""
    predicted = predict(request, constants)
    return [
        Comparison(source, row, quantity, value, getattr(predicted, quantity)) for quantity, value in measured.items()
    ]


@dataclass(frozen=True)
class Summary:
    """Errors of several comparisons, as fractions: mean and largest without sign, and the mean with it."""

    count: int
    mean_error: float
    worst_error: float
    bias: float


def summarise(comparisons: Iterable[Comparison]) -> Summary:
    """Raises ValueError when there is nothing to sum up."""
    errors = [comparison.error for comparison in comparisons]
    if not errors:
        raise ValueError("no comparisons")
    sizes = [abs(error) for error in errors]
    return Summary(len(errors), mean(sizes), max(sizes), mean(errors))
