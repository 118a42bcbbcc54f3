"""Lanes of work over time: what runs beside what, and how much communication no compute hides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.content.diagrams.schema import Overlap
from app.content.diagrams.svg import NARROW, Canvas, Picture, nice_ticks, number_text, text_width
from app.content.live import ExpressionError, Expressions, at
from app.units import digits

_EDGE, _WIDEST, _BAR, _PITCH = 12.0, 640.0, 18.0, 62.0
_WORDS = {"compute": "compute", "communication": "communication", "idle": "idle", "memory": "memory traffic"}


@dataclass(frozen=True)
class Work:
    """A span with its times evaluated."""

    label: str
    start: float
    end: float
    tone: str


def works(record: Overlap, expressions: Expressions) -> list[list[Work]]:
    """The spans of every lane in order of time. Raises ExpressionError for one that ends early or overlaps the next."""
    lanes = []
    for index, lane in enumerate(record.lanes):
        found = []
        for place, span in enumerate(lane.spans):
            with at("lanes", index, "spans", place):
                start, end = (float(expressions.number(text)) for text in (span.start, span.end))
                if not 0 <= start < end:
                    raise ExpressionError(f"{span.label} runs from {start:g} to {end:g}: it must end after it starts")
                found.append(Work(span.label, start, end, span.tone))
        found.sort(key=lambda work: work.start)
        for before, after in pairwise(found):
            if after.start < before.end - 1e-9:
                with at("lanes", index):
                    raise ExpressionError(f"{after.label} starts at {after.start:g}, before {before.label} ends")
        lanes.append(found)
    return lanes


def exposed(lanes: Iterable[Sequence[Work]]) -> tuple[float, float]:
    """How long anything communicates, and how much of that while nothing computes."""
    spans = [work for lane in lanes for work in lane]
    edges = sorted({time for work in spans for time in (work.start, work.end)})
    talking = alone = 0.0
    for start, end in pairwise(edges):
        tones = {work.tone for work in spans if work.start <= start and end <= work.end}
        if "communication" in tones:
            talking += end - start
            alone += 0 if "compute" in tones else end - start
    return talking, alone


def draw_overlap(record: Overlap, expressions: Expressions) -> Picture:
    """A lane under its name; each span's label stands over it where it fits. Raises ExpressionError."""
    lanes = works(record, expressions)
    last = max(work.end for lane in lanes for work in lane)
    ticks = nice_ticks(0, last, 7)
    canvas = Canvas(_width(lanes, ticks[-1]))
    scale = (canvas.width - 2 * _EDGE) / ticks[-1]
    for index, (lane, found) in enumerate(zip(record.lanes, lanes, strict=True)):
        y = index * _PITCH
        canvas.label(_EDGE, y + 12, lane.label, "d-strong")
        _spans(canvas, found, y, scale)
    bottom = len(lanes) * _PITCH + 2
    canvas.line([(_EDGE, bottom), (canvas.width - _EDGE, bottom)], "ax")
    for tick in ticks:
        canvas.line([(_EDGE + tick * scale, bottom), (_EDGE + tick * scale, bottom + 4)], "ax")
        canvas.label(_EDGE + tick * scale, bottom + 17, number_text(tick), "t3", "middle")
    canvas.label(_EDGE, bottom + 34, record.axis, "t3")
    tones = {work.tone for lane in lanes for work in lane}
    return canvas.picture(
        bottom + 38,
        _sentence(lanes, last, record.axis),
        ("Lane", "What", "From", "To", "Is"),
        (
            (lane.label, work.label, number_text(work.start), number_text(work.end), _WORDS[work.tone])
            for lane, found in zip(record.lanes, lanes, strict=True)
            for work in found
        ),
        ((tone, word.capitalize()) for tone, word in _WORDS.items() if tone in tones),
    )


def _width(lanes: list[list[Work]], last: float) -> float:
    """As wide as the labels need, from a phone's width to where one would rather read the table."""
    needed = NARROW
    for lane in lanes:
        ends = [work.start for work in lane[1:]] + [last]
        for work, end in zip(lane, ends, strict=True):
            needed = max(needed, (text_width(work.label) + 6) * last / (end - work.start) + 2 * _EDGE)
    return min(needed, _WIDEST)


def _spans(canvas: Canvas, works: list[Work], y: float, scale: float) -> None:
    ends = [work.start for work in works[1:]] + [canvas.width / scale]
    for work, end in zip(works, ends, strict=True):
        x, width = _EDGE + work.start * scale, (work.end - work.start) * scale
        if work.tone == "idle":
            canvas.hatched(x, y + 34, max(width - 1, 1), _BAR)
        else:
            canvas.box(x, y + 34, max(width - 1, 1), _BAR, work.tone)
        if text_width(work.label) <= (end - work.start) * scale:
            canvas.label(x, y + 29, work.label)


def _sentence(lanes: list[list[Work]], last: float, axis: str) -> str:
    talking, alone = exposed(lanes)
    ends = f"The last work ends at {digits(last)} ({axis})."
    if not talking:
        return ends
    return f"{ends} Of {digits(talking)} of communication, {digits(alone)} run while nothing computes."
