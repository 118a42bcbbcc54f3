"""From a diagram's record to what a page shows: the picture, its key, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from markupsafe import Markup

from app.content.diagrams.bits import draw_bits
from app.content.diagrams.collective import draw_collective
from app.content.diagrams.curve import draw_curve
from app.content.diagrams.decision import draw_decision
from app.content.diagrams.mesh import draw_mesh
from app.content.diagrams.overlap import draw_overlap
from app.content.diagrams.pipeline import draw_pipeline
from app.content.diagrams.ring import draw_ring
from app.content.diagrams.schema import (
    Collective,
    Diagram,
    DoubleTree,
    Pipeline,
    Ring,
    Shards,
    TensorParallel,
)
from app.content.diagrams.shards import draw_shards
from app.content.diagrams.svg import NARROW, Picture, wrap_svg
from app.content.diagrams.tensor_parallel import draw_tensor_parallel
from app.content.diagrams.tree import draw_tree
from app.content.live import Expressions
from app.content.players.catalogue import player
from app.content.players.player import Player

_DRAWN: Mapping[str, Callable[[Any], Picture]] = {
    "shards": draw_shards,
    "ring": draw_ring,
    "collective": draw_collective,
    "tree": draw_tree,
    "pipeline": draw_pipeline,
    "mesh": draw_mesh,
    "tensor-parallel": draw_tensor_parallel,
    "bits": draw_bits,
    "decision": draw_decision,
}
_TENSOR_RANKS = (2, 4)
_MOST_PLAYED = 8  # ranks that a figure to step through has room for
_COMPUTED: Mapping[str, Callable[[Any, Expressions], Picture]] = {"overlap": draw_overlap, "curve": draw_curve}


@dataclass(frozen=True)
class Drawing:
    """A diagram as `partials/diagram.html` shows it. A wide one scrolls in its own box on a phone.

    `broad` is the same picture for a wider column, with text of the same size. `steps` is the figure that plays what
    this one shows of a moment, by name and settings: a page has it in its place.
    """

    title: str
    finding: str
    svg: Markup
    says: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    key: tuple[tuple[str, str], ...]
    wide: bool
    steps: tuple[str, Mapping[str, str]] | None = None
    broad: Markup | None = None

    @property
    def player(self) -> Player | None:
        return None if self.steps is None else player(*self.steps)


def draw(record: Diagram, expressions: Expressions | None = None) -> Drawing:
    """The drawing of `record`, the same for the same record. Live numbers in title and finding become plain text.

    Raises ExpressionError with the field it stands in, for expressions that do not evaluate or cannot be drawn.
    """
    known = expressions or Expressions()
    title, finding = (known.text(known.fill(text)) for text in (record.title, record.finding))
    picture = _COMPUTED[record.kind](record, known) if record.kind in _COMPUTED else _DRAWN[record.kind](record)
    drawing = as_drawing(picture, f"d{sha256(repr(record).encode()).hexdigest()[:8]}", title, finding)
    return replace(drawing, steps=_steps(record))


def _steps(record: Diagram) -> tuple[str, Mapping[str, str]] | None:
    """The figure to step through that comes to what `record` shows; None where there is none."""
    match record:
        case Ring():
            done = record.step + (record.ranks - 1 if record.phase == "all-gather" else 0)
            found = "collective", {"algorithm": "ring", "ranks": record.ranks, "at": done}
        case Collective() if record.operation != "broadcast":
            algorithm = "ring" if record.operation == "all-reduce" else record.operation
            found = "collective", {"algorithm": algorithm, "ranks": record.ranks}
        case DoubleTree() if record.ranks <= _MOST_PLAYED:
            found = "collective", {"algorithm": "tree", "ranks": record.ranks}
        case Shards():
            found = "zero", {"stage": record.stage, "ranks": record.ranks}
        case Pipeline():
            names = ("schedule", "stages", "micro_batches")
            found = "pipeline", {name: getattr(record, name) for name in names} | {"virtual_stages": record.chunks}
        case TensorParallel(block="mlp", sequence_parallel=False) if record.ranks in _TENSOR_RANKS:
            found = "tensor", {"ranks": record.ranks}
        case _:
            return None
    return found[0], {name: str(value) for name, value in found[1].items()}


def as_drawing(picture: Picture, name: str, title: str, finding: str) -> Drawing:
    """A picture with its words; ids in it begin with `name`."""
    svg = wrap_svg(picture, name, title)
    return Drawing(title, finding, svg, picture.says, picture.head, picture.rows, picture.key, picture.width > NARROW)
