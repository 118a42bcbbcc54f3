"""One step of a run as lanes over time, a lane a rank, so that steps of several runs stand above each other.

It is the film's step: what is busy, what is a pass and what a collective is decided in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.content.diagrams.drawing import Drawing, as_drawing
from app.content.diagrams.gantt import COMMUNICATION, IDLE, WIDE, Bar, Lane, draw_lanes
from app.content.diagrams.gantt import TONES as GANTT_TONES
from app.content.diagrams.svg import Canvas, Picture
from app.lab.film.pieces import Interval, RankStep, Step, merged, without
from app.lab.trace import NAMES
from app.units import digits, factor_of

_MILLISECONDS = 1 / factor_of("ms")  # in a second
_WHAT = {tone: what for what, tone in GANTT_TONES.items()}


def draw_step(step: Step, name: str, least_seconds: float = 0.0) -> Drawing:
    """A lane a rank over the milliseconds of the step, and over `least_seconds` at least, so that several have one
    axis."""
    axis = _MILLISECONDS * max(step.seconds, least_seconds)
    lanes = [
        Lane(rank.rank, list(_bars(rank, step.seconds)), f"{digits(100 * rank.busy_seconds / step.seconds, 2)} %")
        for rank in step.ranks
    ]
    canvas, height = draw_lanes(WIDE, lanes, axis, "busy", "milliseconds of the step")
    picture = _picture(canvas, height, step)
    return as_drawing(picture, f"{name}-{step.number}", "Measured", picture.says)


def _bars(rank: RankStep, seconds: float) -> Iterator[Bar]:
    """What it computed, where it stood still meanwhile, and its collectives, over a step of so many seconds."""
    for start, end in _still(rank, seconds):
        yield Bar(IDLE, _MILLISECONDS * start, _MILLISECONDS * end)
    for tone, start, end in rank.busy:
        yield Bar(_WHAT[tone], _MILLISECONDS * start, _MILLISECONDS * end, _micro_batch(rank, tone, start, end))
    for piece in rank.moved:
        yield Bar(COMMUNICATION, _MILLISECONDS * piece.start, _MILLISECONDS * piece.end)


def _still(rank: RankStep, seconds: float) -> list[Interval]:
    return without((0.0, seconds), ((start, end) for _, start, end in rank.busy))


def _micro_batch(rank: RankStep, tone: str, start: float, end: float) -> str:
    """Of a whole pass: single layers have no room for it, and weight gradients are a backward's."""
    whole = (each for each in rank.computed if each.kind == tone != "weight" and each.layer is None)
    found = (each.micro_batch for each in whole if each.start <= start and end <= each.end)
    return next((str(each) for each in found if each is not None), "")


def _picture(canvas: Canvas, height: float, step: Step) -> Picture:
    many = len(step.ranks)
    share = sum(rank.busy_seconds for rank in step.ranks) / (many * step.seconds)
    says = (
        f"Step {step.number} took {digits(_MILLISECONDS * step.seconds)} ms on {many} rank{'s' if many > 1 else ''}, "
        f"which were busy {digits(100 * share, 3)} % of it."
    )
    by_rank = [(rank, _milliseconds_by_kind(rank, step.seconds)) for rank in step.ranks]
    used = [what for what in NAMES if any(what in found for _, found in by_rank)]
    key = [(GANTT_TONES.get(what, what), NAMES[what]) for what in used]
    head = ("Rank", *(f"{NAMES[what]}, ms" for what in used), "Passes in order")
    rows = (
        (str(rank.rank), *(digits(found.get(what, 0.0)) for what in used), " ".join(_order(rank)))
        for rank, found in by_rank
    )
    return canvas.picture(height, says, head, rows, key)


def _milliseconds_by_kind(rank: RankStep, seconds: float) -> Mapping[str, float]:
    """How long anything of a kind was going on: several collectives may be under way at once."""
    found = {IDLE: _MILLISECONDS * sum(end - start for start, end in _still(rank, seconds))}
    for tone, start, end in rank.busy:
        found[_WHAT[tone]] = found.get(_WHAT[tone], 0.0) + _MILLISECONDS * (end - start)
    if rank.moved:
        under_way = merged((piece.start, piece.end) for piece in rank.moved)
        found[COMMUNICATION] = _MILLISECONDS * sum(end - start for start, end in under_way)
    return found


def _order(rank: RankStep) -> Iterator[str]:
    """The passes, once each: in a watched one every layer is a piece of it."""
    passes = {each.key.partition(".")[0]: each for each in reversed(rank.computed) if each.key[0] in "FBW"}
    mine = sorted(passes.items(), key=lambda each: each[1].start)
    stages = len({each.stage for _, each in mine}) > 1
    for key, each in mine:
        yield f"{each.stage if stages else ''}{key[0]}{'' if each.micro_batch is None else each.micro_batch}"
