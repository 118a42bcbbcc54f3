"""How each schedule orders the passes of one rank. One function per schedule; all of them finish in `catalogue`.

The orders are those of `torch.distributed.pipelining`; who waits for whom, and for how long, is not decided here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from app.theory.pipeline.passes import Kind, Pass

_KINDS: Mapping[str, Kind] = {"F": "F", "B": "B", "W": "W"}


@dataclass(frozen=True)
class Plan:
    """What an order is made from, seen by one rank. `chunks` are those it holds, in the order of the model."""

    rank: int
    stages: int
    micro_batches: int
    chunks: tuple[int, ...]

    @property
    def hops(self) -> int:
        """Ranks between this one and the last."""
        return self.stages - 1 - self.rank


def gpipe(plan: Plan) -> Iterator[Pass]:
    """Every forward, then every backward."""
    (chunk,) = plan.chunks
    for kind in ("F", "B"):
        yield from _all_micro_batches(kind, chunk, range(plan.micro_batches))


def looped_bfs(plan: Plan) -> Iterator[Pass]:
    """All micro-batches through one chunk before the next chunk begins; backwards in exactly the opposite order."""
    for chunk in plan.chunks:
        yield from _all_micro_batches("F", chunk, range(plan.micro_batches))
    for chunk in reversed(plan.chunks):
        yield from _all_micro_batches("B", chunk, reversed(range(plan.micro_batches)))


def _all_micro_batches(kind: Kind, chunk: int, micro_batches: Iterable[int]) -> Iterator[Pass]:
    return (Pass(kind, chunk, each) for each in micro_batches)


def one_f_one_b(plan: Plan) -> Iterator[Pass]:
    """A rank runs ahead by a forward for every rank behind it, then alternates."""
    return _alternating(plan, ahead=plan.hops)


def interleaved(plan: Plan) -> Iterator[Pass]:
    """1F1B over several chunks: to reach the last one, a round passes all the others; each hop costs two forwards."""
    return _alternating(plan, ahead=(len(plan.chunks) - 1) * plan.stages + 2 * plan.hops)


def zero_bubble(plan: Plan) -> Iterator[Pass]:
    """1F1B on input gradients; a rank puts off as many weight gradients as it has ranks before it.

    With this, every rank holds as much as the first, and what was put off fills the end of the step.
    """
    backwards: deque[Pass] = deque()
    for each in _alternating(plan, ahead=(len(plan.chunks) - 1) * plan.stages + plan.hops):
        yield each
        if each.kind == "B":
            backwards.append(each)
            if len(backwards) > plan.rank:
                yield _weight_gradient(backwards.popleft())
    yield from map(_weight_gradient, backwards)


def _weight_gradient(backward: Pass) -> Pass:
    return Pass("W", backward.chunk, backward.micro_batch)


def _alternating(plan: Plan, ahead: int) -> Iterator[Pass]:
    """`ahead` forwards, then one forward and one backward in turn, then the backwards that are left."""
    forwards = _in_rounds("F", plan, plan.chunks)
    backwards = _in_rounds("B", plan, plan.chunks[::-1])
    yield from islice(forwards, ahead)
    for forward in forwards:
        yield forward
        yield next(backwards)
    yield from backwards


def _in_rounds(kind: Kind, plan: Plan, chunks: tuple[int, ...]) -> Iterator[Pass]:
    """Micro-batches in groups of as many as there are stages: a group passes every chunk before the next begins."""
    for first in range(0, plan.micro_batches, plan.stages):
        for chunk in chunks:
            yield from _all_micro_batches(kind, chunk, range(first, min(first + plan.stages, plan.micro_batches)))


def zbv(plan: Plan) -> Iterator[Pass]:
    """ZB-V: 0 is the chunk on the way down the ranks, 1 the one on the way back, which ends in the loss.

    Written for at least 2p − 1 micro-batches, with which the pipeline is full; fewer leave their places empty.
    """
    stages, rank, behind = plan.stages, plan.rank, plan.stages - plan.rank
    micro_batches = max(plan.micro_batches, 2 * stages - 1)
    script = ["F0"] * (2 * behind - 1) + ["F1", "F0"] * rank + ["F1", "B1", "W1"] * behind
    script += ["F0", "B0", "W0", "F1", "B1", "W1"] * (micro_batches - 2 * stages + rank + 1)
    script += ["B0", "W0", "F1", "B1", "W1"] * (behind - 1)
    script += ["B0", "B1"] * rank + ["B0", "W0"] * behind + ["W1"] * rank + ["W0"] * rank
    return _played(script, plan)


def dualpipev(plan: Plan) -> Iterator[Pass]:
    """DualPipeV: whole backwards while forwards remain to fill the pipeline; as it drains, half of them are split."""
    rank, hops = plan.rank, plan.hops
    script = ["F0"] * (2 * hops) + ["F0", "F1"] * (rank + 1) + ["I1", "W", "F1"] * hops
    script += ["F0", "B1", "F1", "B0"] * (plan.micro_batches - 2 * plan.stages + rank + 1)
    script += ["B1", "F1", "B0"] * hops
    drain = ["1", "0"] * (rank + 1)
    script += ["B" + chunk for chunk in drain[: rank + 1]] + ["I" + chunk for chunk in drain[rank + 1 :]]
    return _played(script + ["W", "I0"] * hops + ["W"] * (rank + 1), plan)


def _played(script: Iterable[str], plan: Plan) -> Iterator[Pass]:
    """The passes of a script, each a kind and which of the rank's chunks; every kind counts its own micro-batches.

    `I` is a backward that leaves its weight gradient for later; `W` without a chunk takes up the oldest one left.
    """
    counted: Counter[str] = Counter()
    left: deque[Pass] = deque()
    for step in script:
        if step == "W":
            each = _weight_gradient(left.popleft())
        else:
            chunk, step_kind = step[1], "B" if step[0] == "I" else step[0]
            each = Pass(_KINDS[step_kind], plan.chunks[int(chunk)], counted[step_kind + chunk])
            counted[step_kind + chunk] += 1
        if step[0] == "I":
            left.append(each)
        if each.micro_batch < plan.micro_batches:
            yield each
