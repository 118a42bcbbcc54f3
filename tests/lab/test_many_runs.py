"""Pages of several runs: the list narrowed, names and notes, a comparison, what can be kept."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.lab import service
from app.lab.film import TERMS, Strip
from app.lab.models import Chunk, Run
from app.lab.side_times import said_of_same_work, said_of_update, watched_beside_plain
from labs.spec import parse_run_spec
from labs.spec.events import StepEvent, to_json
from tests.conftest import NOW
from tests.support.lab_runs import HTML, SPEC, finish, submit

# --- the list


def test_the_list_is_narrowed_by_words_and_standing(client: TestClient, database: Database) -> None:
    sharded, replicated = submit(client), submit(client, parallel={"data": 2})
    finish(database, sharded)
    client.post(f"/lab/runs/{replicated}/name", data={"name": "Baseline", "note": "before bf16"})

    def listed(query: str) -> list[str]:
        return re.findall(r'name="run" value="(\d+)"', client.get(f"/lab/runs?{query}", headers=HTML).text)

    assert listed("") == [str(replicated), str(sharded)]
    assert listed("q=fsdp") == [str(sharded)]
    assert listed("q=baseline+BF16") == [str(replicated)]
    assert listed("q=nothing+of+the+kind") == []
    assert listed("standing=finished") == [str(sharded)]
    assert listed("standing=under-way&q=ddp") == []
    assert listed("standing=under-way&q=baseline&page=9") == [str(replicated)]
    titles = {"": "2 runs, none of them predicted", "q=fsdp": "1 of 2 runs", "standing=finished": "1 of 2 runs"}
    for query, title in titles.items():
        assert f"<h1>{title}</h1>" in client.get(f"/lab/runs?{query}", headers=HTML).text
    refused = client.get("/lab/runs?standing=lost", headers=HTML)
    assert refused.status_code == 422
    assert "finished" in refused.text


def test_a_name_and_a_note_are_kept_and_too_long_ones_refused_by_field(client: TestClient) -> None:
    run = submit(client)
    kept = client.post(f"/lab/runs/{run}/name", data={"name": "  two   words ", "note": "<b>seen</b>\r\nand kept"})
    assert kept.status_code == 303
    shown = client.get(f"/api/v1/lab/runs/{run}").json()
    assert (shown["name"], shown["note"]) == ("two words", "<b>seen</b>\nand kept")
    assert "<b>seen" not in client.get(f"/lab/runs/{run}", headers=HTML).text
    refused = client.post(f"/lab/runs/{run}/name", data={"name": "n" * 81, "note": "m" * 2001})
    assert refused.status_code == 422
    assert {each["field"] for each in refused.json()["errors"]} == {"name", "note"}
    assert client.get(f"/api/v1/lab/runs/{run}").json()["name"] == "two words"
    assert client.post("/lab/runs/99/name", data={"name": "x"}).status_code == 404


# --- a comparison


def test_a_comparison_has_what_differs_and_leaves_out_what_does_not(client: TestClient, database: Database) -> None:
    one, other = submit(client), submit(client, parallel={"data": 2})
    finish(database, one, model_state_bytes=6.4e6, step_seconds=0.1)
    finish(database, other, model_state_bytes=12.8e6, step_seconds=0.25)
    for run, losses in ((one, (5.0, 4.0)), (other, (5.5, 4.5))):
        steps = [StepEvent(1.0, 0, n, loss, 64, 0.1, 640.0, False, None) for n, loss in enumerate(losses, 1)]
        with database.write() as session:
            run_row = session.get(Run, run)
            assert run_row is not None
            _write_chunk(session, run_row, steps)
    html = client.get(f"/lab/compare?run={one}&run={other}", headers=HTML).text
    assert "1 field differs between 2 runs" in html
    said = f"<h1>Model state per rank: run {other} has 2 times that of run {one}, as theory has it</h1>"
    assert said in html, "a time is further apart, of which theory says nothing"
    assert "FSDP" in html  # a value is called as the form calls it, its field also as the spec names it
    assert "parallel.zero" in html
    assert "training.steps" not in html
    assert "× 2.5" in html
    assert html.count("Run 2</") >= 2
    assert "Loss" in html


def test_where_theory_knows_no_difference_a_time_is_told_with_its_steps(client: TestClient, database: Database) -> None:
    for seconds in (0.1, 0.25):
        finish(database, submit(client), step_seconds=seconds, steps=4)
    html = client.get("/lab/compare?run=1&run=2", headers=HTML).text
    assert "<h1>Duration of a step: run 2 has 2.5 times that of run 1, in runs of 4 and 4 steps</h1>" in html


def test_a_run_that_was_killed_says_so_beside_one_that_was_not(client: TestClient, database: Database) -> None:
    one, killed = submit(client), submit(client, faults=[{"kind": "kill", "rank": 1, "step": 3}])
    finish(database, one, model_state_bytes=6.4e6)
    with database.write() as session:
        run = session.get_one(Run, killed)
        run.status, run.ended_at, run.failure = "failed", NOW, {"cause": "killed", "message": "Rank 1 was killed."}
    html = client.get(f"/lab/compare?run={one}&run={killed}", headers=HTML).text
    assert f"<h1>Run {killed}: rank 1 was killed</h1>" in html
    assert "kill rank 1 at step 3" in html
    assert f"Run {killed} ended before totals were taken" in html


def test_a_watched_step_is_told_from_a_plain_one() -> None:
    strip = Strip(3, 0.2, "", (), "100", {}, (), ())
    assert watched_beside_plain([7], [None], [(0, strip)]) == ""
    assert "run 7 200 ms against 100 ms." in watched_beside_plain([7], [0.1], [(0, strip)])


def test_of_what_is_as_far_apart_the_measured_is_told_before_what_follows_from_it(
    client: TestClient, database: Database
) -> None:
    """Sixteen times the batch: the same payload, so a sixteenth for each token, and sixteen times the activations."""
    for batch in (1, 16):
        run = submit(client, parallel={"data": 2}, training={"steps": 4, "micro_batch": batch})
        finish(database, run, payload_bytes_per_step=8e6, activation_bytes=2e6 * batch)
    html = client.get("/lab/compare?run=1&run=2", headers=HTML).text
    assert "<h1>Activations at their largest: run 2 has 16 times that of run 1, as theory has it</h1>" in html


def _write_chunk(session: Any, run: Run, steps: list[StepEvent]) -> None:
    run.chunks = 1
    session.add(Chunk(run_id=run.id, sequence=1, events=[to_json(each) for each in steps], created_at=NOW))


def test_a_prediction_under_way_is_given_away_by_no_comparison(client: TestClient) -> None:
    spec = {**SPEC, "training": {"steps": 4, "sequence": 64}}
    prediction = {"model_state_bytes": {"value": "1 MB", "within": 3}}
    hidden = client.post("/api/v1/lab/runs", json={"spec": spec, "prediction": prediction}).json()["id"]
    html = client.get(f"/lab/compare?run={hidden}", headers=HTML).text
    assert "theory" not in html.split("<main", 1)[-1].split("</main>")[0].lower()


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 200), ("run=99", 404), ("run=x", 422), ("run=0", 422), ("run=1&run=2&run=3&run=4&run=5", 422)],
)
def test_what_cannot_be_compared_is_said(client: TestClient, query: str, status: int) -> None:
    assert client.get(f"/lab/compare?{query}", headers=HTML).status_code == status


def test_the_same_passes_that_took_longer_are_the_machines_doing() -> None:
    def strip(rank: int, by_rank: Any = (), **terms: float) -> tuple[int, Strip]:
        every = dict.fromkeys(TERMS, 0.0) | terms
        return rank, Strip(rank, sum(every.values()), "", (), "100", every, by_rank, ())

    ddp, fsdp, larger = (
        parse_run_spec({**SPEC, "parallel": {"data": 2, "zero": zero}, "training": {"steps": 4, "micro_batch": batch}})
        for zero, batch in ((0, 2), (3, 2), (3, 4))
    )
    apart = [strip(0, forward=0.1, backward=0.2), strip(1, forward=0.17, backward=0.21)]
    said = said_of_same_work([ddp, fsdp], [7, 9], apart)
    assert said.startswith("The same arithmetic, and forward took 1.7 times as long in run 9: the machine")
    assert said_of_same_work([ddp, larger], [7, 9], apart) == "", "twice the tokens are twice the work"
    assert said_of_same_work([ddp, fsdp], [7, 9], [apart[0], (1, apart[0][1])]) == ""
    ranks = [{"forward": seconds, "backward": 0.2} for seconds in (0.05, 0.15)]
    lagging = [strip(0, ranks, forward=0.1, backward=0.2), strip(1, ranks[:1] * 2, forward=0.1, backward=0.2)]
    said = said_of_same_work([ddp, fsdp], [7, 9], lagging)
    assert "in run 7 forward took 3 times as long on rank 1 as on rank 0: the machine" in said
    staged = parse_run_spec({**SPEC, "parallel": {"pipeline": 2}})
    assert said_of_same_work([staged, staged], [7, 9], lagging) == "", "stages are different work"


def test_an_update_of_shards_that_took_longer_is_explained() -> None:
    specs = [parse_run_spec({**SPEC, "parallel": {"data": 2, "zero": zero}}) for zero in (0, 3)]
    took = [
        (at, Strip(at, 1.0, "", (), "100", {"optimizer": seconds}, (), ())) for at, seconds in enumerate((0.01, 0.025))
    ]
    said = said_of_update(specs, [7, 9], took)
    assert said.startswith("The update took 2.5 times as long in run 9 as in run 7, though a rank updates 1/2 of")
    assert said_of_update(specs, [7, 9], [took[0], (1, took[0][1])]) == ""
    assert said_of_update(specs[:1] * 2, [7, 9], took) == "", "whole tensors both"


def test_steps_of_more_tokens_are_compared_by_the_token(client: TestClient, database: Database) -> None:
    """DDP sends the same in a step of four micro-batches: a quarter for each token."""
    runs = [submit(client, parallel={"data": 2}, training={"steps": 4, "micro_batches": count}) for count in (1, 4)]
    for run in runs:
        finish(database, run, payload_bytes_per_step=8e6)
    html = client.get(f"/lab/compare?run={runs[1]}&run={runs[0]}", headers=HTML).text
    assert "<h1>Payload per rank and token: run 1 has 4 times that of run 2, as theory has it</h1>" in html
    assert html.index("Run 1</") < html.index("Run 2</"), "the earlier one is what the others are held against"
    assert "Put it beside" in client.get("/lab/compare?run=1", headers=HTML).text


# --- what can be kept


def test_spec_and_events_are_files_and_a_prediction_under_way_is_in_neither(
    client: TestClient, database: Database
) -> None:
    run = submit(client)
    assert client.post("/api/v1/lab/runs", json={"spec": client.get(f"/api/v1/lab/runs/{run}/spec").json()}).is_success
    events = [StepEvent(1.0, 0, n, 5.0, 64, 0.1, 640.0, False, None) for n in (1, 2)]
    with database.write() as session:
        _write_chunk(session, service.find_run(session, 1, run), events)
    reply = client.get(f"/api/v1/lab/runs/{run}/record")
    assert [json.loads(line) for line in reply.text.splitlines()] == [to_json(each) for each in events]
    assert reply.headers["content-disposition"] == f'attachment; filename="run-{run}.jsonl"'
    with database.write() as session:
        service.find_run(session, 1, run).prediction = {"step_seconds": {"text": "1 s", "value": 1.0, "within": None}}
    assert client.get(f"/api/v1/lab/runs/{run}/record").text == ""
    assert client.get("/api/v1/lab/runs/99/record").status_code == 404
