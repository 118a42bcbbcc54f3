"""One row of the support matrix: something a run can do, how it is asked for, and how exact it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from labs.spec.schedules import Schedule
from labs.violations import Violation

Family = Literal["data", "tensor", "context", "expert", "pipeline", "combined", "numerics", "compression"]
Device = Literal["cpu", "cuda"]

WHOLE_BACKWARD: tuple[Schedule, ...] = ("gpipe", "1f1b", "interleaved", "looped-bfs")  # in one pass, not in two
EXACT = 1e-12  # relative, of the loss after three fp64 steps: the same sums, taken in another order


@dataclass(frozen=True)
class Row:
    """A strategy as it is asked for. The tests run every row on every layout, and hold it against one process.

    layouts: `parallel` of the spec, one for each number of ranks it is tested on.
    training, model, compression: what of the spec it needs besides.
    tolerance: how far the loss after three steps may be from one process's, relative; the model's values are fp64, but
    for rows that ask for a precision of their own. Anything above EXACT is a method that changes the result: `why` says
    how.
    """

    id: str
    title: str
    family: Family
    layouts: tuple[Mapping[str, Any], ...]
    training: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    compression: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = EXACT
    why: str = ""
    devices: tuple[Device, ...] = ("cpu", "cuda")

    @property
    def is_exact(self) -> bool:
        return self.tolerance <= EXACT


def one_of(at: str, value: object, accepted: tuple[object, ...], because: str = "") -> Iterator[Violation]:
    """A violation unless `value` is among `accepted`."""
    if value not in accepted:
        message = because or f"{value!r} is not something a run can do here."
        yield Violation(at, value, message, ", ".join(str(each) for each in accepted))
