"""Who holds which part of the model state under a ZeRO stage; bars are as long as the bytes of a parameter."""

from __future__ import annotations

from app.content.diagrams.schema import Shards
from app.content.diagrams.svg import NARROW, Canvas, Picture
from app.theory.state import LAYOUTS, zero_state_bytes
from app.units import digits
from app.words import listed

COMPONENTS = ("parameters", "gradients", "optimizer")
_LEFT, _RIGHT, _GAP, _TOP, _ROW, _PITCH = 52.0, 54.0, 8.0, 24.0, 18.0, 26.0


def draw_shards(record: Shards) -> Picture:
    """A row a rank, a column a component: what the rank holds is filled, what others hold is outlined."""
    layout, canvas = LAYOUTS["zero-16"], Canvas()
    per_byte = (NARROW - _LEFT - _RIGHT - 2 * _GAP) / layout.total
    parts = {name: _slices(record, name) for name in COMPONENTS}
    x = _LEFT
    for name in COMPONENTS:
        size = getattr(layout, name)
        width = size * per_byte
        canvas.label(x, 14, f"{size:g} B" + (" a parameter" if name == "optimizer" else ""), "t3")
        for rank in range(record.ranks):
            y = _TOP + rank * _PITCH
            canvas.box(x, y, width, _ROW, "d-empty")
            share = width / parts[name]
            canvas.box(x + (rank * share if parts[name] > 1 else 0), y, share, _ROW, name)
        x += width + _GAP
    held = zero_state_bytes(1.0, record.ranks, record.stage)
    for rank in range(record.ranks):
        canvas.label(0, _TOP + rank * _PITCH + 13, f"Rank {rank}")
        canvas.label(NARROW, _TOP + rank * _PITCH + 13, f"{digits(held, 3)} B", "d-strong", "end")
    canvas.label(NARROW, 14, "held", "t3", "end")
    return canvas.picture(
        _TOP + record.ranks * _PITCH,
        _sentence(record, parts, held, layout.total),
        ("Rank", *(name.capitalize() for name in COMPONENTS), "Bytes a parameter"),
        (
            (str(rank), *(_share(rank, parts[name]) for name in COMPONENTS), digits(held, 4))
            for rank in range(record.ranks)
        ),
        ((name, name.capitalize()) for name in COMPONENTS),
    )


def _slices(record: Shards, component: str) -> int:
    """Into how many slices the stage cuts a component."""
    whole = zero_state_bytes(1.0, record.ranks, 0, part=component)
    return round(whole / zero_state_bytes(1.0, record.ranks, record.stage, part=component))


def _share(rank: int, slices: int) -> str:
    return "all" if slices == 1 else f"slice {rank} of 0 to {slices - 1}"


def _sentence(record: Shards, parts: dict[str, int], held: float, total: float) -> str:
    cut = [name for name in COMPONENTS if parts[name] > 1]
    what = f"cuts {listed(cut)} into {record.ranks} slices" if cut else "cuts nothing: every rank holds a copy"
    named = f"ZeRO-{record.stage}" if record.stage else "Plain data parallelism"
    return f"{named} over {record.ranks} ranks {what}; a rank holds {digits(held, 4)} of {total:g} bytes a parameter."
