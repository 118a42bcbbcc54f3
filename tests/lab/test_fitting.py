"""Least squares by hand, and laws fitted to made runs whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.lab import service
from app.lab.least_squares import fit
from app.lab.models import Chunk
from labs.spec.events import MeasurementEvent, to_json
from tests.conftest import NOW

HTML = {"Accept": "text/html"}


def test_a_line_is_found_with_its_error_and_what_is_left_over() -> None:
    """y = 1 + 2x, with 0.1 more and less at the ends: by hand the slope keeps, the level rises by nothing."""
    found = fit([(1.0, x) for x in (0.0, 1.0, 2.0, 3.0)], [1.1, 2.9, 4.9, 7.1])
    assert found is not None
    assert found.coefficients == pytest.approx((1.0, 2.0))
    assert found.residuals == pytest.approx((0.1, -0.1, -0.1, 0.1))
    # residual variance 0.04/2; Σ(x − 1.5)² = 5
    assert found.errors[1] == pytest.approx((0.02 / 5) ** 0.5)


def test_points_that_tell_nothing_apart_give_nothing() -> None:
    assert fit([], []) is None
    assert fit([(1.0, 2.0)], [3.0]) is None
    assert fit([(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)], [1.0, 2.0, 3.0]) is None
    assert fit([(1.0, 0.0), (2.0, 0.0)], [1.0, 2.0]) is None
    exact = fit([(1.0, 1.0), (1.0, 2.0)], [3.0, 5.0])
    assert exact is not None
    assert exact.coefficients == pytest.approx((1.0, 2.0))
    assert exact.errors == (None, None)


def _finished(client: TestClient, database: Database, spec: dict[str, Any], **measured: float) -> int:
    run_id = int(client.post("/api/v1/lab/runs", json={"spec": spec}).json()["id"])
    with database.write() as session:
        run = service.find_run(session, 1, run_id)
        run.status, run.started_at, run.ended_at, run.result = "finished", NOW, NOW, measured
    return run_id


def test_the_page_says_what_it_takes_until_there_are_runs(client: TestClient) -> None:
    html = client.get("/lab/fit", headers=HTML).text
    assert html.count("No points yet") == 4
    assert "/lab/experiments/ring-by-the-byte" in html


def test_alpha_and_bandwidth_come_from_the_ping_pong(client: TestClient, database: Database) -> None:
    run_id = _finished(client, database, {"program": "collectives", "parallel": {"data": 2}})
    points = [
        MeasurementEvent(1.0, 0, "ping-pong", size, 20e-6 + size / 2e9, "s", "ping_pong")
        for size in (1e3, 1e5, 1e6, 1e7)
    ]
    with database.write() as session:
        session.add(Chunk(run_id=run_id, sequence=1, events=[to_json(each) for each in points], created_at=NOW))
    html = client.get("/lab/fit", headers=HTML).text
    assert "20 µs" in html
    assert "2 GB/s" in html
    assert "the law holds as far as this machine can tell" in html


def test_both_terms_of_activations_and_the_factor_of_recomputation(client: TestClient, database: Database) -> None:
    """k = 60 and c = 4 of runs made so; steps of 1 s that take 1.2 s with recomputation."""
    for sequence in (64, 128):
        for attention in ("flash", "full"):
            training = {"sequence": sequence, "micro_batch": 2, "attention": attention}
            terms = (2 * 2 * sequence * 128, 2 * 2 * sequence**2 * 4 if attention == "full" else 0)
            spec = {"model": "gpt-mini", "training": training}
            kept = 60 * terms[0] + 4 * terms[1]
            _finished(client, database, spec, activation_bytes=kept, step_seconds=1.0)
        again = {"model": "gpt-mini", "training": {"sequence": sequence, "micro_batch": 2, "recompute": "full"}}
        _finished(client, database, again, step_seconds=1.2)
    other = {"model": {"layers": 1, "hidden": 64, "heads": 2, "vocab": 256}}
    _finished(client, database, other, activation_bytes=1e6)  # newer, of a shape with too few for a law of its own
    html = client.get("/lab/fit", headers=HTML).text
    activations = html.split('id="activations"')[1].split('id="recomputation"')[0]
    assert "<b>60</b>" in activations
    assert "<b>4</b>" in activations
    assert "<b>20 %</b>" in html
    assert "Less than a third" in html


def test_pairs_that_scatter_say_nothing_of_a_third(client: TestClient, database: Database) -> None:
    for micro_batch, seconds in ((2, 3.5), (4, 1.2)):
        for recompute, took in (("none", 1.5), ("full", seconds)):
            training = {"micro_batch": micro_batch, "recompute": recompute}
            _finished(client, database, {"model": "gpt-mini", "training": training}, step_seconds=took)
    assert "nothing can be said of a third yet" in client.get("/lab/fit", headers=HTML).text
