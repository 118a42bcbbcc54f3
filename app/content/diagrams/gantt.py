"""Lanes of passes over the time of a step: one picture for a schedule by a logical clock and for a watched run.

A lane a rank. Idle time is hatched, communication is a strip below what is computed, a number is a micro-batch, and a
column at the right says one thing of each rank. Pictures of one width have their times at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.content.diagrams.svg import Canvas, nice_ticks, number_text

WIDE = 760.0  # of two pictures to be compared, one above the other
TONES = {"F": "forward", "B": "backward", "W": "weight", "optimizer": "optimizer"}
IDLE, COMMUNICATION = "idle", "communication"
DIGIT = 7.0  # how wide a digit of a pass is
STRIPED = 5.0  # lines in narrower passes would only flicker
_LEFT, _RIGHT, _TOP, _ROW, _GAP, _STRIP = 46.0, 40.0, 24.0, 24.0, 6.0, 5.0
_LEAST = 0.5  # what took no time to speak of is still to be seen


@dataclass(frozen=True)
class Bar:
    """What a rank did from `start` to `end`: a key of `TONES`, idle or communication.

    A pass has a line for every chunk its rank holds before this one.
    """

    what: str
    start: float
    end: float
    text: str = ""
    chunk: int = 0


@dataclass(frozen=True)
class Lane:
    """A rank's bars in order of time, and what the column at the right says of it."""

    rank: int
    bars: Sequence[Bar]
    note: str


def width_for(scale: float, end: float) -> float:
    """How wide a picture is whose unit of time takes `scale` pixels."""
    return scale * end + _LEFT + _RIGHT


def scale_of(width: float, end: float) -> float:
    """Pixels a unit of time takes in a picture of `width` whose step ends at `end`."""
    return (width - _LEFT - _RIGHT) / end


def draw_lanes(width: float, lanes: Sequence[Lane], end: float, column: str, axis: str) -> tuple[Canvas, float]:
    """The picture so far, and its height. Times run from 0 to `end`, in the unit that `axis` names."""
    canvas, scale = Canvas(width), scale_of(width, end)
    strips = any(bar.what == COMMUNICATION for lane in lanes for bar in lane.bars)
    pitch = _ROW + _GAP + (_STRIP + 1 if strips else 0)
    canvas.label(width, 14, column, "t3", "end")
    for index, lane in enumerate(lanes):
        y = _TOP + index * pitch
        canvas.label(0, y + 16, f"Rank {lane.rank}")
        for bar in lane.bars:
            _bar(canvas, bar, _LEFT + bar.start * scale, y, (bar.end - bar.start) * scale)
        canvas.label(width, y + 16, lane.note, "d-strong", "end")
    bottom = _TOP + len(lanes) * pitch
    _time_axis(canvas, end, scale, bottom, axis)
    return canvas, bottom + 38


def _bar(canvas: Canvas, bar: Bar, x: float, y: float, width: float) -> None:
    if bar.what == IDLE:
        canvas.hatched(x, y, max(width, _LEAST), _ROW)
    elif bar.what == COMMUNICATION:
        canvas.box(x, y + _ROW + 1, max(width, _LEAST), _STRIP, COMMUNICATION)
    else:
        _pass(canvas, bar, x, y, width)


def _pass(canvas: Canvas, bar: Bar, x: float, y: float, width: float) -> None:
    tone = TONES[bar.what]
    canvas.box(x + min(0.5, width / 4), y, max(width - 1, _LEAST), _ROW, tone)
    for stripe in range(bar.chunk if width >= STRIPED else 0):
        height = y + _ROW - 3.5 - 3 * stripe
        canvas.line([(x + 2, height), (x + width - 2, height)], f"d-{tone}")
    if bar.text and width >= DIGIT * len(bar.text) + 1:
        canvas.label(x + width / 2, y + (13 if bar.chunk else 16), bar.text, f"d-on-{tone}", "middle")


def _time_axis(canvas: Canvas, end: float, scale: float, y: float, says: str) -> None:
    canvas.line([(_LEFT, y), (_LEFT + end * scale, y)], "ax")
    for tick in nice_ticks(0, end, 8):
        if tick <= end * (1 + 1e-9):
            canvas.line([(_LEFT + tick * scale, y), (_LEFT + tick * scale, y + 4)], "ax")
            canvas.label(_LEFT + tick * scale, y + 17, number_text(tick), "t3", "middle")
    canvas.label(_LEFT, y + 34, says, "t3")
