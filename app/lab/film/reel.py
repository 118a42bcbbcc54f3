"""The film strip of a run's page: lanes of all ranks over one axis of time, and one rank's reel with its memory.

Positions are drawn in per mille of the step; text is not part of any drawing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

from markupsafe import Markup

from app.content.diagrams.svg import nice_ticks, number, number_text
from app.core.charts import Scale, byte_scale
from app.lab.film.expected import Expected, expected, is_pipelined
from app.lab.film.pieces import TONES, Piece, RankStep, Step, step_of
from app.lab.film.words import Words, finding, milliseconds, slowest
from app.lab.view import RunView
from app.theory.lab_runs import rank_theory, world
from app.units import LADDERS, bytes_text, digits
from labs.spec import RunSpec
from labs.spec.events import Component, DetailEvent

COMPONENTS: tuple[Component, ...] = get_args(Component)
_WIDTH = 1000.0
_GHOST, _WORK, _TRANSFER = (0.0, 4.0), (7.0, 24.0), (27.0, 35.0)  # top and bottom of what a lane has
_LANE_HEIGHT = 36
_LEAST_LATE = 0.004  # of the step: less waiting for the last rank is not to be seen
_LEAST_LABEL = 12.0  # per mille: a narrower pass has no room for its number


@dataclass(frozen=True)
class Lane:
    """A rank's picture: `late` is where it was in a collective and waited for the last rank, `labels` the
    micro-batches of its passes; both in percent of the step."""

    rank: int
    name: str
    still: str
    svg: Markup
    late: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Moment:
    """A piece as the reel shows it: milliseconds, what is said, which row of the table and of the ledger is its, where
    the same collective is on other ranks (rank, from, width in percent), the outline of what it holds, and what this
    rank has sent by its end."""

    key: str
    kind: str
    name: str
    start: float
    end: float
    says: str
    ledger: str
    on: tuple[tuple[int, str, str], ...]
    bump: str
    sent: str


@dataclass(frozen=True)
class Row:
    """A collective in the table; a pass where no collective was watched."""

    key: str
    name: str
    starts: str
    took: str
    payload: str
    sent: str
    hidden: str


@dataclass(frozen=True)
class Reel:
    """One rank: its moments, what it held from each of `at` (ms) on by component, and the picture of that."""

    rank: int
    name: str
    still: str
    moments: tuple[Moment, ...]
    at: tuple[float, ...]
    held: tuple[tuple[int, ...], ...]
    memory: Markup
    memory_says: str
    theory_percent: str
    theory_says: str
    rows: tuple[Row, ...]
    first: int  # which moment is shown first

    def as_json(self) -> dict[str, Any]:
        """What the script needs of it."""
        return {
            "rank": self.rank,
            "name": self.name,
            "still": self.still,
            "first": self.first,
            "theory": [self.theory_percent, self.theory_says],
            "moments": [vars(each) for each in self.moments],
            "at": self.at,
            "held": self.held,
        }

    @property
    def shown(self) -> Moment:
        return self.moments[self.first]

    @property
    def alive(self) -> Mapping[str, int] | None:
        """Bytes by component where the first moment stands."""
        if not self.at:
            return None
        return dict(zip(COMPONENTS, self.held[max(0, bisect_right(self.at, self.playhead) - 1)], strict=True))

    @property
    def playhead(self) -> float:
        """Milliseconds: where a collective has its result, where anything else begins."""
        shown = self.shown
        return max(shown.start, shown.end - 0.05) if shown.kind == "communication" else shown.start


@dataclass(frozen=True)
class Film:
    """What the page draws: `ideal` is where theory's schedule ends, in percent."""

    number: int
    title: str
    says: str
    milliseconds: float
    lanes: tuple[Lane, ...]
    reel: Reel
    ideal_percent: str
    ideal_says: str
    ticks: tuple[tuple[str, str], ...]
    scale: Scale
    tones: tuple[tuple[str, str], ...]
    has_transfers: bool

    @property
    def units(self) -> dict[str, Any]:
        """How the page's script writes bytes."""
        return {"write": [[step.unit, step.size, step.least] for step in LADDERS["bytes"]], "read": {}}

    @property
    def playhead_percent(self) -> str:
        return number(100 * self.reel.playhead / self.milliseconds)


_TONES = (("forward", "Forward"), ("backward", "Backward"), ("weight", "Weight gradients"), ("optimizer", "Optimizer"))


def film_of(spec: RunSpec, view: RunView, rank: int = 0) -> Film | None:
    """The watched step of a run with `rank` in the reel; None where no step was watched, or it has no such rank."""
    step = step_of(spec, view.spans, view.details)
    if step is None or not 0 <= rank < len(step.ranks):
        return None
    words, schedule = Words(spec, step), expected(spec, step)
    end = max(step.seconds, schedule.seconds if schedule else 0.0)
    axis = _Axis(end)
    scale = byte_scale(_totals(step))
    used = {piece.kind for each in step.ranks for piece in (*each.computed, *each.moved)}
    tones = [(tone, name) for tone, name in _TONES if tone in used]
    return Film(
        number=step.number,
        title=finding(step, words),
        says=_says(spec, step, schedule),
        milliseconds=1000 * end,
        lanes=tuple(_lane(spec, each, words, schedule, step, axis) for each in step.ranks),
        reel=_reel(spec, step, step.ranks[rank], words, axis, scale),
        ideal_percent=axis.percent(schedule.seconds) if schedule else "",
        ideal_says=f"Theory’s end, {milliseconds(schedule.seconds)}" if schedule else "",
        ticks=tuple(
            (axis.percent(tick / 1000), number_text(tick))
            for tick in nice_ticks(0, 1000 * end, 7)
            if tick <= 1000 * end
        ),
        scale=scale,
        tones=tuple(tones),
        has_transfers="communication" in used,
    )


@dataclass(frozen=True)
class _Axis:
    end: float

    def x(self, seconds: float) -> str:
        return number(_WIDTH * min(max(seconds, 0.0), self.end) / self.end)

    def percent(self, seconds: float) -> str:
        return number(100 * min(max(seconds, 0.0), self.end) / self.end)


def _totals(step: Step) -> Iterator[float]:
    for rank in step.ranks:
        if rank.detail is not None:
            yield from (float(sum(held)) for held in _held(rank.detail))


def _held(detail: DetailEvent) -> list[tuple[int, ...]]:
    """By moment and component."""
    return list(zip(*(detail.memory.get(name, [0] * len(detail.at)) for name in COMPONENTS), strict=True))


def _says(spec: RunSpec, step: Step, schedule: Expected | None) -> str:
    if schedule is None:
        return f"{milliseconds(step.seconds)}.{slowest(step)}"
    with_passes = "with passes and transfers as long as here"
    against = f"{milliseconds(step.seconds)} measured, {milliseconds(schedule.seconds)} by theory {with_passes}."
    return f"{against}{_bubble(spec, schedule)}{slowest(step)}"


def _bubble(spec: RunSpec, schedule: Expected) -> str:
    if not is_pipelined(spec):
        return ""
    passes = [[each for each in rank if each.what != "optimizer"] for rank in schedule.ranks]
    end = max((each.end_seconds for rank in passes for each in rank), default=0.0)
    busy = sum(each.end_seconds - each.start_seconds for rank in passes for each in rank)
    idle = 1 - busy / (len(passes) * end) if end else 0.0
    return f" By theory {digits(100 * idle, 3)} % of the passes' time is a bubble."


def _lane(spec: RunSpec, rank: RankStep, words: Words, schedule: Expected | None, step: Step, axis: _Axis) -> Lane:
    svg = Markup('<svg viewBox="0 0 1000 {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>').format(
        _LANE_HEIGHT, Markup("").join(_marks(rank, schedule, axis))
    )
    late = []
    for piece in rank.moved:
        seconds = words.late_seconds(piece)
        if seconds > _LEAST_LATE * step.seconds:
            late.append((axis.percent(piece.start), axis.percent(seconds)))
    labels = tuple(
        (axis.percent(piece.start), axis.percent(piece.seconds), piece.kind, str(piece.micro_batch))
        for piece in rank.computed
        if piece.layer is None and piece.micro_batch is not None and piece.kind != "weight"
        if _WIDTH * piece.seconds / axis.end >= _LEAST_LABEL
    )
    return Lane(rank.rank, f"Rank {rank.rank}", _still(rank, step), svg, tuple(late), labels)


def _still(rank: RankStep, step: Step) -> str:
    return f"{digits(100 * (1 - rank.busy_seconds / step.seconds), 3)} % still"


def _marks(rank: RankStep, schedule: Expected | None, axis: _Axis) -> Iterator[Markup]:
    planned = schedule.ranks[rank.rank] if schedule is not None and rank.rank < len(schedule.ranks) else ()
    for tone in dict.fromkeys(TONES.values()):
        mine = [each for each in planned if TONES[each.what] == tone]
        yield _path(f"ghost {tone}", "".join(_box(axis, e.start_seconds, e.end_seconds, _GHOST) for e in mine))
        boxes = "".join(_box(axis, start, end, _WORK) for kind, start, end in rank.busy if kind == tone)
        yield _path(tone, boxes)
    yield _path("communication", "".join(_box(axis, each.start, each.end, _TRANSFER) for each in rank.moved))
    cuts = [f"M{axis.x(each.start_seconds)} {_GHOST[0]:g}V{_GHOST[1]:g}" for each in planned]
    cuts += [f"M{axis.x(each.start)} {_WORK[0]:g}V{_WORK[1]:g}" for each in rank.computed]
    cuts += [f"M{axis.x(each.start)} {_TRANSFER[0]:g}V{_TRANSFER[1]:g}" for each in rank.moved]
    yield _path("cuts", "".join(cuts))


def _path(kind: str, d: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(kind, d) if d else Markup("")


def _box(axis: _Axis, start: float, end: float, edges: tuple[float, float]) -> str:
    top, bottom = edges
    return f"M{axis.x(start)} {top:g}H{axis.x(end)}V{bottom:g}H{axis.x(start)}z"


def _reel(spec: RunSpec, step: Step, rank: RankStep, words: Words, axis: _Axis, scale: Scale) -> Reel:
    at = [each - step.since for each in rank.detail.at] if rank.detail else []
    held = _held(rank.detail) if rank.detail else []
    picture = _Memory(at, held, step, axis, scale)
    every = sorted((*rank.computed, *rank.moved), key=lambda piece: (piece.start, piece.moved is None))
    moments = tuple(_moment(piece, rank, step, words, picture) for piece in every)
    theory = _theory_bytes(spec, rank.rank)
    return Reel(
        rank=rank.rank,
        name=f"Rank {rank.rank}",
        still=_still(rank, step),
        moments=moments,
        at=tuple(round(1000 * each, 3) for each in at),
        held=tuple(held),
        memory=picture.drawn(),
        memory_says=picture.says(rank.rank),
        theory_percent=scale.percent(theory) if theory and held and theory <= scale.maximum else "",
        theory_says=f"theory’s model state {bytes_text(theory)}" if theory else "",
        rows=tuple(_row(piece, rank, words) for piece in rank.moved or rank.computed),
        first=_first(every, rank, words),
    )


def _theory_bytes(spec: RunSpec, rank: int) -> float | None:
    if spec.options is not None:
        return None
    return rank_theory(spec, list(world(spec))[rank]).state_total_bytes


def _first(every: Sequence[Piece], rank: RankStep, words: Words) -> int:
    """The collective that costs most; without any, the middle of the step."""
    moved = [index for index, piece in enumerate(every) if piece.moved is not None]
    if not moved:
        return len(every) // 2
    return max(moved, key=lambda index: words.exposed_seconds(rank, every[index]))


def _moment(piece: Piece, rank: RankStep, step: Step, words: Words, memory: _Memory) -> Moment:
    held = memory.change(piece.start, piece.end)
    moved = piece.moved
    return Moment(
        key=piece.key,
        kind=piece.kind,
        name=piece.name,
        start=round(1000 * piece.start, 3),
        end=round(1000 * piece.end, 3),
        says=words.of(rank, piece, held),
        ledger=f"{moved.operation} {moved.phase} {moved.group}" if moved else "",
        on=tuple(
            (other.rank, memory.axis.percent(same.start), memory.axis.percent(same.seconds))
            for other in step.ranks
            for same in (other.moved if moved else ())
            if same.key == piece.key
        ),
        bump=memory.bump(piece),
        sent=_sent(rank, piece),
    )


def _sent(rank: RankStep, piece: Piece) -> str:
    """How much of what it sends in the step a rank has sent when `piece` is over, from its recorded messages."""
    if not rank.moved:
        return ""
    over = rank.over_by(piece.end)
    so_far, in_all = (sum(each.moved.wire_bytes for each in of if each.moved) for of in (over, rank.moved))
    return f"Sent so far {bytes_text(so_far)} of {bytes_text(in_all)}, {len(over)} of {len(rank.moved)} over."


def _row(piece: Piece, rank: RankStep, words: Words) -> Row:
    moved = piece.moved
    starts, took = digits(1000 * piece.start, 4), digits(1000 * piece.seconds, 3)
    if moved is None:
        return Row(piece.key, piece.name, starts, took, "–", "–", "–")
    hidden = 1 - words.exposed_seconds(rank, piece) / piece.seconds if piece.seconds > 0 else 1.0
    return Row(
        piece.key,
        piece.name,
        starts,
        took,
        bytes_text(moved.payload_bytes, 4),
        bytes_text(moved.wire_bytes, 4),
        f"{digits(100 * max(0.0, hidden), 3)} %",
    )


class _Memory:
    """What a rank held over the step, stacked; y runs from 100 at nothing to 0 at the scale's end."""

    def __init__(
        self, at: Sequence[float], held: Sequence[tuple[int, ...]], step: Step, axis: _Axis, scale: Scale
    ) -> None:
        self._at, self._held, self._step, self.axis, self._scale = at, held, step, axis, scale

    def change(self, start: float, end: float) -> dict[str, tuple[int, int]]:
        """Bytes of each component at two moments."""
        if not self._at:
            return {}
        before, after = self._at_moment(start), self._at_moment(end)
        return {name: (before[index], after[index]) for index, name in enumerate(COMPONENTS)}

    def _at_moment(self, seconds: float) -> tuple[int, ...]:
        return self._held[max(0, bisect_right(self._at, seconds) - 1)]

    def drawn(self) -> Markup:
        """A shape for every component, from the first at the bottom up."""
        return Markup("").join(_path(name, self._shape(index)) for index, name in enumerate(COMPONENTS))

    def _shape(self, index: int) -> str:
        if not self._at or not any(held[index] for held in self._held):
            return ""
        below = [sum(held[:index]) for held in self._held]
        return self._outline(
            self._at, [*below], [low + held[index] for low, held in zip(below, self._held, strict=True)]
        )

    def _outline(
        self, at: Sequence[float], low: Sequence[float], high: Sequence[float], end: float | None = None
    ) -> str:
        """Along the top edge from the left, and back along the bottom."""
        stops = [*at[1:], self._step.seconds if end is None else end]
        top = f"M{self.axis.x(at[0])} {self._y(high[0])}"
        for before, level, stop in zip([None, *high], high, stops, strict=False):
            top += ("" if level == before else f"V{self._y(level)}") + f"H{self.axis.x(stop)}"
        back = ""
        for level, start in zip(reversed(low), reversed(at), strict=True):
            back += f"V{self._y(level)}H{self.axis.x(start)}"
        return f"{top}{back}z"

    def _y(self, size: float) -> str:
        return number(100 - 100 * size / self._scale.maximum)

    def bump(self, piece: Piece) -> str:
        """The outline of what a collective filled or sent from, at the foot of its component; empty where nobody
        followed it, or it is there all the time."""
        if piece.moved is None or not self._at:
            return ""
        by_component: dict[Component, list[tuple[float, float, int]]] = {}
        for each in piece.moved.held:
            start = each.start - self._step.since
            end = self._step.seconds if each.end is None else each.end - self._step.since
            by_component.setdefault(each.component, []).append((start, end, each.bytes))
        return "".join(self._foot(name, lives) for name, lives in by_component.items())

    def _foot(self, name: Component, lives: Sequence[tuple[float, float, int]]) -> str:
        index = COMPONENTS.index(name)
        begin, end = min(start for start, _, _ in lives), max(end for _, end, _ in lives)
        edges = {begin, end, *(edge for start, stop, _ in lives for edge in (start, stop))}
        edges |= {at for at in self._at if begin < at < end}
        d, run = "", list[tuple[float, float, float, float]]()
        for start, stop in pairwise(sorted(edges)):
            size = sum(bytes_ for a, b, bytes_ in lives if a <= start and stop <= b)
            held = self._at_moment(start)
            low = float(sum(held[:index]))
            if size:
                run.append((start, stop, low, low + size))
            elif run:
                d, run = d + self._closed(run), []
        return d + (self._closed(run) if run else "")

    def _closed(self, run: Sequence[tuple[float, float, float, float]]) -> str:
        at, low, high = [r[0] for r in run], [r[2] for r in run], [r[3] for r in run]
        return self._outline(at, low, high, run[-1][1])

    def says(self, rank: int) -> str:
        """The peak, in a sentence."""
        if not self._at:
            return ""
        totals = [sum(held) for held in self._held]
        peak = max(range(len(totals)), key=lambda index: totals[index])
        state = sum(self._held[0][:3])
        return (
            f"Live memory of rank {rank} over the step: model state {bytes_text(state)} at its beginning, at most "
            f"{bytes_text(totals[peak])} in all, {milliseconds(max(0.0, self._at[peak]))} into it."
        )
