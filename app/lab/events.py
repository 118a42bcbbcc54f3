"""Events of a run persisted: what its ranks report, in chunks behind one another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app.core.leases import changed
from app.lab.leases import LONGEST_PHASE, Claim, LeaseLost, is_owned, owned
from app.lab.models import Chunk, Run
from app.words import capital
from labs.spec.events import Event, MeasurementEvent, PhaseEvent, StepEvent, to_json


def append_chunk(
    session: Session, claim: Claim, events: Sequence[Event], now: datetime, after: int | None = None
) -> int:
    """Write events behind the run's last chunk; returns the chunk's sequence number. Raises LeaseLost.

    `after`: the last chunk the writer knows of. Where there is one more, it is this very one: its commit came through
    and the answer was lost, so nothing is written twice.
    """
    if after is not None and session.scalar(is_owned(claim, Run.chunks == after + 1)) is not None:
        return after + 1
    steps = [event.step for event in events if isinstance(event, StepEvent)]
    values: dict[str, object] = {"chunks": Run.chunks + 1, "heartbeat_at": now}
    doing = [event.doing for event in events if isinstance(event, PhaseEvent) and event.doing]
    if doing:
        values["phase"] = capital(doing[-1])[:LONGEST_PHASE]
    if steps:
        values |= {"steps_done": max(steps), "status": "running", "phase": ""}
    elif any(isinstance(event, MeasurementEvent) for event in events):  # of a program, which has no steps
        values["status"] = "running"
    if not changed(session.execute(owned(claim).values(**values))):
        raise LeaseLost(f"Run {claim.run_id} was given up on by a sweep; its events are not written.")
    run = session.get(Run, claim.run_id, populate_existing=True)
    assert run is not None
    write_chunk(session, run, events, now)
    return run.chunks


def write_chunk(session: Session, run: Run, events: Sequence[Event], now: datetime) -> None:
    """Store `events` as the last of the run's chunks, which its row counts already."""
    session.add(Chunk(run_id=run.id, sequence=run.chunks, events=[to_json(event) for event in events], created_at=now))
    session.flush()
