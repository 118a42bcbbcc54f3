"""The film strip of a run's page: lanes of all ranks over one axis of time, and one rank's reel with its memory.

Positions are drawn in per mille of the step; text is not part of any drawing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.content.diagrams.svg import nice_ticks, number_text
from app.content.film.axis import Axis
from app.content.film.shown import COMPONENTS, Film, Moment, Reel, Row
from app.core.charts import Scale, byte_scale
from app.lab.film.expected import Expected, expected, is_pipelined
from app.lab.film.memory import Memory
from app.lab.film.pieces import Piece, RankStep, Step, step_of
from app.lab.film.strip import lane_of, still_of
from app.lab.film.words import Words, finding, is_message, milliseconds, slowest
from app.lab.view import RunView
from app.theory.lab_runs import rank_theory, world
from app.units import bytes_text, digits
from labs.spec import RunSpec
from labs.spec.events import DetailEvent

_TONES = (("forward", "Forward"), ("backward", "Backward"), ("weight", "Weight gradients"), ("optimizer", "Optimizer"))


def film_of(spec: RunSpec, view: RunView, rank: int = 0) -> Film | None:
    """The watched step of a run with `rank` in the reel; None where no step was watched, or it has no such rank."""
    step = step_of(spec, view.spans, view.details)
    if step is None or not 0 <= rank < len(step.ranks):
        return None
    words, schedule = Words(spec, step), expected(spec, step)
    end = max(step.seconds, schedule.seconds if schedule else 0.0)
    axis = Axis(end)
    scale = byte_scale(_totals(step))
    used = {piece.kind for each in step.ranks for piece in (*each.computed, *each.moved)}
    tones = [(tone, name) for tone, name in _TONES if tone in used]
    return Film(
        number=step.number,
        title=finding(spec, step, words),
        says=_says(spec, step, schedule),
        milliseconds=1000 * end,
        lanes=tuple(lane_of(each, words, schedule, step, axis) for each in step.ranks),
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
        late_says="Sent, or in one and waiting: over by its end at the latest"
        if any(is_message(piece) for each in step.ranks for piece in each.moved)
        else "In one, waiting for the last rank",
    )


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


def _reel(spec: RunSpec, step: Step, rank: RankStep, words: Words, axis: Axis, scale: Scale) -> Reel:
    at = [each - step.since for each in rank.detail.at] if rank.detail else []
    held = _held(rank.detail) if rank.detail else []
    if at and at[0] > 0:  # what was there when it was first looked at was there before
        at, held = [0.0, *at], [held[0], *held]
    picture = Memory(at, held, step, axis, scale)
    every = sorted((*rank.computed, *rank.moved), key=lambda piece: (piece.start, piece.moved is None))
    moments = tuple(_moment(piece, rank, step, words, picture) for piece in every)
    theory = _theory_bytes(spec, rank.rank)
    return Reel(
        rank=rank.rank,
        name=f"Rank {rank.rank}",
        still=still_of(rank, step),
        moments=moments,
        at=tuple(round(1000 * each, 3) for each in at),
        held=tuple(held),
        memory=picture.drawn(),
        memory_says=picture.says(rank.rank),
        theory_percent=scale.percent(theory) if theory and held and theory <= scale.maximum else "",
        theory_says=f"Theory’s model state, {bytes_text(theory)}" if theory else "",
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


def _moment(piece: Piece, rank: RankStep, step: Step, words: Words, memory: Memory) -> Moment:
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
    if words.unwatched_seconds(piece) > 0:
        took = f"≤ {took}"
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
