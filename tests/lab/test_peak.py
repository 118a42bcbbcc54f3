"""What a machine's peak is, of runs timed beside other work, and what is said of a run beside it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient

from app.core.db import Database
from app.lab import service
from tests.conftest import NOW

HTML = {"Accept": "text/html"}
SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 4}, "parallel": {"data": 2}}


def _trained(client: TestClient, database: Database, rate: float, peak: float, minutes: int) -> int:
    """A run of `rate` FLOP/s in steps of half a second, that timed plain products at `peak`, so late."""
    run_id = int(client.post("/api/v1/lab/runs", json={"spec": SPEC}).json()["id"])
    with database.write() as session:
        run = service.find_run(session, 1, run_id)
        run.status, run.started_at, run.ended_at = "finished", NOW, NOW + timedelta(minutes=minutes)
        run.result = {
            "tokens_per_second": 512.0,
            "step_seconds": 0.5,
            "mfu": rate / peak,
            "peak_flops_per_second": peak,
            "world_size": 2,
        }
    return run_id


def _said(client: TestClient, run: int) -> str:
    said = re.search(r">(512 tokens/s[^<]*)<", client.get(f"/lab/runs/{run}", headers=HTML).text)
    assert said is not None
    return said[1].replace("\xa0", " ")


def test_a_run_is_held_against_the_fastest_that_any_run_here_saw(client: TestClient, database: Database) -> None:
    """36 GFLOP/s in steps is no 200 % of 18: the products were timed beside other work."""
    first = _trained(client, database, rate=36e9, peak=18e9, minutes=0)
    assert "faster than any plain matrix product that was timed here, 18 GFLOP/s at the most" in _said(client, first)
    assert "%" not in _said(client, first)
    slower = _trained(client, database, rate=9e9, peak=10e9, minutes=1)
    assert "25 % of 36 GFLOP/s" in _said(client, slower)
    assert f"in the steps of that run, faster than any plain product (run {first}," in _said(client, slower)
    quiet = _trained(client, database, rate=20e9, peak=72e9, minutes=2)
    for run, share in ((first, "50 %"), (slower, "12 %"), (quiet, "28 %")):
        assert f"{share} of 72 GFLOP/s" in _said(client, run)
        assert f"in plain matrix products (run {quiet}," in _said(client, run)
