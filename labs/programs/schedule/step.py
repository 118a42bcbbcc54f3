"""A step as all ranks ran it: how long it took, how much of it idled, how many micro-batches each rank held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from labs.probes.timeline import Span


@dataclass(frozen=True)
class Step:
    """`passes[rank]` in the order they ran. Between two passes a rank does nothing but wait."""

    passes: tuple[tuple[Span, ...], ...]
    stages_a_rank: int

    @property
    def start(self) -> float:
        return min(each.start for rank in self.passes for each in rank)

    @property
    def end(self) -> float:
        return max(each.end for rank in self.passes for each in rank)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def idle_share(self) -> float:
        """Of the ranks' time together, what no pass filled."""
        busy = sum(each.seconds for rank in self.passes for each in rank)
        return 1 - busy / (len(self.passes) * self.seconds)

    def in_flight(self, rank: int) -> float:
        """The most micro-batches whose activations `rank` held at once; a stage of several holds a part of one.

        They are kept from the forward pass until the weight's gradient has been computed from them.
        """
        split = {(each.stage, each.micro_batch) for each in self.passes[rank] if each.what == "W"}
        held = most = 0
        for each in self.passes[rank]:
            if each.what == "F":
                held += 1
            elif each.what == "W" or (each.stage, each.micro_batch) not in split:
                held -= 1
            most = max(most, held)
        return most / self.stages_a_rank

    def with_waits(self, rank: int) -> Iterator[Span]:
        """The passes of `rank` and what is between them, from the step's start to its end."""
        mine = self.passes[rank]
        nothing = (Span("idle", mine[0].stage, None, at, at) for at in (self.start, self.end))
        begin, finish = nothing
        for before, each in pairwise((begin, *mine, finish)):
            yield Span("idle", mine[0].stage, None, before.end, each.start)
            if each is not finish:
                yield each


def whole_backwards(done: Sequence[Span]) -> tuple[Span, ...]:
    """`done`, with both gradients of a micro-batch as one pass B where they were computed in one go.

    The weight's gradient is before the input's only then. So it is, too, in the first stage of a split backward: no
    rank waits for its input's gradient, and torch leaves both for W.
    """
    passes: list[Span] = []
    for each in done:
        last = passes[-1] if passes else None
        if each.what == "B" and last is not None and last.what == "W" and _same(last, each):
            passes[-1] = Span("B", each.stage, each.micro_batch, last.start, each.end)
        else:
            passes.append(each)
    return tuple(passes)


def _same(one: Span, other: Span) -> bool:
    return (one.stage, one.micro_batch) == (other.stage, other.micro_batch)
