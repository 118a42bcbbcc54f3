"""GPUs that runs have to themselves: two workers may be bound to the same one, two runs may not be on it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.errors import DomainError
from app.lab.models import ACTIVE, GpuLease, Run


class GpuTaken(DomainError):
    """Another worker was faster."""

    status = 409
    code = "gpu-taken"


def gpus_taken(session: Session) -> frozenset[str]:
    """The GPUs of active runs, by UUID. Those of runs that have ended, however they did, are free again."""
    active = select(Run.id).where(Run.status.in_(ACTIVE))
    session.execute(delete(GpuLease).where(GpuLease.run_id.not_in(active)))
    return frozenset(session.scalars(select(GpuLease.uuid)))


def take_gpus(session: Session, run_id: int, uuids: Sequence[str]) -> None:
    """Take GPUs for a run that was claimed in this transaction. Raises GpuTaken, after which nothing may be kept of
    it: the claim is undone with the transaction."""
    try:
        session.add_all([GpuLease(uuid=uuid, run_id=run_id) for uuid in uuids])
        session.flush()
    except IntegrityError as error:
        raise GpuTaken(f"Another worker took one of {', '.join(uuids)} in this moment.") from error
