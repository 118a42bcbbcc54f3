"""What a rank did in the watched step, piece by piece: passes of layers or micro-batches, the update, collectives.

All times are seconds from the beginning of the step, which is that of the first rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.lab.film.naming import Names, names_of
from labs.spec import RunSpec
from labs.spec.events import DetailEvent, Held, SpanEvent

Interval = tuple[float, float]
TONES = {"F": "forward", "B": "backward", "W": "weight", "optimizer": "optimizer"}
_LEAST_SHARE = 0.004  # of the step: shorter work between layers is in no piece


@dataclass(frozen=True)
class Moved:
    """What a collective moved. `members` are the ranks that took part, as far as the layout says."""

    operation: str
    phase: str
    group: str
    payload_bytes: int
    wire_bytes: int
    held: tuple[Held, ...]
    members: tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """`key` is the same for one collective on all its ranks. Of a pass, `within` says what it is a part of."""

    key: str
    kind: str
    name: str
    start: float
    end: float
    layer: int | None = None
    micro_batch: int | None = None
    stage: int | None = None
    moved: Moved | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class RankStep:
    """A rank in the step. `busy` are the times something was computed, by tone, in order; the rest it stood still."""

    rank: int
    computed: tuple[Piece, ...]
    moved: tuple[Piece, ...]
    busy: tuple[tuple[str, float, float], ...]
    detail: DetailEvent | None

    @property
    def busy_seconds(self) -> float:
        return sum(end - start for _, start, end in self.busy)

    def over_by(self, until: float) -> tuple[Piece, ...]:
        """Its collectives and messages that were over by then, in seconds of the step."""
        return tuple(piece for piece in self.moved if piece.end <= until)


@dataclass(frozen=True)
class Step:
    """All ranks in the watched step; `since` is its beginning in the events' time."""

    number: int
    since: float
    seconds: float
    ranks: tuple[RankStep, ...]


def step_of(spec: RunSpec, spans: Sequence[SpanEvent], details: Sequence[DetailEvent]) -> Step | None:
    """The watched step; None where none was."""
    if not spans:
        return None
    number = spans[0].step
    by_rank = {each.rank: each for each in details if each.step == number}
    since = min([each.start for each in by_rank.values()] or [each.start for each in spans])
    end = max([each.end for each in spans] + [each.end for each in by_rank.values()])
    seconds = max(end - since, 1e-9)
    ranks = sorted({each.rank for each in spans})
    return Step(
        number,
        since,
        seconds,
        tuple(
            _rank(spec, rank, [e for e in spans if e.rank == rank], by_rank.get(rank), since, seconds) for rank in ranks
        ),
    )


def _rank(
    spec: RunSpec, rank: int, spans: Sequence[SpanEvent], detail: DetailEvent | None, since: float, seconds: float
) -> RankStep:
    shifted = sorted((replace(e, start=e.start - since, end=e.end - since) for e in spans), key=lambda e: e.start)
    ordered = _over_by_the_update(shifted)
    calls = [each for each in ordered if each.what == "communication"]
    passes = [each for each in ordered if each.what in TONES]
    names = names_of(spec, rank, ordered, [] if detail is None else _shifted(detail, since))
    moved = tuple(_collective(each, names, index) for index, each in enumerate(calls))
    waits = [] if detail is None else [(start - since, end - since) for start, end in detail.waits]
    under_way = merged((each.start, each.end) for each in calls)
    computed, busy = [], []
    for number, each in enumerate(passes):
        layers = [each_ for each_ in names.layers if each.start <= each_[2] and each_[3] <= each.end + 1e-6]
        for piece, cuts in _parts(each, number, layers, under_way, _LEAST_SHARE * seconds, names):
            computed.append(piece)
            busy += [(piece.kind, *left) for left in without((piece.start, piece.end), [*waits, *cuts])]
    return RankStep(rank, tuple(computed), moved, tuple(sorted(busy, key=lambda b: b[1])), detail)


def _over_by_the_update(spans: Sequence[SpanEvent]) -> list[SpanEvent]:
    """A rank updates with gradients that have come, so a collective of a pass is over when its optimizer begins. gloo
    tells a thread, which may get to stamp the end only later. A message's sender waits for nothing of it."""
    updates = [each.start for each in spans if each.what == "optimizer"]
    return [
        replace(each, end=min([each.end, *(start for start in updates if start > each.start)]))
        if each.what == "communication" and each.operation != "send" and each.phase != "optimizer"
        else each
        for each in spans
    ]


def _shifted(detail: DetailEvent, since: float) -> list[tuple[int, str, float, float]]:
    return [(each.layer, each.what, each.start - since, each.end - since) for each in detail.layers]


def _collective(span: SpanEvent, names: Names, index: int) -> Piece:
    known = names.calls[index]
    moved = Moved(
        span.operation or "",
        span.phase or "",
        span.group or "",
        span.payload_bytes or 0,
        span.wire_bytes or 0,
        tuple(span.held or ()),
        known.members,
    )
    return Piece(
        known.key, "communication", known.name, span.start, span.end, known.layer, known.micro_batch, moved=moved
    )


_Layer = tuple[int, str, float, float]


def _parts(
    span: SpanEvent, number: int, layers: Sequence[_Layer], under_way: Sequence[Interval], least: float, names: Names
) -> Iterator[tuple[Piece, Sequence[Interval]]]:
    """The pieces of a pass, each with the times in it that are no computing of its own."""
    tone = TONES[span.what]
    whole = Piece(f"{span.what}{number}", tone, names.of_pass(span), span.start, span.end, None, span.micro_batch)
    whole = replace(whole, stage=span.stage)
    if not layers:
        yield whole, ()
        return
    inside = [(start, end) for _, _, start, end in layers]
    own = [each for each in layers if each[1] == span.what]
    for layer, what, start, end in layers:
        again = what != span.what
        name = names.of_layer(span, layer, again)
        key = f"{span.what}{number}.{layer}{'r' if again else ''}"
        within = [each for each in inside if start < each[0] and each[1] < end]  # computed again in the midst of it
        yield Piece(key, "forward" if again else tone, name, start, end, layer, span.micro_batch), within
    first, last = min(each[2] for each in own), max(each[3] for each in own)
    ends = [("begin", (span.start, first)), ("end", (last, span.end))] if own else []
    for place, (start, end) in ends:
        left = without((start, end), under_way)
        if sum(b - a for a, b in left) >= least:
            name = names.of_end(span, place)
            yield Piece(f"{span.what}{number}.{place}", tone, name, left[0][0], left[-1][1]), under_way


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """What any of them covers, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def without(whole: Interval, cuts: Iterable[Interval]) -> list[Interval]:
    """What is left of `whole` when `cuts` are taken away."""
    inside = [(max(start, whole[0]), min(end, whole[1])) for start, end in merged(cuts)]
    edges = [(whole[0], whole[0]), *((a, b) for a, b in inside if a < b), (whole[1], whole[1])]
    return [(before[1], after[0]) for before, after in pairwise(edges) if after[0] - before[1] > 1e-9]


def covered(whole: Interval, by: Iterable[Interval]) -> float:
    """Seconds of `whole` that lie in `by`."""
    return whole[1] - whole[0] - sum(end - start for start, end in without(whole, by))
