"""Which software runs which pipeline schedules and ZeRO stages: the one table. The engine prices any of them under any
implementation; a search offers those that a plan's software runs, unless it is asked for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from app.theory.planner.requests import Profile
from labs.spec import Schedule

ALL_STAGES = (0, 1, 2, 3)
ByStage = Literal["by-zero-stage"]
BY_STAGE: ByStage = "by-zero-stage"  # of a search: whose software a plan is counted as, if that is left open


@dataclass(frozen=True)
class Runs:
    """The schedules of an implementation, where that is read, and its ZeRO stages."""

    schedules: tuple[Schedule, ...]
    source: str
    zero: tuple[int, ...] = ALL_STAGES


_ALL: tuple[Schedule, ...] = get_args(Schedule)
_TORCH = Runs(_ALL, "torch.distributed.pipelining.schedules of PyTorch 2.13")
_DISTRIBUTED_OPTIMIZER = (0, 1)  # what Megatron's shards: the optimizer alone
_MEGATRON_CORE = "Megatron-Core's pipeline_parallel/schedules.py: without and with interleaving"

SOFTWARE: Mapping[Profile, Runs] = {
    "zero-paper": Runs(_ALL, "arithmetic, for no program"),
    "megatron": Runs(("1f1b", "interleaved"), "Narayanan et al. 2021, section 2.2", _DISTRIBUTED_OPTIMIZER),
    "megatron-core": Runs(("1f1b", "interleaved"), _MEGATRON_CORE, _DISTRIBUTED_OPTIMIZER),
    "fsdp2": _TORCH,
    "torchtitan": _TORCH,
    "composer": Runs((), "Composer trains data-parallel, through FSDP: it has no pipeline"),
    "deepspeed": Runs(("1f1b",), "DeepSpeed's runtime/pipe/schedule.py: TrainSchedule"),
    "rankzero-labs": Runs(_ALL, "labs/spec/schedules.py"),
}


def runs(profile: str, schedule: str) -> bool:
    """Whether an implementation runs a schedule."""
    return schedule in SOFTWARE[profile].schedules  # type: ignore[index]


def said_of(profile: str) -> str:
    """What an implementation runs, in words."""
    return " and ".join(SOFTWARE[profile].schedules) or "no pipeline"  # type: ignore[index]


def stages_of(profile: str) -> tuple[int, ...]:
    """The ZeRO stages that an implementation has."""
    return SOFTWARE[profile].zero  # type: ignore[index]


# Whose implementation a plan is counted as that leaves it open: the first that has its ZeRO stage.
DEFAULTS: tuple[Profile, ...] = ("megatron", "fsdp2")


def default_of(zero: int) -> Profile:
    """Whose implementation a plan at a ZeRO stage is counted as that leaves it open."""
    return next(name for name in DEFAULTS if zero in SOFTWARE[name].zero)
