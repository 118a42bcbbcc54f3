"""The page of a program's run, while it measures and when it is done."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.lab import work
from app.theory.lab_runs import expected_of_program
from labs.spec import PROGRAMS, RunSpec, parse_run_spec
from labs.spec.events import Event
from tests.conftest import NOW
from tests.support import events

HTML = {"Accept": "text/html"}


def spec_of(name: str) -> RunSpec:
    kind = PROGRAMS[name]
    parallel = {kind.axis: max(2, kind.fewest_ranks)} if kind.axis else {}
    return parse_run_spec({"program": name, "parallel": parallel})


def events_of(spec: RunSpec) -> list[Event]:
    """A point of every figure, and every rank's result with every quantity."""
    assert spec.options is not None
    points = [events.measurement("seen", 2.0, 0.5, figure=figure) for figure in spec.options.figures]
    facts = {"program": spec.program, "backend": "gloo", "device": "cpu", "device_name": "CPU", "world_size": 2}
    summary = facts | dict.fromkeys(spec.options.quantities, 0.25)
    return [*points, *(events.result(rank, summary) for rank in range(spec.parallel.world_size))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_shows_its_figures_beside_theory_and_its_quantities(
    client: TestClient, database: Database, name: str
) -> None:
    spec = spec_of(name)
    assert spec.options is not None
    run_id = client.post("/api/v1/lab/runs", json={"spec": spec.model_dump(mode="json")}).json()["id"]
    assert client.get(f"/lab/runs/{run_id}", headers=HTML).status_code == 200
    with database.write() as session:
        claim = work.claim_next(session, "w1", lambda _spec: "CPU", NOW)
        assert claim is not None
        work.append_chunk(session, claim, events_of(spec), NOW)
    measuring = client.get(f"/lab/runs/{run_id}", headers=HTML).text
    assert "Measuring" in measuring
    with database.write() as session:
        assert work.end_run(session, claim, "finished", NOW)
    page = client.get(f"/lab/runs/{run_id}", headers=HTML).text
    assert client.get(f"/api/v1/lab/runs/{run_id}").json()["status"] == "finished"
    assert all(figure.title in page.replace("&#39;", "'") for figure in spec.options.figures.values())
    assert all(quantity.title in page.replace("&#39;", "'") for quantity in spec.options.quantities.values())
    expected = expected_of_program(spec.options, spec.parallel.world_size)
    assert ("Dashes are theory" in page) == bool(expected.points)
    assert client.get("/lab", headers=HTML).status_code == 200
    assert client.get("/", headers=HTML).status_code == 200


@pytest.mark.parametrize("name", PROGRAMS)
def test_theory_speaks_of_figures_and_quantities_that_the_program_has(name: str) -> None:
    spec = spec_of(name)
    assert spec.options is not None
    expected = expected_of_program(spec.options, spec.parallel.world_size)
    assert {point.figure for point in expected.points} <= set(spec.options.figures)
    assert set(expected.quantities) <= set(spec.options.quantities)


def test_a_programs_quantity_can_be_predicted(client: TestClient) -> None:
    spec = spec_of("schedule").model_dump(mode="json")
    prediction = {"bubble_fraction": {"value": "27 %", "within": 1.1}}
    made = client.post("/api/v1/lab/runs", json={"spec": spec, "prediction": prediction})
    assert made.status_code == 201, made.text
    assert client.get("/api/v1/lab/runs/1").json()["prediction"]["bubble_fraction"]["value"] == 0.27
    wrong = client.post("/api/v1/lab/runs", json={"spec": spec, "prediction": {"model_state_bytes": {"value": "1 GB"}}})
    assert wrong.json()["errors"][0]["field"] == "prediction.model_state_bytes"
    assert "bubble_fraction" in wrong.json()["errors"][0]["accepted"]
