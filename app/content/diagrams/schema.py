"""The fields of a diagram in a content file, one record a kind, told apart by `kind`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from labs.spec import SCHEDULE_RULES, Schedule, Strict, schedule_violations

MAX_GPUS = 128  # of a mesh: more could not be told apart


def _as_expression(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _all_different(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) != len(values):
        raise ValueError("one of these is there twice")
    return values


Title = Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=300, strip_whitespace=True)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True)]
Words = Annotated[str, StringConstraints(min_length=1, max_length=160, strip_whitespace=True)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=40, strip_whitespace=True)]
Expression = Annotated[str, BeforeValidator(_as_expression), StringConstraints(min_length=1, max_length=400)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_0-9]*$", max_length=40)]
FormatName = Literal["fp32", "tf32", "bf16", "fp16", "e5m2", "e4m3"]
Tone = Literal["compute", "communication", "idle", "memory"]


class _Diagram(Strict):
    """What every diagram has: a title and, in one sentence, what the picture shows."""

    title: Title
    finding: Sentence


class Shards(_Diagram):
    """Which rank holds which part of parameters, gradients and optimizer under a ZeRO stage."""

    kind: Literal["shards"]
    ranks: Annotated[int, Field(ge=2, le=8)]
    stage: Annotated[int, Field(ge=0, le=3)]


class Ring(_Diagram):
    """A ring all-reduce after `step` steps of one of its halves; step 0 is how that half begins."""

    kind: Literal["ring"]
    ranks: Annotated[int, Field(ge=3, le=8)]
    phase: Literal["reduce-scatter", "all-gather"]
    step: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _step_is_there(self) -> Ring:
        if self.step >= self.ranks:
            raise ValueError(f"{self.ranks} ranks are done after {self.ranks - 1} steps: step is 0 to {self.ranks - 1}")
        return self


class Collective(_Diagram):
    """What every rank holds before and after a collective."""

    kind: Literal["collective"]
    operation: Literal["all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all"]
    ranks: Annotated[int, Field(ge=2, le=6)]


class DoubleTree(_Diagram):
    """The two binary trees of a tree all-reduce."""

    kind: Literal["tree"]
    ranks: Annotated[int, Field(ge=4, le=16)]


class Pipeline(_Diagram):
    """One step of a pipeline, as simulated: a backward takes two forwards, a weight gradient one."""

    kind: Literal["pipeline"]
    schedule: Schedule
    stages: Annotated[int, Field(ge=2, le=8)]
    micro_batches: Annotated[int, Field(ge=2, le=16)]
    virtual_stages: Annotated[int | None, Field(ge=1, le=4)] = None

    @property
    def chunks(self) -> int:
        """Chunks a rank holds; where not given, the fewest the schedule takes."""
        return self.virtual_stages or SCHEDULE_RULES[self.schedule].least_virtual_stages

    @model_validator(mode="after")
    def _schedule_takes_it(self) -> Pipeline:
        wrong = schedule_violations(self.schedule, self.stages, self.micro_batches, self.chunks)
        if wrong:
            raise ValueError("; ".join(map(str, wrong)))
        return self


class MeshOfRanks(_Diagram):
    """Ranks on nodes, and which of them talk to rank 0 along each axis."""

    kind: Literal["mesh"]
    tensor: Annotated[int, Field(ge=1, le=16)]
    pipeline: Annotated[int, Field(ge=1, le=16)]
    data: Annotated[int, Field(ge=1, le=64)]
    gpus_per_node: Literal[4, 8] = 8

    @model_validator(mode="after")
    def _can_be_drawn(self) -> MeshOfRanks:
        gpus = self.tensor * self.pipeline * self.data
        if not 2 <= gpus <= MAX_GPUS or ceil(gpus / self.gpus_per_node) > MAX_GPUS / 8:
            raise ValueError(f"{gpus} GPUs: a picture takes 2 to {MAX_GPUS}, on at most {MAX_GPUS // 8} nodes")
        return self


class TensorParallel(_Diagram):
    """How one block's weights are cut over tensor ranks, and where they must talk."""

    kind: Literal["tensor-parallel"]
    ranks: Annotated[int, Field(ge=2, le=4)]
    block: Literal["mlp", "attention"]
    sequence_parallel: bool = False


class Bits(_Diagram):
    """The bits of number formats side by side."""

    kind: Literal["bits"]
    formats: Annotated[tuple[FormatName, ...], Field(min_length=1, max_length=6), AfterValidator(_all_different)]


class OverlapSpan(Strict):
    """Work on a lane; `start` and `end` are numbers or expressions in the unit `axis` names."""

    label: Label
    start: Expression
    end: Expression
    tone: Tone


class Lane(Strict):
    """One thing that does one piece of work at a time: a stream, a link, a rank."""

    label: Label
    spans: Annotated[tuple[OverlapSpan, ...], Field(min_length=1, max_length=40)]


class Overlap(_Diagram):
    """Lanes of work over a common time axis."""

    kind: Literal["overlap"]
    axis: Label = "time"
    lanes: Annotated[tuple[Lane, ...], Field(min_length=1, max_length=8)]


class XAxis(Strict):
    """What runs along a curve's x axis; expressions know it as `name`."""

    name: Name
    label: Label
    start: Annotated[float, Field(alias="from", allow_inf_nan=False)]
    end: Annotated[float, Field(alias="to", allow_inf_nan=False)]
    log: bool = False

    @model_validator(mode="after")
    def _runs_upwards(self) -> XAxis:
        if self.end <= self.start:
            raise ValueError("`to` must be more than `from`")
        if self.log and self.start <= 0:
            raise ValueError("a log axis begins above 0")
        return self


class Series(Strict):
    """One curve: `y` is an expression in the x axis' name."""

    label: Label
    y: Expression


class Curve(_Diagram):
    """Formulas over one of their inputs."""

    kind: Literal["curve"]
    x: XAxis
    series: Annotated[tuple[Series, ...], Field(min_length=1, max_length=4)]
    y_label: Label
    y_log: bool = False


def _yes_and_no(value: Any) -> Any:
    """YAML reads the keys yes and no as true and false."""
    if not isinstance(value, Mapping):
        return value
    return {{True: "yes", False: "no"}.get(key, key) if isinstance(key, bool) else key: v for key, v in value.items()}


class Question(Strict):
    """A question of a decision; `yes` and `no` name the node or leaf that follows."""

    id: Key
    ask: Words
    yes: Key
    no: Key


class Leaf(Strict):
    """Where a decision ends."""

    id: Key
    text: Words


class Decision(_Diagram):
    """Questions from the first node down to leaves."""

    kind: Literal["decision"]
    nodes: Annotated[tuple[Annotated[Question, BeforeValidator(_yes_and_no)], ...], Field(min_length=1, max_length=12)]
    leaves: Annotated[tuple[Leaf, ...], Field(min_length=2, max_length=14)]

    @model_validator(mode="after")
    def _leads_from_the_first_node_to_leaves(self) -> Decision:
        ids = [node.id for node in self.nodes] + [leaf.id for leaf in self.leaves]
        wrong = [f"there are two with id {each!r}" for each in sorted({e for e in ids if ids.count(e) > 1})]
        asked = {node.id: (node.yes, node.no) for node in self.nodes}
        for node, targets in asked.items():
            wrong += [f"{node} leads to {each!r}, no node or leaf" for each in targets if each not in ids]
        if not wrong:
            reached = set(_reached(self.nodes[0].id, asked, ()))
            wrong = [f"nothing leads from {ids[0]} to {each}" for each in ids if each not in reached]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self


def _reached(start: str, asked: Mapping[str, Sequence[str]], above: tuple[str, ...]) -> Iterator[str]:
    """Everything below `start` and itself. Raises ValueError where a question leads back to itself."""
    if start in above:
        raise ValueError(f"{start} leads back to itself")
    yield start
    for target in asked.get(start, ()):
        yield from _reached(target, asked, (*above, start))


Diagram = Annotated[
    Shards
    | Ring
    | Collective
    | DoubleTree
    | Pipeline
    | MeshOfRanks
    | TensorParallel
    | Bits
    | Overlap
    | Curve
    | Decision,
    Field(discriminator="kind"),
]
