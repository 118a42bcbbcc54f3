"""A pipeline schedule as the simulator plays it: a backward takes two forwards, each of its gradients one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.content.diagrams.schema import Pipeline
from app.content.diagrams.svg import NARROW, Canvas, Picture, nice_ticks, number_text
from app.theory.pipeline import ChunkSeconds, Order, Pass, PipelineRun, chunk_of, order, simulate_pipeline
from app.theory.simulator import Span
from app.units import digits

_LEFT, _RIGHT, _TOP, _ROW, _PITCH, _WIDEST = 50.0, 46.0, 24.0, 24.0, 30.0, 600.0
_STRIPED = 5.0  # lines in narrower passes would only flicker
_PASSES = ("Passes in order", "Passes in order: chunk, pass, micro-batch")
_TONES = {"F": "forward", "B": "backward", "W": "weight"}


def played(record: Pipeline) -> tuple[Order, PipelineRun]:
    """The schedule's passes and their times, in forwards of one micro-batch through one stage."""
    passes = order(record.schedule, record.stages, record.micro_batches, record.chunks)
    each = 1 / record.chunks
    return passes, simulate_pipeline(passes, [ChunkSeconds(each, each, each)] * (record.stages * record.chunks))


def idle_gaps(spans: Sequence[Span], end: float) -> Iterator[tuple[float, float]]:
    """From when to when a rank does nothing."""
    free = 0.0
    for span in spans:
        if span.start_seconds - free > 1e-9:
            yield free, span.start_seconds
        free = span.end_seconds
    if end - free > 1e-9:
        yield free, end


def draw_pipeline(record: Pipeline) -> Picture:
    """A lane a rank; idle time is hatched; numbers are micro-batches; the right column is the most a rank keeps."""
    passes, run = played(record)
    digit = 15.0 if record.micro_batches > 10 else 11.0
    wanted = digit * record.chunks * run.step_seconds + _LEFT + _RIGHT
    canvas = Canvas(max(NARROW, min(wanted, _WIDEST)))
    scale = (canvas.width - _LEFT - _RIGHT) / run.step_seconds
    for rank, spans in enumerate(run.spans):
        y = _TOP + rank * _PITCH
        canvas.label(0, y + 16, f"Rank {rank}")
        for start, end in idle_gaps(spans, run.step_seconds):
            canvas.hatched(_LEFT + start * scale, y, (end - start) * scale, _ROW)
        held = chunk_of(record.schedule, rank, record.stages, record.chunks)
        for each, span in zip(passes[rank], spans, strict=True):
            _pass(canvas, each, span, held.index(each.chunk), y, scale)
        canvas.label(canvas.width, y + 16, digits(run.peak_in_flight[rank]), "d-strong", "end")
    canvas.label(canvas.width, 14, "keeps", "t3", "end")
    bottom = _TOP + record.stages * _PITCH
    _time_axis(canvas, run.step_seconds, scale, bottom)
    return canvas.picture(
        bottom + 38,
        f"The step takes {digits(run.step_seconds)} forwards; ranks idle {digits(100 * run.idle_fraction, 3)} % of it. "
        f"A rank keeps at most {digits(max(run.peak_in_flight))} {_what(record)}.",
        ("Rank", _PASSES[record.chunks > 1], "Busy", "Idle", "Keeps at most"),
        _rows(passes, run, record.chunks),
        _key(record, passes, scale),
    )


def _pass(canvas: Canvas, each: Pass, span: Span, chunk: int, y: float, scale: float) -> None:
    x, width = _LEFT + span.start_seconds * scale, (span.end_seconds - span.start_seconds) * scale
    tone = _TONES[each.kind]
    canvas.box(x + 0.5, y, width - 1, _ROW, tone)
    stripes = chunk if width >= _STRIPED else 0
    for stripe in range(stripes):  # a line for every chunk the rank holds before this one
        canvas.line([(x + 2, y + _ROW - 3.5 - 3 * stripe), (x + width - 2, y + _ROW - 3.5 - 3 * stripe)], f"d-{tone}")
    text = str(each.micro_batch)
    if each.kind != "W" and width >= 7 * len(text) + 1.5:
        canvas.label(x + width / 2, y + (16 if chunk == 0 else 13), text, f"d-on-{tone}", "middle")


def _time_axis(canvas: Canvas, end: float, scale: float, y: float) -> None:
    canvas.line([(_LEFT, y), (_LEFT + end * scale, y)], "ax")
    for tick in nice_ticks(0, end, 8):
        if tick <= end + 1e-9:
            canvas.line([(_LEFT + tick * scale, y), (_LEFT + tick * scale, y + 4)], "ax")
            canvas.label(_LEFT + tick * scale, y + 17, number_text(tick), "t3", "middle")
    canvas.label(_LEFT, y + 34, "time, in forwards of one stage", "t3")


def _what(record: Pipeline) -> str:
    return "micro-batches" if record.chunks == 1 else f"chunks of a micro-batch, {record.chunks} a stage"


def _rows(passes: Order, run: PipelineRun, chunks: int) -> Iterator[tuple[str, ...]]:
    for rank, busy in enumerate(run.busy_seconds):
        names = (str(each) if chunks > 1 else f"{each.kind}{each.micro_batch}" for each in passes[rank])
        idle = digits(run.step_seconds - busy)
        yield str(rank), " ".join(names), digits(busy), idle, digits(run.peak_in_flight[rank])


def _key(record: Pipeline, passes: Order, scale: float) -> Iterator[tuple[str, str]]:
    split = any(each.kind == "W" for each in passes[0])
    yield "forward", "Forward"
    yield "backward", "Backward, input gradient" if split else "Backward"
    if split:
        yield "weight", "Backward, weight gradient"
    yield "idle", "Idle"
    if record.chunks > 1 and scale * (1 if split else 2) / record.chunks >= _STRIPED:
        yield "d-stripes", "a line for each earlier chunk of the rank"
