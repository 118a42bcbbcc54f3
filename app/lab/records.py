"""What a run's row keeps as JSON, read and written in one place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from labs.spec.events import killed_on_purpose

if TYPE_CHECKING:  # a worker, which writes failures and results, needs no theory
    from app.theory.lab_runs import Point, Transfer
    from labs.spec import Fault
    from labs.spec.events import Component


@dataclass(frozen=True)
class TrainingTheory:
    """What theory expects of a training run. Bytes are those of the rank with most of them, each kind by itself, as
    they are measured; transfers are rank 0's. Activations are None where theory does not know them."""

    parameters: int
    state_layout: str
    model_state_bytes: float
    model_state: Mapping[str, float]  # by what it holds
    optimizer_bytes: float
    payload_bytes_per_step: float
    wire_bytes_per_step: float
    transfers: tuple[Transfer, ...]
    activation_bytes: float | None
    bytes_between_hosts: float | None = None  # that the busiest host sends in a step
    step_seconds: float | None = None  # at least: what the link between hosts alone takes

    def to_json(self) -> dict[str, Any]:
        return _known(asdict(self) | {"transfers": [asdict(each) for each in self.transfers]})


@dataclass(frozen=True)
class ProgramTheory:
    """What theory expects of a program: points in its figures, and its quantities by name."""

    points: tuple[Point, ...]
    quantities: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return {"points": [asdict(point) for point in self.points], **self.quantities}


@dataclass(frozen=True)
class Held:
    """What the rank holds that holds most: averages would hide it."""

    rank: int
    total_bytes: int
    components: Mapping[Component, int]  # bytes


@dataclass(frozen=True)
class TrainingResult:
    """What a training run found: rank 0's word for all of it, and the figures of the rank that is worst off.

    None is what no probe measured, or nobody knows of the device.
    """

    steps: int
    first_loss: float | None
    final_loss: float | None
    tokens_per_second: float
    step_seconds: float
    mfu: float | None
    peak_flops_per_second: float | None
    backend: str
    device: str
    device_name: str
    state_layout: str
    world_size: int
    payload_bytes_per_step: int
    wire_bytes_per_step: int
    model_state: Held | None
    peak: Held | None
    optimizer_bytes: int | None
    activation_bytes: int | None
    device_peak_bytes: int | None = None  # by the GPU allocator's count
    operations: Mapping[str, float] | None = None  # seconds of rank 0's watched steps in the middle, by kind
    waiting_seconds: float | None = None  # of rank 0's typical step, in which it had no core

    def to_json(self) -> dict[str, Any]:
        """Flat, as quantities are looked up by name; what was not measured is missing."""
        found = {name: value for name, value in vars(self).items() if name not in ("model_state", "peak")}
        for name in ("optimizer_bytes", "activation_bytes", "device_peak_bytes", "operations", "waiting_seconds"):
            if found[name] is None:
                del found[name]
        for name, held in (("model_state", self.model_state), ("peak", self.peak)):
            if held is not None:
                found |= {f"{name}_bytes": held.total_bytes, name: dict(held.components), f"{name}_rank": held.rank}
        return found


def _known(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}


@dataclass(frozen=True)
class RunFailure:
    """Why a run failed: a named cause and a sentence, the rank and step where that is known, and the last `lines` of
    rank `lines_rank` (of torchrun itself where that is None)."""

    cause: str
    message: str
    rank: int | None = None
    step: int | None = None
    lines: tuple[str, ...] = ()
    lines_rank: int | None = None

    def to_json(self) -> dict[str, JsonValue]:
        return asdict(self) | {"lines": list(self.lines)}

    def of_run(self, faults: Iterable[Fault]) -> RunFailure:
        """The same in today's words where the run asked for it, whichever release stored it."""
        own = self.lines if self.rank is not None and self.lines_rank == self.rank else ()
        planned = None if self.rank is None else killed_as_asked(self.rank, faults, own)
        return replace(self, cause=planned[0], message=planned[1]) if planned else self

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> RunFailure:
        """From a row's JSON: an older one may lack fields."""
        return cls(
            str(record.get("cause", "failed")),
            str(record.get("message", "The run failed")),
            record.get("rank"),
            record.get("step"),
            tuple(record.get("lines", ())),
            record.get("lines_rank"),
        )


def killed_as_asked(rank: int, faults: Iterable[Fault], lines: Collection[str]) -> tuple[str, str] | None:
    """Cause and message of a rank that killed itself because its run asked for it, by its `lines`; else None."""
    for fault in faults:
        if fault.kind == "kill" and fault.rank == rank and killed_on_purpose(rank, fault.step) in lines:
            return "killed", f"Rank {rank} was killed at step {fault.step}, as this run asked."
    return None


@dataclass(frozen=True)
class Prediction:
    """What was predicted of a quantity: as it was typed, in base units, and within which factor it was said to hold."""

    text: str
    value: float
    within: float | None

    def to_json(self) -> dict[str, JsonValue]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Prediction:
        """From a row's JSON: an older one may lack how sure it was."""
        return cls(record["text"], record["value"], record.get("within"))
