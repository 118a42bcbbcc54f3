"""A ring all-reduce between two steps: what each rank holds of every chunk, and what was just sent."""

from __future__ import annotations

from collections.abc import Sequence

from app.content.diagrams.schema import Ring
from app.content.diagrams.svg import NARROW, Canvas, Picture, Point
from app.theory.collectives import Message, simulate_ring_all_reduce

_NODE, _PITCH, _STRIP = 58.0, 92.0, 22.0
Held = list[list[frozenset[int]]]  # by rank and chunk: whose values the chunk is the sum of


def ring_state(ranks: int, phase: str, step: int) -> tuple[Held, tuple[Message, ...]]:
    """What ranks hold after `step` steps of a half of the all-reduce, and the messages of that step.

    In the all-gather, a chunk a rank has not received yet counts as not held, though a partial sum lies there.
    """
    messages = simulate_ring_all_reduce(1.0, ranks, 1.0).messages
    half = ranks * (ranks - 1)
    first = [[frozenset({rank}) for _ in range(ranks)] for rank in range(ranks)]
    scattered = _played(first, messages[:half] if phase == "all-gather" else messages[: step * ranks], ranks)
    if phase == "reduce-scatter":
        return scattered, messages[max(0, step - 1) * ranks : step * ranks]
    begun = [[held if len(held) == ranks else frozenset() for held in each] for each in scattered]
    gathered = _played(begun, messages[half : half + step * ranks], ranks)
    return gathered, messages[half + max(0, step - 1) * ranks : half + step * ranks]


def _played(held: Held, messages: Sequence[Message], ranks: int) -> Held:
    now = [list(each) for each in held]
    for first in range(0, len(messages), ranks):
        before = [list(each) for each in now]  # all ranks of a step send at once
        for message in messages[first : first + ranks]:
            for chunk in message.pieces:
                now[message.target][chunk] |= before[message.source][chunk]
    return now


def draw_ring(record: Ring) -> Picture:
    """Ranks clockwise from the top left; a cell is as full as the chunk has contributions."""
    held, sent = ring_state(record.ranks, record.phase, record.step)
    canvas = Canvas()
    cell = min(22.0, 104.0 / record.ranks)
    width = record.ranks * cell + 12
    places = _places(record.ranks, width)
    for rank, place in enumerate(places):
        target = (rank + 1) % record.ranks
        message = next((each for each in sent if each.source == rank), None)
        _hop(canvas, place, places[target], width, f"chunk {message.pieces[0]}" if message else "")
    for rank, place in enumerate(places):
        got = next((each.pieces[0] for each in sent if each.target == rank), None)
        _node(canvas, place, f"Rank {rank}", held[rank], cell, got)
    rows = (record.ranks + 1) // 2
    return canvas.picture(
        (rows - 1) * _PITCH + _NODE + 4,
        _sentence(record, held),
        ("Rank", *(f"Chunk {chunk}" for chunk in range(record.ranks))),
        ((str(rank), *(_cell(each, record.ranks) for each in held[rank])) for rank in range(record.ranks)),
        (("gradients", "share of the ranks summed into the chunk"), ("d-got", "received in this step"))
        if record.step
        else (("gradients", "share of the ranks summed into the chunk"),),
    )


def _places(ranks: int, width: float) -> list[Point]:
    """Top left corners: rank 0 top left, down the right side, up the left."""
    rows = (ranks + 1) // 2
    right = [(NARROW - width - 1, row * _PITCH + 1) for row in range(rows)]
    left = [(1.0, (rows - 1 - index) * _PITCH + 1) for index in range(ranks - 1 - rows)]
    return [(1.0, 1.0), *right, *left]


def _node(
    canvas: Canvas, place: Point, name: str, held: Sequence[frozenset[int]], cell: float, got: int | None
) -> None:
    x, y = place
    canvas.box(x, y, len(held) * cell + 12, _NODE, "d-node", 4)
    canvas.label(x + 6, y + 14, name, "d-strong")
    for chunk, whose in enumerate(held):
        left = x + 6 + chunk * cell
        full = (_STRIP - 2) * len(whose) / len(held)
        canvas.box(left + 1, y + 20, cell - 2, _STRIP, "d-got" if chunk == got else "d-empty")
        if whose:
            canvas.box(left + 2, y + 21 + _STRIP - 2 - full, cell - 4, full, "gradients")
        canvas.label(left + cell / 2, y + 54, str(chunk), "t3", "middle")


def _hop(canvas: Canvas, source: Point, target: Point, width: float, text: str) -> None:
    """The arrow from one rank to the next, and what went along it."""
    kind = "d-line communication" if text else "d-line"
    (x, y), (to_x, to_y) = source, target
    if y == to_y:  # across
        ends = (x + width + 4, to_x - 4) if x < to_x else (x - 4, to_x + width + 4)
        canvas.arrow([(ends[0], y + _NODE / 2), (ends[1], y + _NODE / 2)], kind)
        canvas.label((ends[0] + ends[1]) / 2, y + _NODE / 2 - 6, text, "", "middle")
    elif x == to_x:  # down the right side, up the left
        down = to_y > y
        middle = x + width / 2
        ends = (y + _NODE + 4, to_y - 4) if down else (y - 4, to_y + _NODE + 4)
        canvas.arrow([(middle, ends[0]), (middle, ends[1])], kind)
        side = (middle - 8, "end") if x > NARROW / 2 else (middle + 8, "start")
        canvas.label(side[0], (ends[0] + ends[1]) / 2 + 4, text, "", side[1])
    else:  # three ranks have nobody at the bottom left
        corner = to_x + width / 2
        canvas.arrow([(x - 4, y + _NODE / 2), (corner, y + _NODE / 2), (corner, to_y + _NODE + 4)], kind)
        canvas.label((x + corner) / 2, y + _NODE / 2 - 6, text, "", "middle")


def _cell(whose: frozenset[int], ranks: int) -> str:
    return f"sum of {len(whose)} of {ranks}" if whose else "not yet"


def _sentence(record: Ring, held: Held) -> str:
    whole = [sum(len(each) == record.ranks for each in row) for row in held]
    when = f"After step {record.step} of {record.ranks - 1} of the {record.phase}"
    if not record.step:
        when = f"Before the first step of the {record.phase}"
    chunks = f"{whole[0]} finished chunk{'' if whole[0] == 1 else 's'}" if any(whole) else "no finished chunk yet"
    most = max(len(each) for row in held for each in row)
    return f"{when}, every rank holds {chunks}; the fullest chunk sums {most} of {record.ranks} ranks."
