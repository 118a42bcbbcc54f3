"""A pipeline schedule as the simulator plays it: a backward takes two forwards, each of its gradients one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.content.diagrams.gantt import DIGIT, IDLE, STRIPED, Bar, Lane, draw_lanes, scale_of, width_for
from app.content.diagrams.schema import Pipeline
from app.content.diagrams.svg import NARROW, Picture
from app.theory.pipeline import ChunkSeconds, Order, PipelineRun, chunk_of, order, simulate_pipeline
from app.theory.simulator import Span
from app.units import digits

_WIDEST = 600.0
_PASSES = ("Passes in order", "Passes in order: chunk, pass, micro-batch")


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


def draw_pipeline(record: Pipeline, width: float | None = None) -> Picture:
    """A lane a rank, with the most it keeps at its right; as wide as its numbers need where no `width` is given."""
    passes, run = played(record)
    wide = width or _width(record, run.step_seconds)
    canvas, height = draw_lanes(
        wide,
        [_lane(record, rank, passes, run) for rank in range(len(run.spans))],
        run.step_seconds,
        "keeps",
        "time, in forwards of one stage",
    )
    return canvas.picture(
        height,
        f"The step takes {digits(run.step_seconds)} forwards; ranks idle {digits(100 * run.idle_fraction, 3)} % of it. "
        f"A rank keeps at most {digits(max(run.peak_in_flight))} {_what(record)}.",
        ("Rank", _PASSES[record.chunks > 1], "Busy", "Idle", "Keeps at most"),
        _rows(passes, run, record.chunks),
        _key(record, passes, scale_of(wide, run.step_seconds)),
    )


def _width(record: Pipeline, end: float) -> float:
    """That of a phone where every forward has room for its number there, else as wide as is good to read."""
    digits_each = 2 if record.micro_batches > 10 else 1
    least = width_for((DIGIT * digits_each + 1) * record.chunks, end)
    good = width_for((11.0 if digits_each == 1 else 15.0) * record.chunks, end)
    return NARROW if least <= NARROW else min(good, _WIDEST)


def _lane(record: Pipeline, rank: int, passes: Order, run: PipelineRun) -> Lane:
    held = chunk_of(record.schedule, rank, record.stages, record.chunks)
    spans = run.spans[rank]
    bars = [Bar(IDLE, start, end) for start, end in idle_gaps(spans, run.step_seconds)]
    for each, span in zip(passes[rank], spans, strict=True):
        text = "" if each.kind == "W" else str(each.micro_batch)
        bars.append(Bar(each.kind, span.start_seconds, span.end_seconds, text, held.index(each.chunk)))
    return Lane(rank, bars, digits(run.peak_in_flight[rank]))


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
    if record.chunks > 1 and scale * (1 if split else 2) / record.chunks >= STRIPED:
        yield "d-stripes", "a line for each earlier chunk of the rank"
