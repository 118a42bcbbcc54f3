"""In which numbers a step is computed and kept, what is computed twice, and which optimizer updates."""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.families.row import Row, one_of
from labs.spec.run import RunSpec
from labs.spec.violations import Violation

ROWS: tuple[Row, ...] = ()


def check_numerics(spec: RunSpec) -> Iterator[Violation]:
    """Which precisions, layouts, optimizers and recomputations there are."""
    training = spec.training
    yield from one_of("training.precision", training.precision, ("fp32",))
    yield from one_of("training.state_layout", training.state_layout, ("fp32",))
    yield from one_of("training.loss_scaling", training.loss_scaling, (False,))
    yield from one_of("training.optimizer", training.optimizer, ("adamw",))
    yield from one_of("training.recompute", training.recompute, ("none",))
    yield from one_of("training.recompute_every", training.recompute_every, (1,))
