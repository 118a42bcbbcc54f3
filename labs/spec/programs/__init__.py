"""The programs that are not a training run, each with options of its own: what can be asked of them. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from labs.spec.programs.autograd import AutogradOptions
from labs.spec.programs.collectives import CollectivesOptions
from labs.spec.programs.ddp import DdpOptions
from labs.spec.programs.failures import FailuresOptions
from labs.spec.programs.formats import FormatsOptions
from labs.spec.programs.gemm import GemmOptions
from labs.spec.programs.parts import Figure, Options, Quantity
from labs.spec.programs.scaling import ScalingOptions
from labs.spec.programs.schedule import ScheduleOptions
from labs.spec.programs.speed import SpeedOptions
from labs.spec.vocabulary import MAX_WORLD_SIZE
from labs.violations import Violation

__all__ = [
    "PROGRAMS",
    "AnyOptions",
    "AutogradOptions",
    "CollectivesOptions",
    "DdpOptions",
    "FailuresOptions",
    "Figure",
    "FormatsOptions",
    "GemmOptions",
    "Options",
    "Quantity",
    "ScalingOptions",
    "ScheduleOptions",
    "SpeedOptions",
    "check_program",
]

AnyOptions = Annotated[
    AutogradOptions
    | CollectivesOptions
    | DdpOptions
    | FailuresOptions
    | FormatsOptions
    | GemmOptions
    | ScalingOptions
    | ScheduleOptions
    | SpeedOptions,
    Field(discriminator="program"),
]

PROGRAMS: Mapping[str, type[Options]] = {
    kind.model_fields["program"].default: kind
    for kind in (
        AutogradOptions,
        CollectivesOptions,
        DdpOptions,
        FailuresOptions,
        FormatsOptions,
        GemmOptions,
        ScalingOptions,
        ScheduleOptions,
        SpeedOptions,
    )
}

# What a spec may say of any program; the rest is about training.
_COMMON = frozenset({"program", "mode", "device", "model", "options", "training.seed"})


def check_program(options: Options, data: Mapping[str, object], ranks: int) -> Iterator[Violation]:
    """What is wrong with a program's spec: `data` is what it sets, without what is the default anyway."""
    name = options.program
    allowed = _COMMON | ({f"parallel.{options.axis}"} if options.axis else set())
    if options.may_span_hosts:
        allowed |= {"hosts", "link.nodes", "link.bytes_per_second", "link.latency_seconds"}
    for field, value in _leaves(data):
        if field not in allowed and not field.startswith("options."):
            yield Violation(field, value, f"The program {name!r} has no use for this.", "leave it out")
    if options.axis and not options.fewest_ranks <= ranks <= MAX_WORLD_SIZE:
        message = f"The program {name!r} cannot run on {ranks} rank{'s' if ranks > 1 else ''}."
        yield Violation(f"parallel.{options.axis}", ranks, message, f"{options.fewest_ranks} to {MAX_WORLD_SIZE}")
    yield from options.check(ranks)


def _leaves(data: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        field = f"{prefix}{name}"
        if isinstance(value, Mapping) and field != "model":
            yield from _leaves(value, f"{field}.")
        else:
            yield field, value
