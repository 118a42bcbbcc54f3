"""A submission of a code lab with the verdict that a worker would write, for what is looked at afterwards."""

from __future__ import annotations

from app.codelabs import work
from app.core.db import Database
from labs.spec.code import Check, PhaseEvent, Trace, TracedCall, Verdict
from tests.conftest import NOW

CHECK = Check(name="sum", ranks=2, passed=True, expected="x", seen="x")
SENT = TracedCall(
    rank=0, operation="send", sequence=1, peer=1, line=7, payload_bytes=80, posted=0.0, waited=0.001, done=0.004
)
TAKEN = TracedCall(
    rank=1, operation="recv", sequence=1, peer=0, line=8, payload_bytes=0, posted=0.003, waited=0.003, done=0.004
)
TRACE = Trace(ranks=2, seconds=0.004, calls=(SENT, TAKEN))  # rank 1 comes 3 ms after rank 0


def judge_next(database: Database, *, passed: bool = True, mistake: str | None = None) -> None:
    """Of the submission that waits longest, with two chunks of events."""
    with database.write() as session:
        claim = work.claim_next(session, "worker", NOW)
        assert claim is not None
        work.append(session, claim, [PhaseEvent(id=str(claim.id), t=0.0, phase="starting")], NOW)
        work.append(session, claim, [PhaseEvent(id=str(claim.id), t=0.1, phase="judged")], NOW)
        score = 1.0 if passed else 0.5
        beside = TRACE if passed else None
        verdict = Verdict(
            lab="CL01",
            passed=passed,
            score=score,
            checks=(CHECK,),
            mistake=mistake,
            seed=7,
            trace=TRACE,
            beside=beside,
        )
        work.end_judged(session, claim, verdict, NOW)
