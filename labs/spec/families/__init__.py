"""The support matrix: what a run can do, family by family, each with its rows and with what it refuses."""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.families import compression, data, numerics, pipeline, tensor, together
from labs.spec.families.row import Row
from labs.spec.run import RunSpec
from labs.violations import Violation

SUPPORT: tuple[Row, ...] = (
    *data.ROWS,
    *tensor.ROWS,
    *pipeline.ROWS,
    *together.ROWS,
    *numerics.ROWS,
    *compression.ROWS,
)


def check_support(spec: RunSpec) -> Iterator[Violation]:
    """Everything in `spec` that is no part of the matrix, by field."""
    yield from data.check_data(spec)
    yield from tensor.check_tensor(spec)
    yield from tensor.check_architecture(spec)
    yield from pipeline.check_pipeline(spec)
    yield from numerics.check_numerics(spec)
    yield from compression.check_compression(spec)
