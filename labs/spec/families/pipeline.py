"""Pipeline parallelism: what can be asked for, and what it is tested with."""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.families.row import Row, one_of
from labs.spec.run import RunSpec
from labs.spec.violations import Violation
from labs.spec.vocabulary import Parallel

ROWS: tuple[Row, ...] = ()


def check_pipeline(spec: RunSpec) -> Iterator[Violation]:
    """What a pipeline cannot do."""
    parallel = spec.parallel
    yield from one_of("parallel.pipeline", parallel.pipeline, (1,))
    yield from one_of("parallel.virtual_stages", parallel.virtual_stages, (1,))
    yield from one_of("parallel.schedule", parallel.schedule, (Parallel().schedule,))
