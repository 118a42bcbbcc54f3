"""What a whole training takes: from a budget to a model and its tokens, to days and money on the plan's GPUs, and what
failures cost on the way. Every formula is theory's; this puts the plan's numbers in."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from urllib.parse import urlencode

from app.core.errors import SpecError
from app.planner.fields import SIZED
from app.planner.made import Plan
from app.planner.readers import Budget
from app.theory.compute import affordable_flops, training_cost, training_flops, training_seconds
from app.theory.hardware import GPUS
from app.theory.reliability import (
    FAILURE_RATES,
    FailureRate,
    checkpoint_bytes,
    checkpoint_interval_seconds,
    failure_count,
    lost_fraction_at_best,
    mtbf_seconds,
)
from app.theory.scaling_laws import (
    TOKENS_PER_PARAMETER,
    compute_optimal_parameters,
    compute_optimal_tokens,
    lifetime_flops,
    overtraining,
    parametric_loss,
)

RESTART_SECONDS = 600.0  # to notice a failure, to replace a node and to start again: ten minutes, as interviews take it
LAW = "besiroglu"
AROUND = ("failures", "failure_rate", "checkpoint", "deadline")  # fields of a whole job
PLACES = 6  # of GPUs, which rounding must not make one more


@dataclass(frozen=True)
class Trained:
    """A model on its tokens. Time is None where nobody says how fast the GPUs work."""

    title: str
    parameters: float
    tokens: float
    seconds: float | None
    gpu_seconds: float | None
    cost: float | None
    gpus: int | None  # that are done before the deadline
    lifetime_flops: float | None
    address: str = ""

    @property
    def flops(self) -> float:
        return training_flops(self.parameters, self.tokens)

    @property
    def tokens_per_parameter(self) -> float:
        return self.tokens / self.parameters

    @property
    def overtraining(self) -> float:
        return overtraining(self.parameters, self.tokens)

    @property
    def loss(self) -> float:
        return parametric_loss(self.parameters, self.tokens, LAW)


@dataclass(frozen=True)
class Failures:
    """What failures cost such a job, with checkpoints at Young's interval; `lost` is None where they leave no time."""

    rate: FailureRate
    mtbf_seconds: float
    count: float | None
    checkpoint_seconds: float
    checkpoint_bytes: float
    interval_seconds: float
    lost: float | None
    seconds: float | None  # of the training, with what is lost


@dataclass(frozen=True)
class Training:
    """The plan's own model, and beside it, where a budget is given, the model that is compute-optimal for it."""

    said: str
    mfu: float | None
    is_mfu_assumed: bool
    is_active: bool  # parameters are those a token meets
    models: tuple[Trained, ...]
    failures: Failures
    served: float | None
    deadline: str  # as typed

    @property
    def saved_flops(self) -> float | None:
        """What the plan's model saves over the compute-optimal one, training and serving together; negative where it
        takes more. None where nobody says how much it serves, or without a budget."""
        lives = [each.lifetime_flops for each in self.models if each.lifetime_flops is not None]
        return lives[1] - lives[0] if len(lives) == 2 else None


def training_of(made: Plan) -> Training:
    """Of a plan and the budget in its form."""
    values = made.form.values
    mfu = values["mfu"] or made.estimate.mfu_by_definition.six_n
    is_active = made.estimate.parameters.active < made.estimate.parameters.total
    active = made.estimate.parameters.active if is_active else made.size
    flops = _flops(made, values["budget"], active, mfu)
    models = [_trained("This model", active, flops / training_flops(active, 1.0), made, mfu)]
    if values["budget"] is not None:
        best = compute_optimal_parameters(flops)
        found = _trained("Compute-optimal", best, compute_optimal_tokens(flops), made, mfu, _address(made, best))
        models.append(found)
    said = _said(values["budget"], made.typed["budget"])
    failures = _failures(made, models[0])
    assumed, served = values["mfu"] is not None, values["served"]
    return Training(said, mfu, assumed, is_active, tuple(models), failures, served, made.typed["deadline"])


def _flops(made: Plan, budget: Budget | None, parameters: float, mfu: float | None) -> float:
    """The compute of a budget. Time on GPUs is worth what they get done, at their peak where nobody says how much."""
    if budget is None:
        return training_flops(parameters, TOKENS_PER_PARAMETER * parameters)
    if budget.kind == "flops":
        return budget.amount
    if budget.kind == "tokens":
        return training_flops(parameters, budget.amount)
    gpus = made.ranks if budget.kind == "seconds" else 1
    return affordable_flops(gpus, budget.amount, _peak(made), mfu or 1.0)


def _peak(made: Plan) -> float:
    return GPUS[made.form.values["gpu"]].peak(made.form.values["precision"])


def _trained(title: str, parameters: float, tokens: float, made: Plan, mfu: float | None, address: str = "") -> Trained:
    price, served = made.form.values["price"], made.form.values["served"]
    seconds = None if mfu is None else training_seconds(parameters, tokens, made.ranks, _peak(made), mfu)
    return Trained(
        title,
        parameters,
        tokens,
        seconds,
        None if seconds is None else seconds * made.ranks,
        None if seconds is None or price is None else training_cost(made.ranks, seconds, price),
        None if seconds is None else ceil(round(seconds * made.ranks / made.form.values["deadline"], PLACES)),
        None if served is None else lifetime_flops(parameters, tokens, served),
        address,
    )


def _address(made: Plan, parameters: float) -> str:
    """The plan with a model of so many parameters in place of its own."""
    shape = {"model": SIZED, "parameters": f"{parameters:.3g}", "budget": made.typed["budget"]}
    kept = ("ranks", "gpu", "sequence", "global_batch", "mfu", "price", "served", *AROUND)
    return "/planner?" + urlencode({name: made.typed[name] for name in kept} | shape)


def _said(budget: Budget | None, typed: str) -> str:
    if budget is None:
        return f"on {TOKENS_PER_PARAMETER:g} tokens a parameter"
    return {
        "flops": f"for {typed}",
        "gpu_seconds": f"for {typed}",
        "seconds": f"in {typed} on all GPUs",
        "tokens": f"on {typed}",
    }[budget.kind]


def _rate(made: Plan) -> FailureRate:
    """As typed, or as somebody measured it."""
    typed = made.form.values["failure_rate"]
    if typed is None:
        return FAILURE_RATES[made.form.values["failures"]]
    return FailureRate("typed", "a rate of your own", typed, "as typed")


def _failures(made: Plan, trained: Trained) -> Failures:
    rate, writes = _rate(made), made.form.values["checkpoint"]
    between = mtbf_seconds(made.ranks, rate.gpu_seconds_per_failure)
    try:
        lost = lost_fraction_at_best(writes, between, RESTART_SECONDS)
    except SpecError:
        lost = None
    seconds = trained.seconds
    return Failures(
        rate,
        between,
        None if seconds is None else failure_count(seconds, between),
        writes,
        checkpoint_bytes(made.size),
        checkpoint_interval_seconds(writes, between),
        lost,
        None if seconds is None or lost is None else seconds / (1 - lost),
    )
