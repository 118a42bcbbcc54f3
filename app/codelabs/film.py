"""What the judge carried from rank to rank, as a film strip: a lane a rank, its calls below, its waiting left blank.

Times are the judge's: when a call arrived there, when its rank began to wait for it, when its result went back. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from app.content.diagrams.svg import nice_ticks, number_text
from app.content.film.axis import Axis, box, path
from app.content.film.shown import Film, Lane, Moment, Reel, Row
from app.core.charts import byte_scale
from app.units import bytes_text, digits
from labs.spec.code import Trace, TracedCall

_WORK, _CALL, _HEIGHT = (7.0, 24.0), (27.0, 35.0), 36
_LEAST = 0.004  # of the whole: a shorter wait is not to be seen
Interval = tuple[float, float]


@dataclass(frozen=True)
class _Scene:
    """A trace over an axis, with which calls of other ranks belong to one."""

    trace: Trace
    axis: Axis
    whose: str  # line: "your", or "the reference’s"
    by_key: Mapping[str, Sequence[TracedCall]] = field(default_factory=dict)

    def of(self, rank: int) -> list[TracedCall]:
        return sorted((each for each in self.trace.calls if each.rank == rank), key=lambda each: each.posted)

    def end(self, call: TracedCall) -> float:
        """When its result was there; of one that never came, the end of the trace."""
        return self.trace.seconds if call.done is None else call.done

    def wait(self, call: TracedCall) -> float:
        """For how long its rank waited for it."""
        return 0.0 if call.waited is None else max(0.0, self.end(call) - call.waited)

    def size(self, call: TracedCall) -> int:
        """What is handed over in it: of a message that comes, what its sender sent."""
        if call.peer is None:
            return call.payload_bytes
        return max(each.payload_bytes for each in self.by_key[_key(call)])

    def others_came(self, call: TracedCall) -> float:
        """When the last of the others called it too."""
        others = [each.posted for each in self.by_key[_key(call)] if each.rank != call.rank]
        return min(max(others, default=call.posted), self.end(call))


def film_of(trace: Trace, rank: int, end_seconds: float, whose: str) -> Film | None:
    """A trace with `rank` in the reel, over an axis up to `end_seconds`; None where it has no calls or no such rank."""
    if not trace.calls or not 0 <= rank < trace.ranks:
        return None
    by_key: dict[str, list[TracedCall]] = defaultdict(list)
    for each in trace.calls:
        by_key[_key(each)].append(each)
    scene = _Scene(trace, Axis(max(end_seconds, trace.seconds, 1e-6)), whose, by_key)
    reel = _reel(scene, rank)
    milliseconds = 1000 * scene.axis.end
    ticks = [tick for tick in nice_ticks(0, milliseconds, 7) if tick <= milliseconds]
    return Film(
        number=0,
        title="",
        says=f"{digits(1000 * trace.seconds, 3)} ms, {len(trace.calls)} calls",
        milliseconds=milliseconds,
        lanes=tuple(_lane(scene, each) for each in range(trace.ranks)),
        reel=reel,
        ideal_percent="",
        ideal_says="",
        ticks=tuple((scene.axis.percent(tick / 1000), number_text(tick)) for tick in ticks),
        scale=byte_scale([]),
        tones=(("forward", "The program runs"),),
        has_transfers=True,
        late_says="Waiting for another rank to call it too",
        still_says="The program waits",
    )


def _key(call: TracedCall) -> str:
    """The same on all ranks that take part."""
    if call.peer is not None:
        ends = (call.rank, call.peer) if call.operation == "send" else (call.peer, call.rank)
        return f"message {ends[0]} {ends[1]} {call.sequence}"
    return f"{call.operation} {call.group} {call.sequence}"


def _busy(scene: _Scene, rank: int) -> list[Interval]:
    """When the program ran: from the first call of anybody to its own last, but for its waiting."""
    calls = scene.of(rank)
    found, at = [], 0.0
    for call in sorted(calls, key=lambda each: each.posted if each.waited is None else each.waited):
        until = call.posted if call.waited is None else call.waited
        if until > at:
            found.append((at, until))
        at = max(at, scene.end(call) if scene.wait(call) else until)
    return found


def _lane(scene: _Scene, rank: int) -> Lane:
    axis, calls, busy = scene.axis, scene.of(rank), _busy(scene, rank)
    cuts = "".join(f"M{axis.x(each.posted)} {_CALL[0]:g}V{_CALL[1]:g}" for each in calls)
    marks = (
        path("forward", "".join(box(axis, start, end, _WORK) for start, end in busy)),
        path("communication", "".join(box(axis, each.posted, scene.end(each), _CALL) for each in calls)),
        path("cuts", cuts),
    )
    svg = Markup('<svg viewBox="0 0 1000 {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>').format(
        _HEIGHT, Markup("").join(marks)
    )
    late = tuple(
        (axis.percent(each.posted), axis.percent(scene.others_came(each) - each.posted))
        for each in calls
        if scene.others_came(each) - each.posted > _LEAST * axis.end
    )
    return Lane(rank, f"Rank {rank}", f"{_waits(scene, busy)} % waits", svg, late, ())


def _waits(scene: _Scene, busy: Sequence[Interval]) -> str:
    ran = sum(end - start for start, end in busy)
    return digits(100 * max(0.0, 1 - ran / max(scene.trace.seconds, 1e-9)), 2)


def _reel(scene: _Scene, rank: int) -> Reel:
    calls = scene.of(rank)
    moments = tuple(_moments(scene, rank, calls))
    return Reel(
        rank=rank,
        name=f"Rank {rank}",
        still=f"{_waits(scene, _busy(scene, rank))} % waits",
        moments=moments or (_nothing(),),
        at=(),
        held=(),
        memory=Markup(""),
        memory_says="",
        theory_percent="",
        theory_says="",
        rows=tuple(_row(scene, each) for each in calls),
        first=0,
    )


def _moments(scene: _Scene, rank: int, calls: Sequence[TracedCall]) -> Iterator[Moment]:
    whole = sum(each.payload_bytes for each in calls if each.operation != "recv")
    handed = 0
    for number, call in enumerate(calls):
        handed += call.payload_bytes if call.operation != "recv" else 0
        yield Moment(
            key=_key(call),
            kind="communication",
            name=_name(call),
            start=round(1000 * call.posted, 4),
            end=round(1000 * scene.end(call), 4),
            says=_says(scene, call),
            ledger="",
            on=tuple(
                (each.rank, scene.axis.percent(each.posted), scene.axis.percent(scene.end(each) - each.posted))
                for each in scene.by_key[_key(call)]
            ),
            bump="",
            sent=f"Call {number + 1} of {len(calls)}; {bytes_text(handed)} of {bytes_text(whole)} handed over so far.",
        )


def _nothing() -> Moment:
    return Moment("", "communication", "No call", 0.0, 0.0, "This rank called nothing.", "", (), "", "")


def _name(call: TracedCall) -> str:
    if call.operation == "send":
        return f"Send to rank {call.peer}, no. {call.sequence}"
    if call.operation == "recv":
        return f"Receive from rank {call.peer}, no. {call.sequence}"
    return f"{call.operation.replace('_', '-').capitalize()} no. {call.sequence}"


def _says(scene: _Scene, call: TracedCall) -> str:
    size = scene.size(call)
    what = bytes_text(size) if size else "Nothing to carry"
    at = f" at {scene.whose} line {call.line}" if call.line else ""
    early = scene.others_came(call) - call.posted
    waited = scene.wait(call)
    if call.done is None:
        return f"{what}{at}. It was never over."
    if call.waited is None:
        return f"{what}{at}. It was over {_ms(scene.end(call) - call.posted)} later; nobody waited for it."
    until = f", {_ms(min(early, waited))} of them until the last rank came" if early > _LEAST * scene.axis.end else ""
    between = call.waited - call.posted
    hidden = f" The program went on for {_ms(between)} before it waited." if between > _LEAST * scene.axis.end else ""
    return f"{what}{at}. The program waited {_ms(waited)}{until}.{hidden}"


def _ms(seconds: float) -> str:
    return f"{digits(1000 * seconds, 3)} ms"


def _row(scene: _Scene, call: TracedCall) -> Row:
    took = scene.end(call) - call.posted
    hidden = 1 - min(1.0, scene.wait(call) / took) if took > 0 else 1.0
    return Row(
        _key(call),
        _name(call),
        digits(1000 * call.posted, 4),
        digits(1000 * took, 3),
        bytes_text(scene.size(call), 4),
        bytes_text(call.payload_bytes, 4) if call.operation == "send" else "–",
        f"{digits(100 * hidden, 3)} %",
    )
