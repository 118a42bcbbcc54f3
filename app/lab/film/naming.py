"""What passes and collectives of a watched step are called, and which of them are one and the same on several ranks.

A rank's ledger does not know what a collective was for. The layout does: FSDP gathers its units in the order of the
model, a pipeline sends each forward's result on, and what is sent in the midst of a layer belongs to that layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.theory.lab_runs.held import stages_of
from app.theory.lab_runs.place import Place, shard_ranks, world
from labs.spec import RunSpec
from labs.spec.events import SpanEvent

_AXES = {
    "data": ("replicate", "shard", "context"),
    "shard": ("shard", "context"),
    "replicate": ("replicate",),
    "context": ("context",),
    "tensor": ("tensor",),
    "pipeline": ("pipeline",),
    "ends": ("pipeline",),  # the first and the last of them
    "world": ("pipeline", "replicate", "shard", "context", "tensor"),
}
_OPERATIONS = {
    "all_reduce": "All-reduce",
    "all_gather": "All-gather",
    "reduce_scatter": "Reduce-scatter",
    "broadcast": "Broadcast",
    "all_to_all": "All-to-all",
    "send": "Send",
}
_Layer = tuple[int, str, float, float]


@dataclass(frozen=True)
class Call:
    """A collective's name. Ranks in `members` share its `key`; of a message that is the sender alone."""

    key: str
    name: str
    members: tuple[int, ...]
    layer: int | None = None
    micro_batch: int | None = None


@dataclass(frozen=True)
class Names:
    """The calls of a rank in the order it made them, and its layers' passes: layer, F or B, start, end."""

    spec: RunSpec
    calls: tuple[Call, ...]
    layers: tuple[_Layer, ...]

    def of_pass(self, span: SpanEvent) -> str:
        what = {"F": "Forward", "B": "Backward", "W": "Weight gradients", "optimizer": "Optimizer step"}[span.what]
        chunks = self._has_chunks and span.stage is not None
        stage = f", stage {span.stage}" if chunks else ""
        return what + stage + ("" if span.micro_batch is None else f", micro-batch {span.micro_batch}")

    @property
    def _has_chunks(self) -> bool:
        options = self.spec.options
        return self.spec.parallel.virtual_stages > 1 or getattr(options, "virtual_stages", 1) > 1

    def of_layer(self, span: SpanEvent, layer: int, again: bool) -> str:
        what = "Forward again" if again else "Forward" if span.what == "F" else "Backward"
        return f"{what}, layer {layer}{self._micro_batch(span)}"

    def of_end(self, span: SpanEvent, place: str) -> str:
        what = {"F": "Forward", "B": "Backward"}.get(span.what, "")
        part = "head and loss" if (span.what == "F") == (place == "end") else "embedding"
        return f"{what}, {part}{self._micro_batch(span)}"

    def _micro_batch(self, span: SpanEvent) -> str:
        return f", micro-batch {span.micro_batch}" if self.spec.training.micro_batches > 1 else ""


def names_of(spec: RunSpec, rank: int, spans: Sequence[SpanEvent], layers: Sequence[_Layer]) -> Names:
    """`spans` of one rank in order of time, all times from the step's beginning."""
    calls = [each for each in spans if each.what == "communication"]
    found: list[Call] = []
    counted: Counter[tuple[str, str, str]] = Counter()
    totals = Counter(_kind(each) for each in calls)
    subjects = {kind: _subjects(spec, rank, kind, total, spans) for kind, total in totals.items()}
    for each in calls:
        kind = _kind(each)
        index = counted[kind]
        counted[kind] += 1
        members = _members(spec, rank, each)
        key = f"{each.operation}.{each.phase}.{each.group}.{index}.{members[0]}"
        known = subjects[kind]
        if known is not None:
            words, layer, batch = known[index]
            found.append(Call(key, words, members, layer, batch))
            continue
        layer = next((layer for layer, _, start, end in layers if start <= each.start <= end), None)
        found.append(Call(key, _plainly(each, layer, index, totals[kind]), members, layer))
    return Names(spec, tuple(found), tuple(layers))


def _kind(span: SpanEvent) -> tuple[str, str, str]:
    return span.operation or "", span.phase or "", span.group or ""


def _plainly(span: SpanEvent, layer: int | None, index: int, total: int) -> str:
    over = f" over {span.group}" if span.group else ""
    operation = _OPERATIONS.get(span.operation or "", "Collective")
    counted = f", {index + 1} of {total}" if total > 1 else ""
    if span.phase == "backward" and span.group in ("data", "world", "replicate"):
        return f"{operation} of gradients" + (f", bucket {index + 1} of {total}" if total > 1 else "")
    if span.phase == "optimizer" and span.operation in ("all_gather", "broadcast"):
        return f"{operation} of new weights{counted}"
    return f"{operation}{over}, layer {layer}" if layer is not None else f"{operation}{over}{counted}"


_Subject = tuple[str, int | None, int | None]  # name, layer, micro-batch


def _subjects(
    spec: RunSpec, rank: int, kind: tuple[str, str, str], total: int, spans: Sequence[SpanEvent]
) -> list[_Subject] | None:
    """What the calls of a kind are for, one after the other, where the layout says and their number agrees."""
    found = None
    if kind[0] == "send":
        found = list(_messages(spec, rank, kind[1], spans))
    elif spec.parallel.zero == 3 and spec.parallel.pipeline == 1 and kind[2] in ("data", "shard", "replicate"):
        found = list(_units(spec, kind[0], kind[1]))
    return found if found is not None and len(found) == total else None


def _units(spec: RunSpec, operation: str, phase: str) -> Iterator[_Subject]:
    """FSDP's units in the order they are gathered or reduced."""
    layers = list(range(spec.model.layers))
    down: list[int | None] = [*reversed(layers), None]
    order: list[int | None] = [None, *layers] if phase == "forward" else down
    if operation == "all_gather" and phase == "backward":
        order = [*reversed(layers)]
    named = {"all_gather": "All-gather", "reduce_scatter": "Reduce-scatter", "all_reduce": "All-reduce"}.get(operation)
    if named is None or shard_ranks(spec.parallel) == 1:
        return
    again = " again" if (operation, phase) == ("all_gather", "backward") else ""
    for batch in range(spec.training.micro_batches):
        for layer in order:
            unit = "embedding and head" if layer is None else f"layer {layer}"
            suffix = f", micro-batch {batch}" if spec.training.micro_batches > 1 else ""
            yield f"{named}, {unit}{again}{suffix}", layer, batch


def _messages(spec: RunSpec, rank: int, phase: str, spans: Sequence[SpanEvent]) -> Iterator[_Subject]:
    """A message for each pass whose result goes to another rank, in the order of the passes."""
    parallel = spec.parallel
    if parallel.pipeline == 1:
        return
    place = list(world(spec))[rank]
    mine = set(stages_of(spec, place))
    kind, by, last = ("F", 1, parallel.pipeline * parallel.virtual_stages - 1) if phase == "forward" else ("B", -1, 0)
    what = "Send activations" if phase == "forward" else "Send gradients"
    for each in spans:
        if each.what != kind or each.stage is None or each.stage == last or each.stage + by in mine:
            continue
        to = f"stage {each.stage + by}"
        yield f"{what} to {to}, micro-batch {each.micro_batch}", None, each.micro_batch


def _members(spec: RunSpec, rank: int, span: SpanEvent) -> tuple[int, ...]:
    """The ranks of the group, by the layout; the rank alone where it cannot be told, and of a message its sender."""
    axes = _AXES.get(span.group or "")
    places = list(world(spec))
    if span.operation == "send" or axes is None or rank >= len(places) or spec.options is not None:
        return (rank,)
    mine = _without(places[rank], axes)
    found = tuple(index for index, place in enumerate(places) if _without(place, axes) == mine)
    if span.group == "ends":
        found = (found[0], found[-1])
    return found if span.group_size in (None, len(found)) else (rank,)


def _without(place: Place, axes: Sequence[str]) -> tuple[int, ...]:
    return tuple(value for name, value in vars(place).items() if name not in axes)
