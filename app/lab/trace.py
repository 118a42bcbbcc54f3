"""The spans of a run as a trace for other tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

from app.units import factor_of
from labs.spec.events import SpanEvent

_COMMUNICATION = "communication"
NAMES = {
    "F": "Forward",
    "B": "Backward",
    "W": "Weight gradients",
    "optimizer": "Optimizer",
    "idle": "Waiting",
    _COMMUNICATION: "Collectives and messages",
}
_TRACE_MICROSECONDS = 1 / factor_of("µs")  # in a second
_TRACE_ARGUMENTS = ("step", "micro_batch", "operation", "phase", "group", "payload_bytes", "wire_bytes")
_FIRST_THREAD = 1000  # of collectives; those below are stages


class TraceEvent(TypedDict):
    """An event of the trace event format, as far as ours have it: `X` is a span, `M` names a thread."""

    name: str
    ph: Literal["X", "M"]
    pid: int
    tid: int
    args: Mapping[str, object]
    cat: NotRequired[str]
    ts: NotRequired[float]  # microseconds, and so is the duration
    dur: NotRequired[float]


def chrome_trace(spans: Iterable[SpanEvent]) -> dict[str, object]:
    """The spans in the trace event format that Chrome and Perfetto open: a process a rank, a thread a stage.

    Collectives have threads of their own, as many as were under way at once, for spans of a thread may not overlap.
    """
    ordered = sorted(spans, key=lambda span: span.start)
    free_at: dict[tuple[int, int], float] = {}  # by rank and thread
    events: list[TraceEvent] = [
        {
            "name": _trace_name(span),
            "cat": NAMES[span.what],
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
    if span.what != _COMMUNICATION:
        return span.stage or 0
    thread = _FIRST_THREAD
    while free_at.get((span.rank, thread), 0.0) > span.start:
        thread += 1
    free_at[span.rank, thread] = span.end
    return thread


def _thread_names(events: Sequence[TraceEvent]) -> list[TraceEvent]:
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
    if span.what == _COMMUNICATION:
        return f"{span.operation} over {span.group}"
    batch = "" if span.micro_batch is None else f" {span.micro_batch}"
    return f"{NAMES[span.what]}{batch}"
