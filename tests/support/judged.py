"""A submission of a code lab with the verdict that a worker would write, for what is looked at afterwards."""

from __future__ import annotations

from app.codelabs import work
from app.core.db import Database
from labs.spec.code import Check, PhaseEvent, Verdict
from tests.conftest import NOW

CHECK = Check(name="sum", ranks=2, passed=True, expected="x", seen="x")


def judge_next(database: Database, *, passed: bool = True, mistake: str | None = None) -> None:
    """Of the submission that waits longest, with two chunks of events."""
    with database.write() as session:
        claim = work.claim_next(session, "worker", NOW)
        assert claim is not None
        work.append(session, claim, [PhaseEvent(id=str(claim.id), t=0.0, phase="starting")], NOW)
        work.append(session, claim, [PhaseEvent(id=str(claim.id), t=0.1, phase="judged")], NOW)
        score = 1.0 if passed else 0.5
        verdict = Verdict(lab="CL01", passed=passed, score=score, checks=(CHECK,), mistake=mistake, seed=7)
        work.end_judged(session, claim, verdict, NOW)
