"""What the worker may use of code labs: a submission in its hands, ended exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Update, update
from sqlalchemy.orm import Session

from app.codelabs import queries
from app.codelabs.models import PUZZLE, RUNNING, WAITING, CodeChunk, CodeDesk, CodeSubmission
from app.core.leases import MOST_ATTEMPTS, STALE_AFTER, changed
from labs.spec.code import CodeEvent, Submission, Verdict

_LONGEST_DETAIL = 500


class LeaseLost(Exception):
    """The worker no longer owns the submission it writes to."""


@dataclass(frozen=True)
class Claim:
    """A submission that a worker may have judged; the lease is its right to write."""

    id: int
    lease: str
    submission: Submission


def claim_next(session: Session, worker: str, now: datetime) -> Claim | None:
    """Take the next submission. Delivered twice, one of the two finds it gone."""
    for row in queries.list_queue(session):
        lease = secrets.token_hex(16)
        values = {
            "status": RUNNING,
            "lease": lease,
            "worker": worker,
            "attempts": CodeSubmission.attempts + 1,
            "started_at": now,
            "heartbeat_at": now,
        }
        still_waits = update(CodeSubmission).where(CodeSubmission.id == row.id, CodeSubmission.status == WAITING)
        if changed(session.execute(still_waits.values(**values))):
            mode = "submit" if row.mode == PUZZLE else row.mode
            asked: dict[str, Any] = {"id": str(row.id), "lab": row.lab_id, "code": row.code, "mode": mode}
            return Claim(row.id, lease, Submission(**asked, owner=str(row.learner_id)))
    return None


def submissions_wait(session: Session) -> bool:
    return bool(queries.list_queue(session))


def beat(session: Session, claim: Claim, now: datetime) -> bool:
    """Say that it is still looked after; whether it is to be cancelled. Raises LeaseLost."""
    _require(session, _owned(claim).values(heartbeat_at=now))
    row = session.get(CodeSubmission, claim.id, populate_existing=True)
    return row is not None and row.cancel_requested_at is not None


def append(session: Session, claim: Claim, events: Sequence[CodeEvent], now: datetime) -> None:
    """Write events behind the last. Raises LeaseLost."""
    _require(session, _owned(claim).values(chunks=CodeSubmission.chunks + 1, heartbeat_at=now))
    row = session.get(CodeSubmission, claim.id, populate_existing=True)
    assert row is not None
    written = [event.model_dump(mode="json") for event in events]
    session.add(CodeChunk(submission_id=row.id, sequence=row.chunks, events=written, created_at=now))
    session.flush()


def end_judged(session: Session, claim: Claim, verdict: Verdict, now: datetime) -> None:
    """Write the verdict; the first passing one is its learner's for good. Raises LeaseLost."""
    values = {"status": "judged", "ended_at": now, "verdict": verdict.model_dump(mode="json"), "lease": None}
    _require(session, _owned(claim).values(**values, passed=verdict.passed, score=verdict.score))
    row = session.get(CodeSubmission, claim.id, populate_existing=True)
    assert row is not None
    if verdict.passed and row.mode == "submit":
        desk = queries.find_desk(session, row.learner_id, row.lab_id)
        if desk is None:
            desk = CodeDesk(learner_id=row.learner_id, lab_id=row.lab_id, hints_taken=row.hints_taken, opened_at=now)
            session.add(desk)
        if desk.passed_at is None:
            desk.passed_at, desk.passed_with_hints = now, row.hints_taken
        session.flush()


def end_without(session: Session, claim: Claim, status: str, detail: str, now: datetime) -> None:
    """End a submission as `failed` or `cancelled`, saying why. Raises LeaseLost."""
    values = {"status": status, "detail": detail[:_LONGEST_DETAIL], "ended_at": now, "lease": None}
    _require(session, _owned(claim).values(**values))


def give_up_on_stale(session: Session, now: datetime, is_gone: Callable[[str], bool]) -> int:
    """Take submissions from workers that stopped beating: they wait again, once; the second time they end."""
    count = 0
    for row in queries.list_running(session):
        if not queries.is_silent(row, now - STALE_AFTER) and not is_gone(row.worker or ""):
            continue
        ends = row.attempts >= MOST_ATTEMPTS or row.cancel_requested_at is not None
        status = ("cancelled" if row.cancel_requested_at else "failed") if ends else WAITING
        detail = "The worker that had it is gone. Submit it again." if status == "failed" else ""
        values = {"status": status, "detail": detail, "lease": None, "ended_at": now if ends else None}
        same = (
            CodeSubmission.id == row.id,
            CodeSubmission.status == RUNNING,
            CodeSubmission.lease == row.lease,
            CodeSubmission.heartbeat_at == row.heartbeat_at,
        )
        count += changed(session.execute(update(CodeSubmission).where(*same).values(**values)))
    return count


def _owned(claim: Claim) -> Update:
    return update(CodeSubmission).where(CodeSubmission.id == claim.id, CodeSubmission.lease == claim.lease)


def _require(session: Session, statement: Update) -> None:
    if not changed(session.execute(statement)):
        raise LeaseLost
