"""A run in a worker's hands: claimed, followed, and ended exactly once. Every write needs the claim's lease."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.core.leases import MOST_ATTEMPTS, STALE_AFTER, changed
from app.core.limits import limits_of
from app.lab import queries, results
from app.lab.events import write_chunk
from app.lab.leases import LONGEST_PHASE, Claim, LeaseLost, is_owned, owned
from app.lab.models import ACTIVE, ENDED, WAITING, Run
from app.lab.records import RunFailure
from app.lab.takers import why_nobody_takes
from app.units import seconds_text
from labs.spec import RunSpec
from labs.spec.events import LogEvent, PhaseEvent


def claim_next(session: Session, worker: str, place: Callable[[RunSpec], str | None], now: datetime) -> Claim | None:
    """Take the next run that `place` finds a device for. Delivered twice, one of the two finds it gone. None, too,
    while as many are under way as may be."""
    at_once = limits_of(session).runs_at_once
    if at_once and len(queries.list_active(session)) >= at_once:
        return None
    for run in queries.list_queue(session):
        try:
            spec = RunSpec.model_validate(run.spec)
        except ValidationError:  # of another release: it is left to a worker of that one, and keeps nobody waiting
            continue
        device = place(spec)
        if device is None:
            continue
        lease, starts = secrets.token_hex(16), run.attempts + 1
        values = {
            "attempts": starts,
            "status": "starting",
            "phase": "Starting the ranks",
            "lease": lease,
            "worker": worker,
            "device": device,
            "started_at": now,
            "heartbeat_at": now,
        }
        if changed(session.execute(update(Run).where(Run.id == run.id, Run.status == WAITING).values(**values))):
            return Claim(run.id, lease, spec, run.chunks, run.identity, starts)
    return None


def list_leases(session: Session) -> list[tuple[int, str]]:
    """Of every run in somebody's hands, its id and the lease it is held by."""
    return [(run.id, run.lease) for run in queries.list_active(session) if run.lease]


def runs_wait(session: Session) -> bool:
    """Whether any run waits to be claimed."""
    return bool(queries.list_queue(session))


def beat(session: Session, claim: Claim, now: datetime, launch: str | None = None) -> bool:
    """Say that the run is still looked after, and how its ranks were started; returns whether it is to be cancelled.
    Raises LeaseLost."""
    if not changed(session.execute(owned(claim).values(heartbeat_at=now, launch=launch))):
        raise LeaseLost(f"Run {claim.run_id} was given up on by a sweep; another owner decides now.")
    run = session.get(Run, claim.run_id, populate_existing=True)
    return run is not None and run.cancel_requested_at is not None


def end_run(session: Session, claim: Claim, status: str, now: datetime, failure: RunFailure | None = None) -> bool:
    """End a run as `finished`, `failed` or `cancelled`, once. Its result is computed from what its ranks reported."""
    assert status in ENDED
    run = session.get(Run, claim.run_id)
    assert run is not None
    result = results.summarise(session, run) if status == "finished" else None
    if status == "finished" and result is None:
        status, failure = "failed", RunFailure("no result", "The ranks ended without reporting a result.")
    said = results.ran_on(result, claim.spec.parallel.world_size, claim.spec.hosts) if result else None
    return changed(
        session.execute(
            owned(claim).values(
                **({"device": said} if said else {}),
                status=status,
                phase=_end_phase(status, failure),
                ended_at=now,
                result=result,
                failure=failure.to_json() if failure else None,
            )
        )
    )


def requeue(session: Session, claim: Claim, why: str, now: datetime) -> bool:
    """Give a run back that its worker cannot carry to its end; False where that was done before, or where it is not the
    worker's any more, or is to be cancelled. It keeps its place in the queue."""
    run = session.get(Run, claim.run_id, populate_existing=True)
    assert run is not None
    return _queue_again(session, run, is_owned(claim, Run.cancel_requested_at.is_(None)), why, now)


def _queue_again(session: Session, run: Run, condition: Any, why: str, now: datetime) -> bool:
    if run.attempts >= _most_starts(run):
        return False
    values: dict[str, Any] = {
        "status": WAITING,
        "phase": f"{why} It starts again by itself."[:LONGEST_PHASE],
        "steps_done": 0,
        "chunks": Run.chunks + 1,
        **dict.fromkeys(("lease", "worker", "device", "launch", "started_at", "heartbeat_at")),
    }
    if not changed(session.execute(update(Run).where(Run.id.in_(condition)).values(**values))):
        return False
    session.refresh(run)
    # from here on the events are those of another start: whoever reads them begins anew at this one. Why there was one
    # stays in the run's log
    line = LogEvent(0.0, 0, "stderr", f"starting again: {why}")
    write_chunk(session, run, [PhaseEvent(0.0, 0, "queued", doing=why), line], now)
    return True


def _most_starts(run: Run) -> int:
    """Of one host torchrun starts the ranks again as often as is asked for; of several it is we who do."""
    restarts = run.spec.get("restarts", 0) if run.spec.get("hosts", 1) > 1 else 0
    return max(MOST_ATTEMPTS, 1 + int(restarts))


def give_up_on_stale(
    session: Session, now: datetime, is_gone: Callable[[str], bool] = lambda _worker: False
) -> list[int]:
    """Take active runs from workers that stopped beating, or of which `is_gone` knows better; returns their ids. They
    wait again, once; the second time they end. What they streamed stays."""
    stale = [
        run
        for run in queries.list_active(session)
        if (run.heartbeat_at or run.created_at) < now - STALE_AFTER or is_gone(run.worker or "")
    ]
    ended = []
    for run in stale:
        silent = round((now - (run.heartbeat_at or run.created_at)).total_seconds())
        status = "failed" if run.cancel_requested_at is None else "cancelled"
        sign = "is gone" if is_gone(run.worker or "") else f"has said nothing for {silent} s"
        said = f"Worker {run.worker} {sign}, so its ranks are gone too."
        failure = RunFailure("worker lost", f"{said} Run it again.")
        is_still_so = (Run.id == run.id, Run.status.in_(ACTIVE), Run.heartbeat_at == run.heartbeat_at)
        if status == "failed" and _queue_again(session, run, select(Run.id).where(*is_still_so), said, now):
            ended.append(run.id)
            continue
        done = changed(
            session.execute(
                update(Run)
                .where(*is_still_so)
                .values(
                    status=status,
                    phase=_end_phase(status, failure),
                    ended_at=now,
                    lease=None,
                    failure=failure.to_json() if status == "failed" else None,
                )
            )
        )
        if done:
            ended.append(run.id)
    return ended


def expire_waiting(session: Session, now: datetime) -> list[int]:
    """End waiting runs that nobody took in time, each with why; returns their ids."""
    longest = limits_of(session).run_waits_seconds
    if not longest:
        return []
    ended = []
    for run in queries.list_queue(session):
        if run.created_at > now - timedelta(seconds=longest):
            continue
        message = f"No worker took it within {seconds_text(longest)}. {_why_not_taken(session, run, now)}"
        failure = RunFailure("expired", f"{message} Run it again.")
        values = {"status": "expired", "phase": failure.message[:LONGEST_PHASE], "ended_at": now}
        still_waits = update(Run).where(Run.id == run.id, Run.status == WAITING)
        if changed(session.execute(still_waits.values(**values, failure=failure.to_json()))):
            ended.append(run.id)
    return ended


def _why_not_taken(session: Session, run: Run, now: datetime) -> str:
    try:
        spec = RunSpec.model_validate(run.spec)
    except ValidationError:
        return "Its spec is of another release, and no worker of that one was there."
    return why_nobody_takes(session, spec, now) or "The workers that could take it were busy with others."


def _end_phase(status: str, failure: RunFailure | None) -> str:
    said = {"finished": "Finished", "cancelled": "Cancelled"}.get(status)
    return said or (failure.message if failure else "Failed")[:LONGEST_PHASE]
