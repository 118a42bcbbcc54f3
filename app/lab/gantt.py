"""When each rank did what in a watched step: the spans of a run as a picture, and as a trace for other tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from app.content.diagrams.drawing import Drawing, as_drawing
from app.content.diagrams.gantt import COMMUNICATION, IDLE, TONES, WIDE, Bar, Lane, draw_lanes
from app.content.diagrams.pipeline import draw_pipeline
from app.content.diagrams.schema import Pipeline
from app.content.diagrams.svg import Canvas, Picture
from app.units import digits, factor_of
from labs.spec import RunSpec, ScheduleOptions
from labs.spec.events import SpanEvent

_NAMES = {
    "F": "Forward",
    "B": "Backward",
    "W": "Weight gradients",
    "optimizer": "Optimizer",
    IDLE: "Waiting",
    COMMUNICATION: "Collectives and messages",
}
_MILLISECONDS, _TRACE_MICROSECONDS = 1 / factor_of("ms"), 1 / factor_of("µs")  # in a second
_TRACE_ARGUMENTS = ("step", "micro_batch", "operation", "group", "payload_bytes")
_FIRST_THREAD = 1000  # of collectives; those below are stages


def draw_spans(spans: Sequence[SpanEvent]) -> Drawing | None:
    """A lane a rank over the milliseconds of the step; None where no step was watched."""
    if not spans:
        return None
    start, end = min(each.start for each in spans), max(each.end for each in spans)
    milliseconds = max(_MILLISECONDS * (end - start), 1e-3)
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
    canvas, height = draw_lanes(WIDE, lanes, milliseconds, "busy", "milliseconds of the step")
    picture = _picture(canvas, height, spans, busy, end - start)
    return as_drawing(picture, f"gantt-{spans[0].step}", "Measured", picture.says)


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
    used = [what for what in _NAMES if any(span.what == what for span in spans)]
    key = [(TONES.get(what, what), _NAMES[what]) for what in used]
    head = ("Rank", *(f"{_NAMES[what]}, ms" for what in used), "Passes in order")
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


def draw_ideal(spec: RunSpec) -> Drawing | None:
    """The same schedule by a logical clock: a forward takes one, each of its gradients another. None if not drawn."""
    schedule, micro_batches, virtual_stages = _as_scheduled(spec)
    record = {
        "kind": "pipeline",
        "title": "By a logical clock",
        "finding": "A forward takes one, a backward two.",
        "schedule": schedule,
        "stages": spec.parallel.pipeline,
        "micro_batches": micro_batches,
        "virtual_stages": virtual_stages,
    }
    try:
        ideal = Pipeline.model_validate(record)
        return as_drawing(draw_pipeline(ideal, WIDE), "gantt-ideal", ideal.title, ideal.finding)
    except ValueError:  # too many to draw, or a schedule without a picture
        return None


def _as_scheduled(spec: RunSpec) -> tuple[str, int, int]:
    """The schedule of the step that is drawn, its micro-batches and the stages of a rank."""
    if isinstance(spec.options, ScheduleOptions):
        chosen = spec.options
        return chosen.schedule, chosen.micro_batches[-1], chosen.stages_a_rank(chosen.schedule)
    return spec.parallel.schedule, spec.training.micro_batches, spec.parallel.virtual_stages


def chrome_trace(spans: Iterable[SpanEvent]) -> dict[str, object]:
    """The spans in the trace event format that Chrome and Perfetto open: a process a rank, a thread a stage.

    Collectives have threads of their own, as many as were under way at once, for spans of a thread may not overlap.
    """
    ordered = sorted(spans, key=lambda span: span.start)
    free_at: dict[tuple[int, int], float] = {}  # by rank and thread
    events = [
        {
            "name": _trace_name(span),
            "cat": _NAMES[span.what],
            "ph": "X",
            "ts": span.start * _TRACE_MICROSECONDS,
            "dur": (span.end - span.start) * _TRACE_MICROSECONDS,
            "pid": span.rank,
            "tid": _thread(span, free_at),
            "args": {name: value for name in _TRACE_ARGUMENTS if (value := getattr(span, name)) is not None},
        }
        for span in ordered
    ]
    return {"traceEvents": [*_thread_names(events), *events], "displayTimeUnit": "ms"}


def _thread(span: SpanEvent, free_at: dict[tuple[int, int], float]) -> int:
    if span.what != COMMUNICATION:
        return span.stage or 0
    thread = _FIRST_THREAD
    while free_at.get((span.rank, thread), 0.0) > span.start:
        thread += 1
    free_at[span.rank, thread] = span.end
    return thread


def _thread_names(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "name": "thread_name",
            "ph": "M",
            "pid": rank,
            "tid": thread,
            "args": {"name": f"stage {thread}" if thread < _FIRST_THREAD else "communication"},
        }
        for rank, thread in sorted({(event["pid"], event["tid"]) for event in events})
    ]


def _trace_name(span: SpanEvent) -> str:
    if span.what == COMMUNICATION:
        return f"{span.operation} over {span.group}"
    batch = "" if span.micro_batch is None else f" {span.micro_batch}"
    return f"{_NAMES[span.what]}{batch}"
