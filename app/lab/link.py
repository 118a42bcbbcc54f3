"""What sending takes here: the start of a message and the bandwidth between two ranks, as the newest ping-pong timed
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row
from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.peak import LOOKED_THROUGH
from app.theory.lab_runs import Transfer


@dataclass(frozen=True)
class Sent:
    """What a rank sends in a step, by theory: bytes, and messages one after the other."""

    wire_bytes: float
    messages: int

    @classmethod
    def of_theory(cls, theory: Mapping[str, Any]) -> Sent:
        """From what a run's row keeps of theory; nothing where that knows of no transfers."""
        transfers = [Transfer(**each) for each in theory.get("transfers", ())]
        return cls(sum(each.wire_bytes for each in transfers), sum(each.messages for each in transfers))


@dataclass(frozen=True)
class Link:
    """α and B as one run fitted them: what a rank sends takes α for each message and the bytes over B, at the least."""

    latency_seconds: float
    bytes_per_second: float
    run_id: int

    def least_seconds(self, sent: Sent) -> float:
        return sent.messages * self.latency_seconds + sent.wire_bytes / self.bytes_per_second


def link_here(session: Session, learner_id: int) -> Link | None:
    """Of the newest run of the program collectives on one host here; None before there is one."""
    return _link_of(queries.list_results_here(session, learner_id, LOOKED_THROUGH))


def _link_of(rows: Sequence[Row[Any]]) -> Link | None:
    for row in rows:
        found = (row.result or {}).get("bytes_per_second")
        if row.spec.get("program") == "collectives" and row.spec.get("hosts", 1) == 1 and found and found > 0:
            return Link(max(0.0, float((row.result or {}).get("latency_seconds") or 0.0)), float(found), row.id)
    return None
