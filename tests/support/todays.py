"""A part of many cases each day, and all of them where all are asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

T = TypeVar("T")


def todays(every: Sequence[T], parts: int) -> Sequence[T]:
    """All where all are asked for (RANKZERO_ALL_ROWS), else another part each day."""
    if os.environ.get("RANKZERO_ALL_ROWS"):
        return every
    return every[datetime.now(UTC).toordinal() % parts :: parts]
