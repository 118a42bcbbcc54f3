"""What the tests of code labs share: one pool of sandboxes, and a part of many programs each day."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from labs.code.sandbox import why_not

T = TypeVar("T")

# one process takes all files with sandboxes: torch is loaded into each of them once
needs_sandboxes = [
    pytest.mark.slow,
    pytest.mark.together("code labs"),
    pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}"),
]


def todays(every: Sequence[T], parts: int) -> Sequence[T]:
    """All where all are asked for (RANKZERO_ALL_ROWS), else another part each day."""
    if os.environ.get("RANKZERO_ALL_ROWS"):
        return every
    return every[datetime.now(UTC).toordinal() % parts :: parts]
