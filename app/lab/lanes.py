"""One step of a run as lanes over time, a lane a rank, so that steps of several runs stand above each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.content.diagrams.drawing import Drawing, as_drawing
from app.content.diagrams.gantt import TONES, WIDE, Bar, Lane, draw_lanes
from app.content.diagrams.svg import Canvas, Picture
from app.lab.trace import NAMES
from app.units import digits, factor_of
from labs.spec.events import SpanEvent

_MILLISECONDS = 1 / factor_of("ms")  # in a second


def draw_spans(spans: Sequence[SpanEvent], name: str = "gantt", least_seconds: float = 0.0) -> Drawing | None:
    """A lane a rank over the milliseconds of the step, and over `least_seconds` at least, so that several have one
    axis; None where no step was watched."""
    if not spans:
        return None
    start, end = min(each.start for each in spans), max(each.end for each in spans)
    milliseconds = max(_MILLISECONDS * (end - start), 1e-3)
    axis = max(milliseconds, _MILLISECONDS * least_seconds)
    ranks = sorted({each.rank for each in spans})
    busy = {rank: _seconds(spans, rank, tuple(TONES)) for rank in ranks}
    lanes = [
        Lane(
            rank,
            [_bar(each, start) for each in spans if each.rank == rank],
            _share(_MILLISECONDS * busy[rank], milliseconds),
        )
        for rank in ranks
    ]
    canvas, height = draw_lanes(WIDE, lanes, axis, "busy", "milliseconds of the step")
    picture = _picture(canvas, height, spans, busy, end - start)
    return as_drawing(picture, f"{name}-{spans[0].step}", "Measured", picture.says)


def _bar(span: SpanEvent, start: float) -> Bar:
    text = "" if span.micro_batch is None or span.what == "W" else str(span.micro_batch)
    return Bar(span.what, _MILLISECONDS * (span.start - start), _MILLISECONDS * (span.end - start), text)


def _share(part: float, whole: float) -> str:
    return f"{digits(100 * part / whole, 2)} %"


def _picture(
    canvas: Canvas, height: float, spans: Sequence[SpanEvent], busy: Mapping[int, float], seconds: float
) -> Picture:
    ranks = list(busy)
    idle = 1 - sum(busy.values()) / (len(ranks) * max(seconds, 1e-9))
    says = (
        f"Step {spans[0].step} took {digits(_MILLISECONDS * seconds)} ms on {len(ranks)} "
        f"rank{'s' if len(ranks) > 1 else ''}, which were busy {digits(100 * (1 - idle), 3)} % of it."
    )
    used = [what for what in NAMES if any(span.what == what for span in spans)]
    key = [(TONES.get(what, what), NAMES[what]) for what in used]
    head = ("Rank", *(f"{NAMES[what]}, ms" for what in used), "Passes in order")
    rows = (
        (
            str(rank),
            *(digits(_MILLISECONDS * _seconds(spans, rank, (what,))) for what in used),
            " ".join(_order(spans, rank)),
        )
        for rank in ranks
    )
    return canvas.picture(height, says, head, rows, key)


def _seconds(spans: Sequence[SpanEvent], rank: int, kinds: tuple[str, ...]) -> float:
    """How long any of them was going on: several collectives may be under way at once."""
    mine = sorted((s.start, s.end) for s in spans if s.rank == rank and s.what in kinds)
    total, until = 0.0, float("-inf")
    for start, end in mine:
        total += max(0.0, end - max(until, start))
        until = max(until, end)
    return total


def _order(spans: Sequence[SpanEvent], rank: int) -> Iterator[str]:
    mine = [each for each in spans if each.rank == rank and each.what in ("F", "B", "W")]
    stages = len({each.stage for each in mine}) > 1
    for each in sorted(mine, key=lambda span: span.start):
        yield f"{each.stage if stages else ''}{each.what}{each.micro_batch}"
