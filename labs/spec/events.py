"""The events of a run: the only definition of what ranks report, workers check, and pages show.

One JSON object each, told apart by `kind`. Ranks build them as plain dataclasses, unchecked, because they build many;
whoever reads them has them checked (`read_event`, `read_events`). On the wire a number that JSON cannot write (NaN, the
infinities) is null, and what is optional and not there has no key.

Torch-free, so that the first event is out before torch is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag, TypeAdapter, ValidationError

RunPhase = Literal["queued", "starting", "ready", "running", "checkpoint", "finished", "failed", "cancelled"]
StepPhase = Literal["forward", "backward", "optimizer"]
Pass = Literal["F", "B", "W"]  # forward, backward (without weight gradients where W follows), weight gradients
Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send"]
Component = Literal["parameters", "gradients", "optimizer", "activations", "temporary"]
# `activation_peak`: when activations were largest; `peak`: when everything together was.
Moment = Literal["forward_start", "backward_start", "backward_end", "step_end", "activation_peak", "peak"]
Stream = Literal["stdout", "stderr"]

NUL = rb"\u0000"  # as JSON writes the character that ends a string in C: no database keeps it
STARTS_AGAIN = "starting the ranks again"  # so begins what rank 0 is doing when torchrun has restarted all


def killed_on_purpose(rank: int, step: int) -> str:
    """What a rank logs last where its run asks that it be killed."""
    return f"fault on purpose: rank {rank} kills itself before step {step}"


StepNumber = Annotated[int, Field(ge=0, lt=2**31)]  # what a database column holds
Bytes = dict[Component | Literal["total"], int]  # what a rank holds, by component

_FINITE = ConfigDict(allow_inf_nan=False, ser_json_inf_nan="null")


def _is_absent(value: object) -> bool:
    return value is None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a rank gave up."""

    cause: str
    message: str


@dataclass(frozen=True, slots=True)
class Split:
    """Seconds of a probed step by what rank 0 did. `communication` is how long anything was under way, beside the rest
    or not."""

    forward: float
    backward: float
    optimizer: float
    idle: float
    communication: float


@dataclass(frozen=True, slots=True)
class Collectives:
    """All collectives of one operation, phase and group in a step of a rank.

    `payload_bytes` is the tensors handed over, `wire_bytes` what the rank sends for them around a ring; `seconds` adds
    up from each call until its result is there.
    """

    operation: Operation
    phase: StepPhase
    group: str
    group_size: int
    count: int
    payload_bytes: int
    wire_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Held:
    """Memory a collective filled or sent from, as one component: how much, and from when to when (seconds like `t`) of
    its step. With no end it outlived the step."""

    component: Component
    bytes: int
    start: float
    end: float | None


@dataclass(frozen=True, slots=True)
class LayerPass:
    """One layer's part of a pass, seconds like `t`. A forward inside of a backward is one that is computed again."""

    layer: int
    what: Literal["F", "B"]
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Circumstances:
    """With how many others, and on what, a rank has worked."""

    world_size: int
    backend: str
    device: str
    device_name: str


@dataclass(frozen=True, slots=True)
class OperationSeconds:
    """What the operations of a rank's watched steps took themselves, in the middle, without the calls in between."""

    products: float
    others: float
    optimizer: float


@dataclass(frozen=True, slots=True)
class TrainingSummary(Circumstances):
    """What a rank found of a whole training run. Null: its probe was off, or nobody knows it on this device."""

    steps: int
    first_loss: float | None
    final_loss: float | None
    tokens_per_second: float  # of all ranks, in the median step without probes
    model_flops_per_second: float
    peak_flops_per_second: float | None
    mfu: float | None
    parameters: int
    state_layout: str
    model_state_bytes: Bytes | None
    peak_bytes: Bytes | None
    activation_bytes: int | None
    payload_bytes_per_step: int | None
    wire_bytes_per_step: int | None
    collectives: list[Collectives] | None
    device_peak_bytes: int | None
    operations: Annotated[OperationSeconds | None, Field(exclude_if=_is_absent)] = None
    waiting_seconds: Annotated[float | None, Field(exclude_if=_is_absent)] = None  # of the median step without probes


# What a rank of a program found: `program`, the circumstances a training's summary has, and its quantities by name.
ProgramSummary = dict[str, JsonValue]


def _kind_of_summary(summary: object) -> str:
    return "program" if isinstance(summary, dict) and "program" in summary else "training"


Summary = Annotated[
    Annotated[TrainingSummary, Tag("training")] | Annotated[ProgramSummary, Tag("program")],
    Discriminator(_kind_of_summary),
]


@dataclass(frozen=True, slots=True)
class Stamped:
    """What every event has: `t` in seconds since the run started, and the rank that speaks."""

    __pydantic_config__: ClassVar[ConfigDict] = _FINITE

    t: float
    rank: int


@dataclass(frozen=True, slots=True)
class PhaseEvent(Stamped):
    """Where the run stands: rank 0 speaks for all, but any rank says that it `failed`, with why in `detail`. `doing` is
    what takes the time until the first step, in words."""

    kind: Literal["phase"] = field(default="phase", kw_only=True)
    phase: RunPhase
    detail: Annotated[Failure | None, Field(exclude_if=_is_absent)] = None
    doing: Annotated[str | None, Field(exclude_if=_is_absent)] = None


@dataclass(frozen=True, slots=True)
class HostEvent(Stamped):
    """Which host the rank sits on, of a run over several."""

    kind: Literal["host"] = field(default="host", kw_only=True)
    host: Annotated[str, Field(max_length=200)]


@dataclass(frozen=True, slots=True)
class StepEvent(Stamped):
    """A step of the run, from rank 0. `step` counts from 1; `loss` is the mean over the global batch in nats a token;
    `seconds` and `tokens_per_second` of a `probed` step contain the probes."""

    kind: Literal["step"] = field(default="step", kw_only=True)
    step: StepNumber
    loss: float | None
    tokens: int
    seconds: float
    tokens_per_second: float
    probed: bool
    split: Annotated[Split | None, Field(exclude_if=_is_absent)] = None


@dataclass(frozen=True, slots=True)
class MemoryEvent(Stamped):
    """What the rank held at a moment of a probed step. Of a `peak`, `during` is the phase it was reached in."""

    kind: Literal["memory"] = field(default="memory", kw_only=True)
    step: StepNumber
    at: Moment
    bytes: Bytes
    during: Annotated[str | None, Field(exclude_if=_is_absent)] = None


@dataclass(frozen=True, slots=True)
class CommunicationEvent(Stamped):
    """The rank's collectives of one kind in a probed step, as `Collectives` has them."""

    kind: Literal["communication"] = field(default="communication", kw_only=True)
    step: StepNumber
    operation: Operation
    phase: StepPhase
    group: str
    group_size: int
    count: int
    payload_bytes: int
    wire_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class MeasurementEvent(Stamped):
    """A number: of a strategy about itself after step `x`, or a point of series `name` in a program's `figure`."""

    kind: Literal["measurement"] = field(default="measurement", kw_only=True)
    name: str
    x: float | None
    y: float | None
    unit: str
    figure: Annotated[str | None, Field(exclude_if=_is_absent)] = None


@dataclass(frozen=True, slots=True)
class SpanEvent(Stamped):
    """What the rank did from `start` to `end` (seconds like `t`).

    A pass of a micro-batch through a stage, the optimizer's update, waiting (`idle`), or one collective or message
    (`communication`): this has no stage and no micro-batch, and says its operation, phase, group and bytes instead, and
    where memory is watched which of it was `held` for it.
    """

    kind: Literal["span"] = field(default="span", kw_only=True)
    step: StepNumber
    what: Pass | Literal["idle", "optimizer", "communication"]
    stage: int | None
    micro_batch: int | None
    start: float
    end: float
    operation: Annotated[Operation | None, Field(exclude_if=_is_absent)] = None
    group: Annotated[str | None, Field(exclude_if=_is_absent)] = None
    payload_bytes: Annotated[int | None, Field(exclude_if=_is_absent)] = None
    phase: Annotated[StepPhase | None, Field(exclude_if=_is_absent)] = None
    group_size: Annotated[int | None, Field(exclude_if=_is_absent)] = None
    wire_bytes: Annotated[int | None, Field(exclude_if=_is_absent)] = None
    held: Annotated[list[Held] | None, Field(exclude_if=_is_absent)] = None


@dataclass(frozen=True, slots=True)
class DetailEvent(Stamped):
    """What a rank's spans of a step are made of, and what it held meanwhile.

    `layers` are the passes of single layers, `waits` from when to when it stood still for a collective, and `memory`
    the bytes of each component from each moment of `at` on. Times are seconds like `t`. `memory` is thinned: no change
    of `finest_bytes` or more is missing, and the largest total is in it.
    """

    kind: Literal["detail"] = field(default="detail", kw_only=True)
    step: StepNumber
    start: float
    end: float
    layers: list[LayerPass]
    waits: list[list[float]]
    at: list[float]
    memory: dict[Component, list[int]]
    finest_bytes: int


@dataclass(frozen=True, slots=True)
class LogEvent(Stamped):
    """A line for the run's log."""

    kind: Literal["log"] = field(default="log", kw_only=True)
    stream: Stream
    line: str


@dataclass(frozen=True, slots=True)
class ResultEvent(Stamped):
    """What the rank found, at the end."""

    kind: Literal["result"] = field(default="result", kw_only=True)
    summary: Summary


Event = (
    PhaseEvent
    | HostEvent
    | StepEvent
    | MemoryEvent
    | CommunicationEvent
    | MeasurementEvent
    | SpanEvent
    | DetailEvent
    | LogEvent
    | ResultEvent
)

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Discriminator("kind")])


def read_event(line: bytes | str) -> Event:
    """The event on a line of a rank's file. Raises ValueError, such as pydantic's, with what is wrong."""
    if NUL in (line.encode() if isinstance(line, str) else line):
        raise ValueError("a line of events has a NUL character")
    return _EVENT.validate_json(line, strict=True)


def read_events(records: Iterable[JsonValue]) -> list[Event]:
    """The events among JSON data that was stored. What another release wrote and this one cannot read is left out."""
    return [event for record in records if (event := _read(record)) is not None]


def _read(record: JsonValue) -> Event | None:
    try:
        return _EVENT.validate_python(record)
    except ValidationError:
        return None


def event_line(event: Event) -> bytes:
    """The event as a line of a rank's file has it, without the line's end."""
    return _EVENT.dump_json(event)


def to_json(event: Event) -> dict[str, JsonValue]:
    """The event as JSON data, to be stored."""
    record: dict[str, JsonValue] = _EVENT.dump_python(event, mode="json")
    return record


def json_schema() -> dict[str, JsonValue]:
    """Of an event, for those who read them in another language."""
    schema: dict[str, JsonValue] = _EVENT.json_schema()
    return schema
