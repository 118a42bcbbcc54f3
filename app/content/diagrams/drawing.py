"""From a diagram's record to what a page shows: the picture, its key, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from app.content.diagrams.schema import Diagram
from app.content.diagrams.shards import draw_shards
from app.content.diagrams.svg import NARROW, Picture, wrap_svg
from app.content.diagrams.tensor_parallel import draw_tensor_parallel
from app.content.diagrams.tree import draw_tree
from app.content.live import Expressions

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
_COMPUTED: Mapping[str, Callable[[Any, Expressions], Picture]] = {"overlap": draw_overlap, "curve": draw_curve}


@dataclass(frozen=True)
class Drawing:
    """A diagram as `partials/diagram.html` shows it. A wide one scrolls in its own box on a phone."""

    title: str
    finding: str
    svg: Markup
    says: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    key: tuple[tuple[str, str], ...]
    wide: bool


def draw(record: Diagram, expressions: Expressions | None = None) -> Drawing:
    """The drawing of `record`, the same for the same record. Live numbers in title and finding become plain text.

    Raises ExpressionError with the field it stands in, for expressions that do not evaluate or cannot be drawn.
    """
    known = expressions or Expressions()
    title, finding = (known.text(known.fill(text)) for text in (record.title, record.finding))
    picture = _COMPUTED[record.kind](record, known) if record.kind in _COMPUTED else _DRAWN[record.kind](record)
    return as_drawing(picture, f"d{sha256(repr(record).encode()).hexdigest()[:8]}", title, finding)


def as_drawing(picture: Picture, name: str, title: str, finding: str) -> Drawing:
    """A picture with its words; ids in it begin with `name`."""
    svg = wrap_svg(picture, name, title)
    return Drawing(title, finding, svg, picture.says, picture.head, picture.rows, picture.key, picture.width > NARROW)
