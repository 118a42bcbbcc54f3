"""What a worker holds: a row that it took by a conditional update, and keeps as long as it says that it is there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy.engine import CursorResult

HEARTBEAT_SECONDS = 2.0
STALE_AFTER = timedelta(seconds=20)  # ten missed heartbeats: the worker is gone, not slow
MOST_ATTEMPTS = 2  # starts of a piece of work: one that takes its worker along must not take every worker along


def changed(result: Any) -> bool:
    """Whether a conditional update changed its row: how state changes are won or lost, on both databases."""
    assert isinstance(result, CursorResult)
    return result.rowcount == 1
