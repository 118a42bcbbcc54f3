"""What a monitoring system is told, and that its dashboard and rules ask for nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from app.core.db import Database
from app.core.models import Learner
from app.core.settings import Settings
from app.lab import presence
from app.lab.models import Run
from tests.conftest import NOW

DOCS = Path(__file__).parents[2] / "docs" / "operate"
HOSTS = [{"name": "n1", "is_usable": True}, {"name": "n2", "is_usable": False}]


def scraped(client: TestClient) -> dict[str, float]:
    """Every sample, by its name and labels, in both formats that Prometheus asks for."""
    found = []
    answers = [client.get("/metrics"), client.get("/metrics", headers={"Accept": "application/openmetrics-text"})]
    for answer, read in zip(answers, (plain, openmetrics), strict=True):
        samples = (each for family in read(answer.text) for each in family.samples)
        found.append({(each.name, frozenset(each.labels.items())): each.value for each in samples})
    assert found[0].keys() <= found[1].keys(), "the second answer has the first one's time besides"
    return {
        name + "".join(f" {key}={value}" for key, value in sorted(labels)): figure
        for (name, labels), figure in found[0].items()
    }


def a_run(status: str, waited: float, took: float | None, **parallel: int) -> Run:
    created = NOW - timedelta(minutes=30)
    started = created + timedelta(seconds=waited)
    ended = started + timedelta(seconds=took) if took is not None else None
    is_taken = status != "queued"
    return Run(
        learner_id=1,
        spec={"parallel": parallel},
        theory={},
        status=status,
        created_at=created,
        started_at=started if is_taken else None,
        ended_at=ended,
        heartbeat_at=NOW - timedelta(seconds=4) if is_taken else None,
    )


def test_figures_say_what_waits_what_was_done_and_who_is_there(client: TestClient, database: Database) -> None:
    with database.write() as session:
        assert session.get(Learner, 1) is not None
        session.add_all(
            [a_run("queued", 0, None), a_run("running", 60, None, data=2)]
            + [a_run("finished", 10 * each, 5, data=2, tensor=2) for each in range(1, 4)]
            + [a_run("failed", 40, 7)]
        )
        device: dict[str, object] = {"kind": "slurm", "hosts": HOSTS}
        presence.announce_worker(session, 'a "worker"', "device", [device], NOW, None)
    found = scraped(client)
    assert found["rankzero_queue_length"] == 1
    assert found["rankzero_queue_oldest_seconds"] == 1800
    assert found["rankzero_run_wait_seconds quantile=0.5"] == 30
    assert found["rankzero_run_wait_seconds quantile=1"] == 60
    assert found["rankzero_rank_seconds_last_day status=finished"] == 3 * 4 * 5
    assert found["rankzero_rank_seconds_last_day status=failed"] == 7
    assert found["rankzero_event_lag_seconds"] == 4
    assert found['rankzero_hosts usable=yes worker=a "worker"'] == 1
    assert found['rankzero_hosts usable=no worker=a "worker"'] == 1
    assert found['rankzero_worker_seen_seconds kind=device worker=a "worker"'] == 0


def test_answers_are_timed_by_route_and_not_by_what_was_asked_for(client: TestClient) -> None:
    for run in (8, 9):
        client.get(f"/api/v1/lab/runs/{run}")
    client.get("/no/such/page")
    found = scraped(client)
    labels = " method=GET route=/api/v1/lab/runs/{run_id} status=4xx"
    assert found[f"rankzero_http_response_seconds_count{labels}"] == 2
    assert found[f"rankzero_http_response_seconds_bucket le=+Inf{labels}"] == 2
    assert found[f"rankzero_http_response_seconds_sum{labels}"] > 0
    assert "rankzero_http_response_seconds_count method=GET route=none status=4xx" in found


def _expressions() -> list[str]:
    rules = yaml.safe_load((DOCS / "alerts.yaml").read_text())["groups"][0]["rules"]
    dashboard: dict[str, Any] = json.loads((DOCS / "dashboard.json").read_text())
    return [rule["expr"] for rule in rules] + [
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    ]


@pytest.mark.parametrize("expression", _expressions())
def test_dashboard_and_rules_ask_for_figures_that_there_are(client: TestClient, expression: str) -> None:
    text = client.get("/metrics").text
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    asked = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"rankzero_\w+", expression)}
    assert asked
    assert asked <= families
    bare = re.findall(r"(?<![\w(])rankzero_\w+", expression)
    assert not bare, "several web servers all tell it: aggregated, it is there once, and its labels are in nobody's way"


def test_the_rules_fire_of_what_they_are_about_and_of_nothing_else() -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("Rules of alerts are tried by promtool (Debian: apt install prometheus)")
    done = subprocess.run(
        [promtool, "test", "rules", str(Path(__file__).with_name("alerts.test.yaml"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_job_for_kubernetes_is_one_by_its_schema() -> None:
    """Of Kubernetes 1.37, where no field may stand that it does not know: its own definitions, as the package
    kubernetes-validate 1.37.0 has them (all kinds and all versions, 72 MB), without what they say in words."""
    schema = Path(__file__).parents[1] / "support" / "vendor" / "kubernetes" / "job-1.37.json"
    validator = jsonschema_rs.validator_for(json.loads(schema.read_text()))
    job = yaml.safe_load((DOCS / "kubernetes-worker.yaml").read_text())
    assert [error.message for error in validator.iter_errors(job)] == []
    job["spec"]["template"]["spec"]["containers"][0]["imag"] = "a slip"
    job["spec"]["backoffLimit"] = "many"
    assert len(list(validator.iter_errors(job))) == 2


def test_the_job_for_kubernetes_starts_a_worker_of_ours_with_settings_that_there_are() -> None:
    job = yaml.safe_load((DOCS / "kubernetes-worker.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] in ("OnFailure", "Never"), "a Job allows no other"
    (container,) = pod["containers"]
    assert container["command"][:2] == ["rankzero", "worker"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    names = {f"RANKZERO_{name.upper()}" for name in Settings.model_fields}
    assert {each["name"] for each in container["env"]} <= names
