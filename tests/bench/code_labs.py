"""Code labs as a whole: every program, every attack and every mutant before the judge, and how long a verdict takes.

The times are of four ranks with sandboxes that are there: from handing a reference in until the first check's result,
and until the verdict.
"""

from __future__ import annotations

import socket
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.content.catalogue import catalogue
from labs.code.grading import judge
from labs.code.sandbox import Pool, why_not
from labs.spec.code import CheckEvent, CodeEvent, Submission
from tests.attacks.code_programs import ATTACKS
from tests.attacks.test_code_labs import attacked
from tests.labs.code.mutations import survivors
from tests.labs.code.truth import programs, verdict_of

VERDICT_SECONDS, FIRST_CHECK_SECONDS, LEAST_CAUGHT = 20.0, 4.0, 0.95
ROUNDS = 3


def measure(_data: Path) -> dict[str, Any]:
    if why_not() is not None:
        return {"lines": [f"skipped: {why_not()}"], "skipped": why_not()}
    pool = Pool()
    try:
        found = {"truth": _truth(pool), "attacks": _attacks(pool), "mutants": _mutants(pool), **_times(pool)}
    finally:
        pool.end()
    caught = found["mutants"]["caught"] / max(1, found["mutants"]["of"])
    found["within_budget"] = (
        not found["truth"]["missed"]
        and not found["attacks"]["succeeded"]
        and caught >= LEAST_CAUGHT
        and found["verdict_p95_seconds"] <= VERDICT_SECONDS
        and found["first_check_p95_seconds"] <= FIRST_CHECK_SECONDS
    )
    found["lines"] = [
        f"{found['truth']['programs']} programs, judged as another thing: {found['truth']['missed'] or 'none'}",
        f"{found['attacks']['attacks']} attacks, of which succeeded: {found['attacks']['succeeded'] or 'none'}",
        f"{found['mutants']['caught']} of {found['mutants']['of']} mutants caught, not: "
        f"{found['mutants']['not_caught'] or 'none'}",
        f"first check {found['first_check_p95_seconds']} s, verdict {found['verdict_p95_seconds']} s at the 95th "
        "percentile, four ranks, sandboxes ready",
    ]
    return found


def _truth(pool: Pool) -> dict[str, Any]:
    every = [program for lab in catalogue().labs.values() for program in programs(lab)]
    missed = [f"{each.lab} {each.name}" for each in every if not each.holds(verdict_of(each, pool))]
    return {"programs": len(every), "missed": missed}


def _attacks(pool: Pool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder) / "rankzero-secret-of-ours"
        secret.write_text("hunter2")
        succeeded = []
        for attack in ATTACKS:
            verdict, printed = attacked(attack, pool, secret, server.getsockname()[1])
            if verdict.passed or "ESCAPED" in printed:
                succeeded.append(attack.name)
    return {"attacks": len(ATTACKS), "succeeded": succeeded}


def _mutants(pool: Pool) -> dict[str, Any]:
    found = {lab.id: survivors(lab, pool) for lab in catalogue().labs.values()}
    count = sum(made for _, made in found.values())
    passed = {identity: each for identity, (each, _) in found.items() if each}
    return {"of": count, "caught": count - sum(map(len, passed.values())), "not_caught": passed}


def _times(pool: Pool) -> dict[str, float]:
    first: list[float] = []
    whole: list[float] = []
    for lab in list(catalogue().labs.values()) * ROUNDS:
        started, seen = time.perf_counter(), list[float]()

        def note(event: CodeEvent, started: float = started, seen: list[float] = seen) -> None:
            if isinstance(event, CheckEvent):
                seen.append(time.perf_counter() - started)

        judge(Submission(lab=lab.id, code=lab.reference), pool, note)
        first.append(seen[0])
        whole.append(time.perf_counter() - started)
    return {"first_check_p95_seconds": _p95(first), "verdict_p95_seconds": _p95(whole)}


def _p95(values: Sequence[float]) -> float:
    return round(statistics.quantiles(values, n=20, method="inclusive")[-1], 3)
