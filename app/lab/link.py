"""What sending takes here: the bandwidth between two ranks, as the newest ping-pong timed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row
from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.peak import LOOKED_THROUGH


@dataclass(frozen=True)
class Link:
    """B as one run fitted it; a rank's bytes over it are the least that sending them takes."""

    bytes_per_second: float
    run_id: int

    def least_seconds(self, wire_bytes: float) -> float:
        return wire_bytes / self.bytes_per_second


def link_here(session: Session, learner_id: int) -> Link | None:
    """Of the newest run of the program collectives on one host here; None before there is one."""
    return _link_of(queries.list_results_here(session, learner_id, LOOKED_THROUGH))


def _link_of(rows: Sequence[Row[Any]]) -> Link | None:
    for row in rows:
        found = (row.result or {}).get("bytes_per_second")
        if row.spec.get("program") == "collectives" and row.spec.get("hosts", 1) == 1 and found and found > 0:
            return Link(float(found), row.id)
    return None
