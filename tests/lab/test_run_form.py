"""The form of own runs: what theory expects of it, and what it offers."""

from __future__ import annotations

import json
from typing import Any

from fastapi.testclient import TestClient

from app.core.clock import utc_now
from app.core.db import Database
from app.lab import forms, presence
from tests.support.lab_runs import HTML, finish, submit

# --- what theory expects of the form


def test_the_form_is_told_what_theory_expects_and_nothing_is_queued(client: TestClient, database: Database) -> None:
    typed = {"zero": "3", "data": "2"}
    shown = client.post("/lab/expected", data=typed, headers=HTML).text
    assert "FSDP on 2 ranks" in shown
    assert "Model state per rank" in shown
    assert "no training of yours has been timed" in shown
    finish(database, submit(client), tokens_per_second=1000.0, step_seconds=0.5)
    assert "A step takes about" in client.post("/lab/expected", data=typed, headers=HTML).text
    refused = client.post("/lab/expected", data={**typed, "hidden": "100", "heads": "3"}, headers=HTML)
    assert "Cannot run so" in refused.text
    assert "width" in refused.text
    assert client.get("/api/v1/lab/runs/2").status_code == 404


# --- the form


def test_the_form_asks_for_checkpoints_and_restarts_and_shows_them_again(client: TestClient) -> None:
    typed = {"checkpoint_every": "5", "checkpoint_mode": "async", "restarts": "2"}
    sent = client.post("/lab/runs", data={**typed, "key": "recovering"}, headers=HTML, follow_redirects=False)
    run = sent.headers["location"].rpartition("/")[2]
    spec = client.get(f"/api/v1/lab/runs/{run}/spec").json()
    assert (spec["training"]["checkpoint_every"], spec["training"]["checkpoint_mode"], spec["restarts"]) == (
        5,
        "async",
        2,
    )
    assert forms.settings_of_run(spec).items() >= typed.items()
    without = forms.spec_of_form({})
    assert without["training"]["checkpoint_every"] is None
    assert forms.settings_of_run(without)["checkpoint_every"] == ""


def test_the_form_says_which_choices_cannot_work_and_why(client: TestClient, database: Database) -> None:
    def offered(**typed: str) -> dict[str, Any]:
        found: dict[str, Any] = client.post("/lab/offered", data=typed, headers=HTML).json()
        return found

    alone = offered()
    assert "Without a pipeline" in alone["refused"]["schedule"]["gpipe"]
    assert "1f1b" not in alone["refused"]["schedule"], "what is chosen stays"
    assert "device" not in alone["refused"], "no worker answers: whatever is chosen waits"
    assert alone["wrong"] == {}
    assert set(alone["idle"]) == {"schedule", "virtual_stages", "checkpoint_mode"}, "they can be nothing else"
    staged = offered(pipeline="2")
    assert "gpipe" not in staged["refused"]["schedule"]
    assert staged["follows"]["schedule"]["interleaved"] == {"virtual_stages": "2", "micro_batches": "2"}
    assert staged["words"].startswith("Pipeline of 2 × FSDP of 2 on 4 ranks: 3.25M parameters")
    assert set(staged["idle"]) == {"checkpoint_mode"}
    assert json.loads(staged["written"])["parallel"]["pipeline"] == 2
    assert "Nothing is filled in." in offered(steps="")["wrong"]["steps"]
    assert set(staged["refused"]["zero"]) == {"2"}
    assert "3" not in offered(pipeline="2", zero="2")["refused"].get("zero", {}), "the way back is open"
    lots = {"value.model_state_bytes": "lots", "value.step_seconds": "2 s"}
    assert set(offered(steps="many", **lots)["wrong"]) == {"steps", "value.model_state_bytes"}, "all at once"
    sent = client.post("/lab/runs", data={"steps": "many", **lots}, headers=HTML)
    assert sent.text.count('aria-invalid="true"') == 2
    no_checkpoints = "No checkpoints are asked for. Accepted: “Training waits for it”."
    assert alone["refused"]["checkpoint_mode"]["async"] == no_checkpoints, "in the form's words"
    assert "restarts" not in alone["refused"], "without a checkpoint they go on from the first step"
    assert "checkpoint_mode" not in offered(checkpoint_every="10")["refused"]
    assert "Accepted: 1 to 9, or none" in offered(steps="10", checkpoint_every="10")["wrong"]["checkpoint_every"]
    assert "checkpoint_every" in offered(checkpoint_every="often")["wrong"]
    assert set(offered(steps="many", checkpoint_every="10")["wrong"]) == {"steps"}
    with database.write() as session:
        cpu = [{"kind": "cpu", "name": "CPU", "backend": "gloo", "memory_bytes": 1e9}]
        presence.announce_worker(session, "w1", "device", cpu, utc_now(), None)
    assert "GPUs" in offered()["refused"]["device"]["cuda"]
    assert client.get("/lab/offered").status_code == 303


def test_the_form_says_how_long_it_takes_from_the_training_most_like_it(client: TestClient, database: Database) -> None:
    """12 steps as one took 21.5 ms each; of a step of eight times the tokens the pace is another's."""
    typed = {"zero": "0", "steps": "12", "layers": "2"}
    for micro_batch, tokens, seconds in (("2", 512, 0.0215), ("16", 4096, 0.05)):
        asked = {**typed, "micro_batch": micro_batch, "key": micro_batch}
        sent = client.post("/lab/runs", data=asked, headers=HTML, follow_redirects=False)
        made = {"tokens_per_second": tokens / seconds, "step_seconds": seconds, "world_size": 2}
        finish(database, int(sent.headers["location"].rpartition("/")[2]), **made)
    for micro_batch, whole in (("2", "260 ms"), ("16", "600 ms")):
        words = client.post("/lab/offered", data={**typed, "micro_batch": micro_batch}, headers=HTML).json()["words"]
        assert f"About {whole}, starting up not counted" in words
