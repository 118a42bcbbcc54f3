"""What every rank holds before and after a collective, chunk by chunk."""

from __future__ import annotations

from app.content.diagrams.schema import Collective
from app.content.diagrams.svg import NARROW, Canvas, Picture
from app.theory.collectives import all_to_all_bytes, half_ring_bytes, ring_all_reduce_bytes
from app.units import digits

Grid = list[list[str]]  # by rank and chunk; "" is nothing
_LEFT, _TOP, _PITCH, _ROW = 48.0, 26.0, 30.0, 24.0

# Bytes a rank sends for each byte of the full tensor, around a ring or pair by pair; a broadcast's depend on the rank.
_SENT = {
    "all-reduce": ring_all_reduce_bytes,
    "reduce-scatter": half_ring_bytes,
    "all-gather": half_ring_bytes,
    "all-to-all": all_to_all_bytes,
}


def before_and_after(operation: str, ranks: int) -> tuple[Grid, Grid]:
    """A letter for every rank that contributes, a digit for every chunk; Σ is the sum over all ranks."""
    places = range(ranks)
    own = [[f"{chr(65 + rank)}{chunk}" for chunk in places] for rank in places]
    alone = [[f"{chr(65 + rank)}" if chunk == rank else "" for chunk in places] for rank in places]
    summed = [f"Σ{chunk}" for chunk in places]
    if operation == "all-reduce":
        return own, [list(summed) for _ in places]
    if operation == "reduce-scatter":
        return own, [[summed[chunk] if chunk == rank else "" for chunk in places] for rank in places]
    if operation == "all-gather":
        return alone, [[chr(65 + chunk) for chunk in places] for _ in places]
    if operation == "broadcast":
        return [list(own[0]) if rank == 0 else [""] * ranks for rank in places], [list(own[0]) for _ in places]
    return own, [[own[chunk][rank] for chunk in places] for rank in places]


def draw_collective(record: Collective) -> Picture:
    """Two grids side by side, a row a rank; dashed cells hold nothing."""
    before, after = before_and_after(record.operation, record.ranks)
    canvas = Canvas()
    cell = min(34.0, (NARROW - _LEFT - 30) / 2 / record.ranks)
    width = record.ranks * cell
    right = NARROW - width
    canvas.label(_LEFT, 14, "Before", "t3")
    canvas.label(right, 14, "After", "t3")
    for rank in range(record.ranks):
        y = _TOP + rank * _PITCH
        canvas.label(0, y + 16, f"Rank {rank}")
        for x, grid in ((_LEFT, before), (right, after)):
            for chunk, content in enumerate(grid[rank]):
                _cell(canvas, x + chunk * cell, y, cell - 2, content)
    middle = _TOP + (record.ranks - 1) * _PITCH / 2 + _ROW / 2
    canvas.arrow([(_LEFT + width + 4, middle), (right - 6, middle)], "d-line communication", 7)
    return canvas.picture(
        _TOP + record.ranks * _PITCH,
        _sentence(record),
        ("Rank", "Before", "After"),
        ((str(rank), _row(before[rank]), _row(after[rank])) for rank in range(record.ranks)),
    )


def _cell(canvas: Canvas, x: float, y: float, width: float, content: str) -> None:
    whole = content.startswith("Σ")
    canvas.box(x, y, width, _ROW, ("d-whole" if whole else "d-cell") if content else "d-empty", 2)
    if content:
        canvas.label(x + width / 2, y + 16, content, "d-strong" if whole else "d-ink", "middle")


def _row(contents: list[str]) -> str:
    return ", ".join(filter(None, contents)) or "nothing"


def _sentence(record: Collective) -> str:
    does = {
        "all-reduce": "Every rank ends with the sum of all",
        "reduce-scatter": "Every rank ends with one chunk of the sum",
        "all-gather": "Every rank ends with the chunks of all",
        "broadcast": "Every rank ends with what rank 0 had",
        "all-to-all": "Rank r ends with chunk r of every rank",
    }[record.operation]
    if record.operation not in _SENT:
        return f"{does}."
    sent = digits(_SENT[record.operation](1.0, record.ranks), 3)
    whole = "what a rank begins with" if record.operation == "all-to-all" else "the full tensor"
    return f"{does}; a rank sends {sent} S, where S is {whole}."
