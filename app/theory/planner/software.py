"""Which software runs which pipeline schedules and ZeRO stages, and how it keeps state unless told otherwise: the one
table, and the one rule for a plan that leaves its software open. The engine prices any schedule and stage under any
implementation; a search offers those that a plan's software runs, unless it is asked for others.

A plan that names no software is counted as its ZeRO stage suggests (`default_of`), with state as textbooks and
interviews count it (`OPEN_LAYOUT`). Estimates, searches, problems, interviews, the command line and dry runs all ask
here, so that a plan has the same numbers wherever it is met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from labs.spec import Precision, Schedule, StateLayout

Profile = Literal[
    "zero-paper", "megatron", "megatron-core", "fsdp2", "torchtitan", "composer", "deepspeed", "rankzero-labs"
]
ALL_STAGES = (0, 1, 2, 3)
OPEN_LAYOUT: StateLayout = "zero-16"  # of a plan that names neither its software nor a layout: 2 + 2 + 12 bytes


@dataclass(frozen=True)
class Runs:
    """The schedules of an implementation, where that is read, its ZeRO stages, and the layout of the state that it
    trains in 16-bit brain floats with unless told otherwise, and where that is read.

    Sources of programs name repository, file, line and the commit that was read."""

    schedules: tuple[Schedule, ...]
    source: str
    zero: tuple[int, ...] = ALL_STAGES
    layout: StateLayout = "zero-16"
    layout_source: str = "Rajbhandari et al. 2020 (ZeRO), section 3.1"


_ALL: tuple[Schedule, ...] = get_args(Schedule)
# Weights are kept in fp32, sharded, and cast where they are gathered; gradients are reduced and kept in fp32.
_AUTOCAST: StateLayout = "torch-amp"
_PIPELINING = "torch.distributed.pipelining.schedules of PyTorch 2.13"
_FSDP2 = (
    "pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_api.py, lines 21 to 43, at 01d5c2cc: the policy keeps "
    "sharded parameters in their own type for the optimizer, and reduces in it unless reduce_dtype is another"
)
_TORCHTITAN = (
    "pytorch/torchtitan, torchtitan/config/configs.py, line 102, at b5bcd76c: mixed_precision_reduce is float32 and "
    "nothing else"
)
_COMPOSER = (
    "mosaicml/composer, composer/distributed/mosaic_parallelism.py, lines 78 to 81, at 64051888: DEFAULT reduces in "
    "float32"
)
# bf16 accumulates and reduces gradients in fp32, unless --grad-reduce-in-bf16.
_FP32_GRADIENTS: StateLayout = "megatron-18"
_ARGUMENTS = "NVIDIA/Megatron-LM, megatron/training/arguments.py, lines 1209 to 1216, at d98e8a64"
# The optimizer alone is what --use-distributed-optimizer shards: NVIDIA/Megatron-LM,
# docs/user-guide/features/dist_optimizer.md, line 12, at d98e8a64. Its FSDP, which shards more, is not modelled.
_DISTRIBUTED_OPTIMIZER = (0, 1)
_MEGATRON = "Narayanan et al. 2021, section 2.2"
_MEGATRON_CORE = (
    "NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py, lines 723, 1019 and 2147, at d98e8a64: without "
    "a pipeline, with interleaving and without"
)

SOFTWARE: Mapping[Profile, Runs] = {
    "zero-paper": Runs(_ALL, "arithmetic, for no program"),
    "megatron": Runs(("1f1b", "interleaved"), _MEGATRON, _DISTRIBUTED_OPTIMIZER, _FP32_GRADIENTS, _ARGUMENTS),
    "megatron-core": Runs(("1f1b", "interleaved"), _MEGATRON_CORE, _DISTRIBUTED_OPTIMIZER, _FP32_GRADIENTS, _ARGUMENTS),
    "fsdp2": Runs(_ALL, _PIPELINING, layout=_AUTOCAST, layout_source=_FSDP2),
    "torchtitan": Runs(_ALL, _PIPELINING, layout=_AUTOCAST, layout_source=_TORCHTITAN),
    "composer": Runs(
        (),
        "Composer trains data-parallel, through FSDP: it has no pipeline",
        layout=_AUTOCAST,
        layout_source=_COMPOSER,
    ),
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


# Whose implementation a plan is counted as that leaves it open: the first that has its ZeRO stage. What is run today:
# Megatron-LM of 2021 is for the publications of its time.
DEFAULTS: tuple[Profile, ...] = ("megatron-core", "fsdp2")


def default_of(zero: int) -> Profile:
    """Whose implementation a plan at a ZeRO stage is counted as that leaves it open."""
    return next(name for name in DEFAULTS if zero in SOFTWARE[name].zero)


def defaults_of(zeros: Iterable[int]) -> tuple[tuple[Profile, tuple[int, ...]], ...]:
    """(implementation, those of the stages that are counted as its own where it is left open), in the stages' order."""
    stages: dict[Profile, list[int]] = {}
    for zero in zeros:
        stages.setdefault(default_of(zero), []).append(zero)
    return tuple((name, tuple(counted)) for name, counted in stages.items())


_OF_PRECISION: Mapping[str, StateLayout] = {"fp32": "fp32", "bf16": "bf16", "fp16-mixed": "zero-16"}


def layout_of(profile: str | None, precision: Precision) -> StateLayout:
    """How state is kept unless a plan says so: as its software does, or where that is left open, as ZeRO's paper counts
    it. Pure precisions keep everything in theirs; fp16's gradients are kept as they come."""
    if profile is None:
        return OPEN_LAYOUT
    return _OF_PRECISION.get(precision) or SOFTWARE[profile].layout  # type: ignore[index]
