"""A rank's lane of the film strip: what theory plans, what it computed, and what it sent and received."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from app.content.film.axis import WIDTH, Axis, box, path
from app.content.film.shown import Lane
from app.lab.film.expected import Expected
from app.lab.film.pieces import TONES, RankStep, Step
from app.lab.film.words import Words
from app.units import digits

_GHOST, _WORK, _TRANSFER = (0.0, 4.0), (7.0, 24.0), (27.0, 35.0)  # top and bottom of what a lane has
_LANE_HEIGHT = 36
_LEAST_LATE = 0.004  # of the step: less waiting for the last rank is not to be seen
_LEAST_LABEL = 12.0  # per mille: a narrower pass has no room for its number


def lane_of(rank: RankStep, words: Words, schedule: Expected | None, step: Step, axis: Axis) -> Lane:
    svg = Markup('<svg viewBox="0 0 1000 {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>').format(
        _LANE_HEIGHT, Markup("").join(_marks(rank, schedule, axis))
    )
    late = []
    for piece in rank.moved:
        seconds = words.late_seconds(piece)
        if seconds > _LEAST_LATE * step.seconds:
            late.append((axis.percent(piece.start), axis.percent(seconds)))
        unwatched = words.unwatched_seconds(piece)
        if unwatched > _LEAST_LATE * step.seconds:
            late.append((axis.percent(piece.end - unwatched), axis.percent(unwatched)))
    labels = tuple(
        (axis.percent(piece.start), axis.percent(piece.seconds), piece.kind, str(piece.micro_batch))
        for piece in rank.computed
        if piece.layer is None and piece.micro_batch is not None and piece.kind != "weight"
        if WIDTH * piece.seconds / axis.end >= _LEAST_LABEL
    )
    return Lane(rank.rank, f"Rank {rank.rank}", still_of(rank, step), svg, tuple(late), labels)


def still_of(rank: RankStep, step: Step) -> str:
    """For how much of the step a rank did nothing."""
    return f"{digits(100 * (1 - rank.busy_seconds / step.seconds), 3)} % idle"


def _marks(rank: RankStep, schedule: Expected | None, axis: Axis) -> Iterator[Markup]:
    planned = schedule.ranks[rank.rank] if schedule is not None and rank.rank < len(schedule.ranks) else ()
    for tone in dict.fromkeys(TONES.values()):
        mine = [each for each in planned if TONES[each.what] == tone]
        yield path(f"ghost {tone}", "".join(box(axis, e.start_seconds, e.end_seconds, _GHOST) for e in mine))
        boxes = "".join(box(axis, start, end, _WORK) for kind, start, end in rank.busy if kind == tone)
        yield path(tone, boxes)
    yield path("communication", "".join(box(axis, each.start, each.end, _TRANSFER) for each in rank.moved))
    cuts = [f"M{axis.x(each.start_seconds)} {_GHOST[0]:g}V{_GHOST[1]:g}" for each in planned]
    cuts += [f"M{axis.x(each.start)} {_WORK[0]:g}V{_WORK[1]:g}" for each in rank.computed]
    cuts += [f"M{axis.x(each.start)} {_TRANSFER[0]:g}V{_TRANSFER[1]:g}" for each in rank.moved]
    yield path("cuts", "".join(cuts))
