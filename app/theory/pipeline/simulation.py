"""A pipeline schedule played out: when every pass runs, how long the step takes, and who idles.

Unequal chunks, slow ranks, slow links and any order of passes are allowed; closed forms exist for equal stages only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from app.theory.pipeline.passes import Order, Pass, peak_in_flight, split_backwards
from app.theory.simulator.checks import check, counted_as, not_negative, positive
from app.theory.simulator.events import Span, Task, finish_seconds, simulate
from labs.spec import SpecError, Violation

LinkSeconds = float | Mapping[tuple[int, int], float]  # of every link, or by (from rank, to rank); not named: 0


@dataclass(frozen=True)
class ChunkSeconds:
    """How long one micro-batch takes in one chunk. The whole backward is both gradients, one after the other."""

    forward_seconds: float
    input_gradient_seconds: float
    weight_gradient_seconds: float


@dataclass(frozen=True)
class PipelineRun:
    """A step as it was played. `spans[rank]` follows the rank's order; transfers and tails come in between and after.

    A rank is busy while a pass runs on it; everything else until the step's end is idle, its tail included.
    `peak_in_flight` counts chunks of one micro-batch and keeps a split backward's activations until its weight
    gradient has run.
    """

    step_seconds: float
    idle_fraction: float
    busy_seconds: tuple[float, ...]
    peak_in_flight: tuple[float, ...]
    spans: tuple[tuple[Span, ...], ...]
    transfers: tuple[Span, ...]
    tails: tuple[Span, ...]


def simulate_pipeline(
    order: Order,
    seconds: Sequence[ChunkSeconds],
    transfer_seconds: LinkSeconds = 0.0,
    slow_down: Sequence[float] | None = None,
    tail_seconds: Sequence[float] | None = None,
) -> PipelineRun:
    """Play `order` with the times of every chunk along the model.

    `transfer_seconds`: activations or their gradients on the way to another rank; they occupy the link, one direction
    of it, not the ranks. `slow_down`: a factor on all passes of a rank, 1.5 for one that takes half as long again.
    `tail_seconds`: what a rank still does after its last pass, such as a gradient all-reduce that is not hidden.
    Raises SpecError for an order that needs what no pass makes, has a pass twice or a chunk on two ranks, or cannot
    finish; and for times out of range.
    """
    slow_down = [1.0] * len(order) if slow_down is None else slow_down
    tail_seconds = [0.0] * len(order) if tail_seconds is None else tail_seconds
    _check_times(order, seconds, transfer_seconds, slow_down, tail_seconds)
    line = _Line(_ranks_of_chunks(order, seconds), transfer_seconds)
    compute = [
        [
            line.task(each, rank, factor * duration)
            for each, duration in zip(passes, _durations(passes, seconds), strict=True)
        ]
        for rank, (passes, factor) in enumerate(zip(order, slow_down, strict=True))
    ]
    transfers = [
        transfer
        for rank, passes in enumerate(order)
        for each in passes
        if (transfer := line.transfer(each, rank)) is not None
    ]
    tails = [_tail(rank, passes, tail_seconds[rank]) for rank, passes in enumerate(order) if tail_seconds[rank]]
    spans = iter(simulate([*chain.from_iterable(compute), *transfers, *tails], "order"))
    return _run(
        order,
        busy_seconds=tuple(sum(task.seconds for task in tasks) for tasks in compute),
        spans=tuple(tuple(islice(spans, len(tasks))) for tasks in compute),
        transfers=tuple(islice(spans, len(transfers))),
        tails=tuple(spans),
    )


def _run(
    order: Order,
    busy_seconds: tuple[float, ...],
    spans: tuple[tuple[Span, ...], ...],
    transfers: tuple[Span, ...],
    tails: tuple[Span, ...],
) -> PipelineRun:
    step_seconds = finish_seconds(chain(*spans, transfers, tails))
    total_seconds = len(order) * step_seconds
    idle_fraction = 1 - sum(busy_seconds) / total_seconds if total_seconds else 0.0
    # rounding may leave a full pipeline a hair below nothing
    return PipelineRun(
        step_seconds, max(0.0, idle_fraction), busy_seconds, peak_in_flight(order), spans, transfers, tails
    )


_GOES_TO = {"F": 1, "B": -1}  # the chunk that takes up a result, counted from its own; a weight gradient stays
_FOLLOWS = {"B": "F", "W": "B"}  # in the same chunk


class _Line:
    """The chunks along the model, the rank of each, and how long a result takes to the chunk that needs it."""

    def __init__(self, rank_of: Mapping[int, int], transfer_seconds: LinkSeconds) -> None:
        self.rank_of = rank_of
        self.seconds = {
            (source, target): _link_seconds(transfer_seconds, rank_of[source], rank_of[target])
            for source in rank_of
            for target in (source - 1, source + 1)
            if target in rank_of
        }

    def task(self, one: Pass, rank: int, seconds: float) -> Task:
        after = []
        if one.kind in _FOLLOWS:
            after.append(f"{one.chunk}{_FOLLOWS[one.kind]}{one.micro_batch}")
        source = one.chunk - _GOES_TO.get(one.kind, 0)
        on_the_way_seconds = self.seconds.get((source, one.chunk))
        if on_the_way_seconds is not None:
            result = f"{source}{one.kind}{one.micro_batch}"
            after.append(f"{result}→{rank}" if on_the_way_seconds else result)
        return Task(str(one), ("compute", rank), seconds, tuple(after))

    def transfer(self, one: Pass, rank: int) -> Task | None:
        """The way of its result to the rank that needs it; None where that takes no time."""
        target = one.chunk + _GOES_TO.get(one.kind, 0)
        seconds = self.seconds.get((one.chunk, target))
        if not seconds:
            return None
        other = self.rank_of[target]
        return Task(f"{one}→{other}", ("link", rank, other), seconds, (str(one),))


def _link_seconds(transfer_seconds: LinkSeconds, source: int, target: int) -> float:
    if source == target:
        return 0.0
    return transfer_seconds.get((source, target), 0.0) if isinstance(transfer_seconds, Mapping) else transfer_seconds


def _durations(passes: Sequence[Pass], seconds: Sequence[ChunkSeconds]) -> Iterator[float]:
    split = split_backwards(passes)
    for each in passes:
        chunk = seconds[each.chunk]
        if each.kind == "F":
            yield chunk.forward_seconds
        elif each.kind == "W":
            yield chunk.weight_gradient_seconds
        elif (each.chunk, each.micro_batch) in split:
            yield chunk.input_gradient_seconds
        else:
            yield chunk.input_gradient_seconds + chunk.weight_gradient_seconds


def _tail(rank: int, passes: Sequence[Pass], seconds: float) -> Task:
    return Task(f"tail of rank {rank}", ("tail", rank), seconds, (str(passes[-1]),) if passes else ())


def _check_times(
    order: Order,
    seconds: Sequence[ChunkSeconds],
    transfer_seconds: LinkSeconds,
    slow_down: Sequence[float],
    tail_seconds: Sequence[float],
) -> None:
    links = transfer_seconds if isinstance(transfer_seconds, Mapping) else {(): transfer_seconds}
    check(
        counted_as("slow_down", slow_down, len(order), "ranks"),
        counted_as("tail_seconds", tail_seconds, len(order), "ranks"),
        *(positive("slow_down", factor) for factor in slow_down),
        *(not_negative("tail_seconds", value) for value in tail_seconds),
        *(not_negative("transfer_seconds", value) for value in links.values()),
        *(not_negative(f"seconds.{name}", value) for chunk in seconds for name, value in vars(chunk).items()),
    )


def _ranks_of_chunks(order: Order, seconds: Sequence[ChunkSeconds]) -> dict[int, int]:
    """The rank every chunk lies on. Raises SpecError for a chunk on two ranks, and for missing or superfluous times."""
    rank_of: dict[int, int] = {}
    for rank, passes in enumerate(order):
        for each in passes:
            if rank_of.setdefault(each.chunk, rank) != rank:
                message = f"Chunk {each.chunk} is on ranks {rank_of[each.chunk]} and {rank}."
                raise SpecError([Violation("order", str(each), message, "every chunk on one rank")])
    if set(rank_of) != set(range(len(seconds))):
        message = f"These are times of {len(seconds)} chunks; the order has chunks {sorted(rank_of)}."
        raise SpecError([Violation("seconds", len(seconds), message, "times for every chunk of the order, from 0 up")])
    return rank_of
