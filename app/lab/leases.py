"""The right to write to a run: a lease, had by whoever claimed it and lost when somebody else decides."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, Update, select, update

from app.core.errors import DomainError
from app.lab.models import ACTIVE, Run
from labs.spec import RunSpec

LONGEST_PHASE = 200  # characters that `run.phase` holds


class LeaseLost(DomainError):
    """The worker no longer owns the run it writes to."""

    status = 409
    code = "lease-lost"


@dataclass(frozen=True)
class Claim:
    """A run a worker may work on; the lease is its right to write."""

    run_id: int
    lease: str
    spec: RunSpec
    chunks: int = 0  # written of it when it was claimed
    identity: str = ""  # of the run, whoever claims it how often: no other run has it, not that of another database
    starts: int = 1  # this one included


def owned(claim: Claim) -> Update:
    """A change of the run, made only while the claim holds."""
    return update(Run).where(*_lease_holds(claim))


def is_owned(claim: Claim, condition: ColumnElement[bool]) -> Select[int]:
    """The run, where the claim holds and `condition` is met."""
    return select(Run.id).where(*_lease_holds(claim), condition)


def _lease_holds(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return Run.id == claim.run_id, Run.lease == claim.lease, Run.status.in_(ACTIVE)
