"""One step of a run as its layout has it: what is computed when, if nobody waits for anybody without need.

How long a pass and a transfer take is given; the order and what waits for what are the layout's own. Gradients are sent
while backward goes on, gathered weights are fetched one layer ahead, and what tensor, context and expert ranks send
belongs to the layer it is sent in. Source: Li et al. 2020 (DDP), section 3.2; Zhao et al. 2023 (FSDP), section 3.3; the
schedules of pipelines as `app.theory.pipeline` has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.theory.lab_runs.buckets import buckets
from app.theory.lab_runs.held import flat_buffers, held_tensors
from app.theory.lab_runs.place import Place, data_ranks, shard_ranks
from app.theory.pipeline import ChunkSeconds, Kind, Pass, order, simulate_pipeline
from app.theory.simulator.events import Span, Task, finish_seconds, simulate
from app.theory.state import LAYOUTS
from labs.spec import RunSpec
from labs.spec.events import StepPhase

# FSDP gathers on one stream and reduces on another
_COMPUTE, _GATHERING, _REDUCING = ("compute",), ("link", "gather"), ("link", "reduce")


@dataclass(frozen=True)
class Planned:
    """Work of a rank: a pass (F, B, W) or the optimizer's update; seconds from the step's start."""

    what: str
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class LayerSeconds:
    """Seconds of each layer forward and backward, of what is before the first and behind the last, of the update, and
    of the transfers of one micro-batch or step by operation and phase, in the order they are called."""

    forward: Sequence[float]
    backward: Sequence[float]
    embedding: float
    head: float
    head_backward: float
    embedding_backward: float
    optimizer: float
    transfers: Mapping[tuple[str, str], Sequence[float]]


def pipelined_step(
    schedule: str,
    stages: int,
    micro_batches: int,
    virtual_stages: int,
    seconds: Mapping[tuple[Kind, int], float],
    optimizer_seconds: float,
) -> tuple[tuple[Planned, ...], ...]:
    """For every rank along the pipeline its passes and its update. `seconds` are by kind of pass and chunk.

    Raises SpecError for a combination the schedule does not take.
    """
    passes = order(schedule, stages, micro_batches, virtual_stages)
    each = [
        ChunkSeconds(*(seconds.get((kind, chunk), 0.0) for kind in ("F", "B", "W")))
        for chunk in range(stages * virtual_stages)
    ]
    run = simulate_pipeline(passes, each)
    return tuple(
        (*_as_planned(mine, spans), *_updates(spans[-1].end_seconds, optimizer_seconds))
        for mine, spans in zip(passes, run.spans, strict=True)
    )


def _as_planned(passes: Sequence[Pass], spans: Sequence[Span]) -> Iterator[Planned]:
    for each, span in zip(passes, spans, strict=True):
        yield Planned(each.kind, span.start_seconds, span.end_seconds)


def _updates(start: float, seconds: float) -> Iterator[Planned]:
    if seconds:
        yield Planned("optimizer", start, start + seconds)


def layered_step(spec: RunSpec, seconds: LayerSeconds) -> tuple[tuple[Planned, ...], float]:
    """What every rank of a run without a pipeline computes in a step, and when the step is over."""
    tasks = list(_Step(spec, seconds).tasks())
    spans = simulate(tasks)
    done = tuple(
        Planned(task.name.split(" ")[0], span.start_seconds, span.end_seconds)
        for task, span in zip(tasks, spans, strict=True)
        if task.resource == _COMPUTE and task.seconds
    )
    return done, finish_seconds(spans)


class _Step:
    """The tasks of a step, in the order that compute and link take them up."""

    def __init__(self, spec: RunSpec, seconds: LayerSeconds) -> None:
        self.spec, self.seconds = spec, seconds
        self.layers = len(seconds.forward)
        self.gathers = spec.parallel.zero == 3 and shard_ranks(spec.parallel) > 1
        self.sent: list[str] = []  # what the update waits for

    def tasks(self) -> Iterator[Task]:
        last = self.spec.training.micro_batches - 1
        for batch in range(last + 1):
            yield from self._forward(batch)
            yield from self._backward(batch, batch == last)
        yield self._compute("optimizer", "", self.seconds.optimizer, *self.sent)
        for index, each in enumerate(self._transfer_seconds("all_gather", "optimizer")):
            yield Task(f"gather {index}", _GATHERING, each, ("optimizer ",))

    def _forward(self, batch: int) -> Iterator[Task]:
        if self.gathers:
            yield from self._gathers(batch, "forward", ["root", *map(str, range(self.layers))])
        root = (f"gather forward {batch} root",) if self.gathers else ()
        yield self._compute("F", f"{batch} embedding", self.seconds.embedding, *root)
        for layer, each in enumerate(self.seconds.forward):
            needs = (f"gather forward {batch} {layer}",) if self.gathers else ()
            yield self._compute("F", f"{batch} {layer}", each, *needs)
        yield self._compute("F", f"{batch} head", self.seconds.head)

    def _backward(self, batch: int, is_last: bool) -> Iterator[Task]:
        again = self.gathers and self.spec.training.reshard_after_forward
        names = [str(layer) for layer in reversed(range(self.layers))]
        if again:
            yield from self._gathers(batch, "backward", names)
        yield self._compute("B", f"{batch} head", self.seconds.head_backward)
        for name in names:
            needs = (f"gather backward {batch} {name}",) if again else ()
            yield self._compute("B", f"{batch} {name}", self.seconds.backward[int(name)], *needs)
        yield self._compute("B", f"{batch} embedding", self.seconds.embedding_backward)
        yield from self._reduces(batch, is_last, names)

    def _gathers(self, batch: int, phase: StepPhase, names: Sequence[str]) -> Iterator[Task]:
        """Of each unit when the one two before it is computed: one is fetched ahead."""
        kind = "F" if phase == "forward" else "B"
        before = {"forward": ["embedding", *names[1:]], "backward": ["head", *names]}[phase]
        for index, (name, each) in enumerate(zip(names, self._of_units("all_gather", phase, names), strict=True)):
            ahead = index - 2 if phase == "forward" else index - 1
            after = (f"{kind} {batch} {before[ahead]}",) if ahead >= 0 else self._begun(phase, batch)
            yield Task(f"gather {phase} {batch} {name}", _GATHERING, each, after)

    def _begun(self, phase: StepPhase, batch: int) -> tuple[str, ...]:
        if phase == "backward":
            return (f"F {batch} {self.layers - 1}",)
        return (f"B {batch - 1} embedding",) if batch else ()

    def _reduces(self, batch: int, is_last: bool, names: Sequence[str]) -> Iterator[Task]:
        """Gradients, each unit's or bucket's as soon as they are there."""
        if self.gathers:
            ready = [*names, "embedding"]
            sizes = self._of_units("reduce_scatter", "backward", ready)
        elif is_last or self.spec.parallel.zero == 2:
            ready, sizes = self._buckets()
        else:
            return
        for index, (unit, each) in enumerate(zip(ready, sizes, strict=True)):
            name = f"reduce {batch} {index}"
            self.sent.append(name)
            yield Task(name, _REDUCING, each, (f"B {batch} {unit}",))

    def _buckets(self) -> tuple[list[str], list[float]]:
        """What backward has done when each bucket is full, and how long its transfer takes."""
        spec = self.spec
        if data_ranks(spec.parallel) == 1:
            return [], []
        held = held_tensors(spec, Place())
        gradient = LAYOUTS[spec.training.state_layout].gradients
        cut = spec.parallel.zero in (1, 2) and spec.training.zero_implementation != "ZeroRedundancyOptimizer"
        full = flat_buffers(spec, held) if cut else list(buckets(held, gradient, spec.training.bucket_bytes))
        operation = "reduce_scatter" if cut else "all_reduce"
        seconds = self._transfer_seconds(operation, "backward")
        ready = [_last_of(tensor.layer for tensor in bucket) for bucket in full]
        return ready, [seconds[index % len(seconds)] if seconds else 0.0 for index in range(len(ready))]

    def _of_units(self, operation: str, phase: StepPhase, names: Sequence[str]) -> list[float]:
        found = self._transfer_seconds(operation, phase)
        return [found[index % len(found)] if found else 0.0 for index in range(len(names))]

    def _transfer_seconds(self, operation: str, phase: StepPhase) -> Sequence[float]:
        return self.seconds.transfers.get((operation, phase), ())

    def _compute(self, what: str, name: str, seconds: float, *after: str) -> Task:
        return Task(f"{what} {name}", _COMPUTE, seconds, after)


def _last_of(layers: Iterator[int | None]) -> str:
    """Backward reaches the lowest layer last, and what is in none behind it."""
    found = list(layers)
    known = [layer for layer in found if layer is not None]
    return "embedding" if len(known) < len(found) else str(min(known))
