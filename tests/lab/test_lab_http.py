"""The lab over HTTP: submit, look, cancel, and bad input at its field."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.core.clock import utc_now
from app.core.db import Database
from app.core.limits import Limits
from app.lab import presence
from app.lab.models import Run
from app.theory.lab_runs import run_theory
from labs.spec import RunSpec, parse_run_spec

SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 10, "sequence": 32}, "parallel": {"data": 2}}
HTML = {"Accept": "text/html"}


def spec_of(stage: int, ranks: int) -> RunSpec:
    spec = {"model": "gpt-small", "training": {"sequence": 128}, "parallel": {"data": ranks, "zero": stage}}
    return parse_run_spec(spec)


def test_a_run_is_queued_and_can_be_looked_at_and_cancelled(client: TestClient) -> None:
    reply = client.post(
        "/api/v1/lab/runs", json={"spec": SPEC, "prediction": {"model_state_bytes": {"value": "7.1 MB"}}}
    )
    assert reply.status_code == 201
    assert reply.json() == {"id": 1, "status": "queued", "queue_position": 0, "warning": "No worker answers."}
    run = client.get("/api/v1/lab/runs/1").json()
    assert run["prediction"]["model_state_bytes"]["value"] == 7.1e6
    assert client.post("/api/v1/lab/runs/1/cancel").json()["status"] == "cancelled"


def test_the_same_key_queues_one_run(client: TestClient) -> None:
    replies = [client.post("/api/v1/lab/runs", json={"spec": SPEC}, headers={"Idempotency-Key": "k"}) for _ in range(3)]
    assert {reply.json()["id"] for reply in replies} == {1}


def test_a_double_click_on_the_form_queues_one_run(client: TestClient) -> None:
    form = {"key": "one-page", "zero": "0", "data": "2"}
    targets = {client.post("/lab/runs", data=form).headers["location"] for _ in range(2)}
    assert targets == {"/lab/runs/1"}
    assert client.get("/lab/runs/2", headers=HTML).status_code == 404


def test_every_violation_comes_as_problem_details(client: TestClient) -> None:
    bad = {
        "model": {"layers": 10**9, "hidden": 256, "heads": 7, "vocab": 256},
        "training": {"micro_batch": 0, "speed": 1},
    }
    reply = client.post("/api/v1/lab/runs", json={"spec": bad})
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    errors = {error["field"]: error for error in reply.json()["errors"]}
    assert set(errors) == {"model.layers", "model.heads", "training.micro_batch", "training.speed"}
    assert errors["model.heads"]["accepted"] == "1, 2, 4, 8, 16"


def test_the_free_form_keeps_what_was_typed(client: TestClient) -> None:
    reply = client.post("/lab/runs", data={"heads": "7", "steps": "soon", "zero": "3", "data": "2"}, headers=HTML)
    assert reply.status_code == 422
    assert 'value="soon"' in reply.text
    assert "does not divide" in reply.text


def test_an_experiment_locks_its_prediction(client: TestClient) -> None:
    form = {
        "key": "k",
        "parallel.zero": "3",
        "parallel.data": "4",
        "training.micro_batches": "1",
        "value.model_state_bytes": "13 MB",
        "within.model_state_bytes": "1.5",
        "value.payload_bytes_per_step": "",
    }
    reply = client.post("/lab/experiments/L10/runs", data=form)
    assert reply.headers["location"] == "/lab/runs/1"
    run = client.get("/api/v1/lab/runs/1").json()
    assert run["experiment"] == "L10"
    assert run["spec"]["parallel"]["data"] == 4
    assert list(run["prediction"]) == ["model_state_bytes"]


def test_a_prediction_that_cannot_be_read_stays_on_the_page_with_its_reason(client: TestClient) -> None:
    form = {"value.model_state_bytes": "13 apples", "parallel.zero": "3"}
    reply = client.post("/lab/experiments/zero-by-the-byte/runs", data=form, headers=HTML)
    assert reply.status_code == 422
    assert 'value="13 apples"' in reply.text
    assert "is not a unit known here" in reply.text
    assert client.get("/api/v1/lab/runs/1").status_code == 404


def test_a_run_that_no_worker_can_take_says_so_at_once_and_as_long_as_it_waits(
    client: TestClient, database: Database
) -> None:
    cpu = [{"kind": "cpu", "name": "CPU", "backend": "gloo", "memory_bytes": 1}]
    with database.write() as session:
        presence.announce_worker(session, "w", "device", cpu, utc_now(), None)
    assert client.post("/api/v1/lab/runs", json={"spec": SPEC}).json()["warning"] is None
    two = {**SPEC, "device": "cuda", "parallel": {"data": 2}}
    said = client.post("/api/v1/lab/runs", json={"spec": two}).json()
    assert said["status"] == "queued"
    assert said["warning"] == "It asks for 2 GPUs, one for every rank; no worker that is there has more than 0."
    assert said["warning"] in client.get(f"/lab/runs/{said['id']}", headers=HTML).text
    with database.write() as session:
        gpus = [{"kind": "cuda", "name": f"GPU {n}", "backend": "NCCL", "memory_bytes": 1} for n in (0, 1)]
        presence.announce_worker(session, "g", "device", gpus, utc_now(), None)
    assert said["warning"] not in client.get(f"/lab/runs/{said['id']}", headers=HTML).text
    with database.write() as session:
        presence.retire_worker(session, "g")
    assert said["warning"] in client.get(f"/lab/runs/{said['id']}", headers=HTML).text, "it has left"


def test_a_waiting_run_says_where_it_stands_and_that_no_worker_answers(client: TestClient) -> None:
    for _ in range(2):
        client.post("/api/v1/lab/runs", json={"spec": SPEC})
    html = client.get("/lab/runs/2", headers=HTML).text
    assert "Queued, 1 ahead" in html
    assert "No worker answers" in html
    assert "No worker answers" in client.get("/lab", headers=HTML).text


def test_the_script_is_a_plain_torchrun_command(client: TestClient) -> None:
    client.post("/api/v1/lab/runs", json={"spec": SPEC})
    script = client.get("/api/v1/lab/runs/1/script").json()
    assert "--rdzv-conf store_type=file --nproc-per-node 2 -m labs.train --spec" in script["command"]
    assert script["spec"]["parallel"]["data"] == 2


def test_what_does_not_exist_says_so(client: TestClient) -> None:
    for path in ("/api/v1/lab/runs/99", "/api/v1/lab/runs/99/script", "/api/v1/lab/runs/99/events"):
        assert client.get(path).status_code == 404
    assert client.post("/api/v1/lab/runs/99/cancel").status_code == 404
    assert client.get("/lab/experiments/L99", headers=HTML).status_code == 404
    assert client.get("/lab/runs/abc", headers=HTML).status_code == 422


@pytest.mark.parametrize("typed", ["2.7", "1,5", "1e3", "2 steps", "٣", "", "1,0000"])
def test_what_is_no_whole_number_is_refused_and_not_rounded(client: TestClient, typed: str) -> None:
    reply = client.post("/lab/runs", data={"zero": "3", "data": "2", "steps": typed}, headers=HTML)
    assert reply.status_code == 422
    assert f'name="steps" value="{typed}"' in reply.text
    assert "Accepted: a whole number" in reply.text


@pytest.mark.parametrize(("typed", "steps"), [(" 40 ", 40), ("500", 500)])
def test_a_whole_number_is_taken(client: TestClient, typed: str, steps: int) -> None:
    client.post("/lab/runs", data={"zero": "3", "data": "2", "steps": typed})
    assert client.get("/api/v1/lab/runs/1").json()["spec"]["training"]["steps"] == steps


@pytest.mark.parametrize("path", ["/lab/runs", "/lab/experiments/L10/runs"])
def test_a_full_queue_says_so_on_the_page_it_was_asked_on(client: TestClient, path: str) -> None:
    for _ in range(Limits().runs_waiting):
        assert client.post("/api/v1/lab/runs", json={"spec": SPEC}).status_code == 201
    form = {"key": "last", "value.model_state_bytes": "13 MB", "zero": "3", "data": "2"}
    reply = client.post(path, data=form, headers=HTML)
    assert reply.status_code == 429
    assert f"{Limits().runs_waiting} runs are waiting already" in reply.text
    client.post("/lab/runs/1/cancel")
    assert client.post(path, data=form, headers=HTML).status_code == 303, "the refused try is not kept as its key's"


def test_a_key_of_another_form_says_so_on_the_page(client: TestClient) -> None:
    client.post("/lab/runs", data={"key": "k", "zero": "0", "data": "2"})
    reply = client.post("/lab/experiments/L10/runs", data={"key": "k", "value.model_state_bytes": "13 MB"})
    assert reply.status_code == 422
    assert "already used for something else" in reply.text
    assert 'value="13 MB"' in reply.text


@pytest.mark.parametrize("query", ["", "?parallel.zero=0", "?parallel.zero=0&parallel.data=1", "?parallel.data=4"])
def test_the_sliders_give_no_answer_away(client: TestClient, query: str) -> None:
    """Neither marks nor ends of a slider are the answer of any setting of the knobs."""
    page = client.get(f"/lab/experiments/L10{query}").text
    numbers = {float(f) * float(m) for m, f in re.findall(r'data-maximum="([\d.e+]+)".*?--f:([\d.]+)', page, re.DOTALL)}
    numbers |= {float(m) for m in re.findall(r'data-maximum="([\d.e+]+)"', page)}
    assert len(numbers) >= 2
    for stage in (0, 3):
        for ranks in (1, 2, 3, 4):
            theory = run_theory(spec_of(stage, ranks))
            for answer in (theory.state_total_bytes, theory.payload_bytes_per_step):
                assert all(abs(number / answer - 1) > 0.02 for number in numbers if answer)


def test_a_refused_form_has_the_focus_on_its_first_error_and_says_the_fields_as_they_are_labelled(
    client: TestClient,
) -> None:
    reply = client.post("/lab/runs", data={"hidden": "100", "heads": "3", "data": "9"}, headers=HTML)
    assert reply.status_code == 422
    focused = re.findall(r"<[^>]*\bautofocus\b[^>]*>", reply.text)
    assert len(focused) == 1
    assert 'id="f-data"' in focused[0]
    assert 'aria-invalid="true"' in focused[0]
    assert "3 does not divide width = 100." in reply.text
    assert "hidden = 100" not in reply.text


def test_a_refused_run_written_out_has_the_focus_on_its_text(client: TestClient) -> None:
    reply = client.post("/lab/runs", data={"spec": "{"}, headers=HTML)
    focused = re.findall(r"<[^>]*\bautofocus\b[^>]*>", reply.text)
    assert len(focused) == 1
    assert focused[0].startswith("<textarea")


def test_the_address_of_a_refused_form_can_be_reloaded(client: TestClient) -> None:
    assert client.get("/lab/runs", headers=HTML).status_code == 200
    reply = client.get("/lab/experiments/L10/runs", headers=HTML)
    assert reply.status_code == 303
    assert client.get(reply.headers["location"], headers=HTML).status_code == 200


def test_a_run_of_ones_own_is_run_again_from_the_form_or_written_out_where_the_form_has_no_field(
    client: TestClient,
) -> None:
    client.post("/lab/runs", data={"zero": "2", "data": "4", "steps": "7"})
    client.post("/lab/runs/1/cancel")
    assert 'href="/lab?again=1#ff"' in client.get("/lab/runs/1", headers=HTML).text.replace("&amp;", "&")
    form = client.get("/lab?again=1", headers=HTML).text
    assert re.search(r'name="steps" value="7"', form)
    assert re.search(r'<option value="2" selected>ZeRO-2', form)
    client.post("/api/v1/lab/runs", json={"spec": SPEC | {"training": {"seed": 5}}})
    written = client.get("/lab?again=2", headers=HTML).text
    assert re.search(r"<textarea[^>]*>\s*\{[^<]*&#34;seed&#34;: 5", written)
    assert "Only the JSON below says all of this run: seed 5." in written
    assert client.get("/lab?again=3", headers=HTML).status_code == 404


def test_a_run_with_a_fault_is_run_again_as_it_was_or_without_the_fault(client: TestClient, database: Database) -> None:
    fault = {"kind": "kill", "rank": 1, "step": 5}
    planned = {"model": "gpt-mini", "training": {"steps": 12}, "parallel": {"data": 2}, "faults": [fault]}
    client.post("/api/v1/lab/runs", json={"spec": planned})
    shown = html.unescape(client.get("/lab?again=1", headers=HTML).text)
    assert "Only the JSON below says all of this run: kill rank 1 at step 5." in shown
    assert re.search(r'name="steps" value="12"', shown), "the fields the run has"
    assert re.search(r'<option value="0" selected>DDP', shown)
    assert '<button class="btn btn-primary" form="written-out">Run it again</button>' in shown
    assert "data-run>Run it without the fault</button>" in shown
    assert re.search(r"In words, without the fault</h3>\s*<p[^>]*>DDP on 2 ranks: [^<]* 2 layers [^<]* 12 steps", shown)
    without = html.unescape(client.get("/lab?again=1&change=faults:none", headers=HTML).text)
    assert re.search(r'name="steps" value="12"', without)
    assert "Only the JSON below" not in without
    with database.write() as session:
        session.execute(update(Run).values(steps_done=4))
    restarted = html.unescape(client.get("/lab?again=1&change=restarts:from-checkpoint", headers=HTML).text)
    assert re.search(r'name="checkpoint_every" value="2"', restarted)
    assert '"step": 5' in restarted, "the fault stays"
