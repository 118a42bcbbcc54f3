"""Parameter sets of FSRS-6. A set's id follows from its values, so that one id can never mean two sets. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from fsrs import Scheduler

from app.core.errors import DomainError, Violation

Parameters = tuple[float, ...]

# The published defaults of FSRS-6, written out: a later py-fsrs may ship others, and this id must not change with it.
DEFAULT: Parameters = (
    0.212,
    1.2931,
    2.3065,
    8.2956,
    6.4133,
    0.8334,
    3.0194,
    0.001,
    1.8722,
    0.1666,
    0.796,
    1.4835,
    0.0614,
    0.2629,
    1.6483,
    0.6014,
    1.8729,
    0.5425,
    0.0912,
    0.0658,
    0.1542,
)
DEFAULT_ID = "fsrs-6-default"


def identify(values: Sequence[float]) -> str:
    """The id of a parameter set: `fsrs-6-default`, or a digest of its values."""
    if tuple(values) == DEFAULT:
        return DEFAULT_ID
    return "fsrs-6-" + sha256(json.dumps([float(value) for value in values]).encode()).hexdigest()[:16]


def validated(values: Sequence[float]) -> Parameters:
    """`values` as a parameter set. Raises DomainError naming what FSRS-6 does not take."""
    found = tuple(float(value) for value in values)
    try:
        Scheduler(parameters=found)
    except ValueError as error:
        shown = ", ".join(f"{value:g}" for value in found[:25])
        violation = Violation("parameters", shown, str(error), "21 numbers within the bounds of FSRS-6")
        raise DomainError("These are no parameters of FSRS-6.", [violation]) from None
    return found
