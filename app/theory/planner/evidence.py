"""The published rows that intervals stand on, as `python -m tests.support.write_evidence` wrote them."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path

from app.theory.planner.intervals import Evidence, Features, Spread, spread

FILE = Path(__file__).with_suffix(".json")


@cache
def evidence() -> tuple[Evidence, ...]:
    """Every row: its publication, its plan, and how far off the engine was."""
    return tuple(
        Evidence(publication, table, is_time, Features(tuple(words), tuple(sizes)), error)
        for publication, table, is_time, words, sizes, error in json.loads(FILE.read_text())
    )


@lru_cache(maxsize=4096)
def spread_of(features: Features, is_time: bool) -> Spread | None:
    """How sure the time or the memory of a plan is."""
    return spread(features, [row for row in evidence() if row.is_time == is_time])
