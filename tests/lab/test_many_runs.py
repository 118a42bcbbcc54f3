"""Pages of several runs: the list narrowed, names and notes, a comparison, sweeps as one."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.clock import utc_now
from app.core.db import Database
from app.core.limits import Limits
from app.lab import forms, presence, service
from app.lab.film import TERMS, Strip
from app.lab.link import Link
from app.lab.models import Chunk, Run
from app.lab.side_times import said_of_same_work, said_of_update, watched_beside_plain
from app.lab.sweeps import base_of
from app.lab.sweeps.lines import lines_of, said_of_steps
from app.lab.sweeps.parts import PARTS, parts_of, said_of_parts, why_not_apart
from app.lab.sweeps.sending import said_of_sending
from app.theory.lab_runs import Point
from app.theory.lab_runs.transfers import transfer
from labs.spec import parse_run_spec
from labs.spec.events import StepEvent, to_json
from tests.conftest import NOW

HTML = {"Accept": "text/html"}
SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 4}, "parallel": {"data": 2, "zero": 3}}


def submit(client: TestClient, **changed: Any) -> int:
    reply = client.post("/api/v1/lab/runs", json={"spec": {**SPEC, **changed}})
    assert reply.status_code == 201, reply.text
    return int(reply.json()["id"])


def finish(database: Database, run_id: int, **measured: Any) -> None:
    with database.write() as session:
        run = service.find_run(session, 1, run_id)
        run.status, run.started_at, run.ended_at, run.result = "finished", NOW, NOW, measured


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


# --- sweeps


def sweep(client: TestClient, *knobs: tuple[str, list[Any]], **spec: Any) -> Any:
    asked = {"spec": {**SPEC, **spec}, "knobs": [{"field": field, "values": values} for field, values in knobs]}
    return client.post("/api/v1/lab/sweeps", json=asked, headers={"Idempotency-Key": "s"})


def test_a_sweep_is_a_run_for_every_setting_and_its_page_has_theory_and_residuals(
    client: TestClient, database: Database
) -> None:
    reply = sweep(client, ("training.micro_batch", [1, 2, 4]), ("parallel.zero", [0, 3]))
    assert reply.status_code == 201, reply.text
    assert len(reply.json()["runs"]) == 6
    assert sweep(client, ("training.micro_batch", [1, 2, 4]), ("parallel.zero", [0, 3])).json() == reply.json()
    for run in reply.json()["runs"][:3]:
        theory = client.get(f"/api/v1/lab/runs/{run}").json()["theory"]
        finish(database, run, activation_bytes=1.01 * theory["activation_bytes"])
    html = client.get("/lab/sweeps/1?quantity=activation_bytes", headers=HTML).text
    assert html.count("+1.00 %") >= 3
    assert (
        "<h1>Activations at their largest, not final after 3 of 6 runs: 1\xa0% more than theory everywhere</h1>" in html
    )
    assert "a factor that theory lacks" in html
    assert "3 of 6 ended" in html
    assert client.get("/lab/sweeps/1?quantity=colour", headers=HTML).status_code == 422
    assert client.post("/lab/sweeps/1/cancel").status_code == 303
    statuses = [client.get(f"/api/v1/lab/runs/{run}").json()["status"] for run in reply.json()["runs"]]
    assert statuses == ["finished"] * 3 + ["cancelled"] * 3


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        ([("training.colour", [1, 2])], "field_1"),
        ([("training.micro_batch", ["a", "b"])], "values_1"),
        ([("training.micro_batch", [1, 1])], "values_1"),
        ([("training.micro_batch", [1])], "values_1"),
        ([("training.micro_batch", [1, 2, 3, 4, 5]), ("parallel.zero", [0, 1, 2, 3])], "values_1"),
        ([("training.micro_batch", [1, 2]), ("training.micro_batch", [3, 4])], "field_2"),
        ([("parallel.data", [2, 64])], "parallel.data"),
        ([("training", [1, 2])], "field_1"),
    ],
)
def test_what_no_sweep_can_be_is_refused_by_field_and_starts_nothing(
    client: TestClient, knobs: list[tuple[str, list[Any]]], field: str
) -> None:
    reply = sweep(client, *knobs)
    assert reply.status_code == 422, reply.text
    assert field in {each["field"] for each in reply.json()["errors"]}
    assert client.get("/api/v1/lab/runs/1").status_code == 404


def test_a_sweep_that_the_queue_has_no_room_for_queues_nothing(client: TestClient) -> None:
    for _ in range(Limits().runs_waiting - 1):
        last = submit(client)
    assert sweep(client, ("training.micro_batch", [1, 2])).status_code == 429
    assert client.get(f"/api/v1/lab/runs/{last + 1}").status_code == 404
    assert client.get("/lab/sweeps/1").status_code == 404


def test_the_form_of_a_sweep_comes_back_as_it_was_sent_with_the_first_error_focused(client: TestClient) -> None:
    run = submit(client)
    assert "&#34;zero&#34;: 3" in client.get(f"/lab/sweeps?run={run}", headers=HTML).text
    typed = {"key": "k", "spec": "{", "field_1": "training.micro_batch", "values_1": ""}
    reply = client.post("/lab/sweeps", data=typed, headers=HTML)
    assert reply.status_code == 422
    focused = re.findall(r"<(?:input|textarea|p|div)[^>]*\bautofocus\b[^>]*>", reply.text)
    assert len(focused) == 1
    mistaken = {"spec": json.dumps(SPEC), "field_1": "Depth", "values_1": "1, two, 4", "field_2": "Strategy"}
    refused = client.post("/lab/sweeps", data={**mistaken, "values_2": "FSDP, ZeRO-9"}, headers=HTML).text
    assert "such as Micro-batch, Layers or Data ranks" in refused, "in the form's words"
    assert "&#39;two&#39; is no number" in refused
    assert "With Strategy ZeRO-9:" in refused, "all at once"
    assert "Accepted: DDP, ZeRO-1, ZeRO-2 or FSDP." in refused
    good = {
        **typed,
        "key": "l",
        "spec": '{"model": "gpt-mini"}',
        "values_1": "1, 2",
        "field_2": "training.recompute",
        "values_2": "none, full",
    }
    sent = client.post("/lab/sweeps", data=good, headers=HTML)
    assert sent.headers["location"] == "/lab/sweeps/1"
    again = re.search(r'href="(/lab/sweeps\?run=[^"]*)"', client.get("/lab/sweeps/1", headers=HTML).text)
    assert again is not None
    form = client.get(html.unescape(again[1]), headers=HTML).text
    typed_again = re.findall(r'name="(?:field|values)_[12]"[^>]*value="([^"]*)"', form)
    assert typed_again == ["Micro-batch", "1, 2", "Recompute", "none, full"], "both knobs, in the form's words"
    assert client.get("/lab/sweeps/1", headers=HTML).text.count('name="run"') == 4


def test_the_form_of_a_sweep_says_every_fault_at_its_own_field(client: TestClient) -> None:
    typed = {"spec": json.dumps(SPEC), "field_1": "Micro-batch", "values_1": "1, 2, lots", "field_2": "Strat"}
    refused = client.post("/lab/sweeps", data={**typed, "values_2": "", "steps": "5"}, headers=HTML).text
    said = dict(re.findall(r'<span class="error" id="e-(\w+)">([^<]+)</span>', refused))
    assert set(said) == {"values_1", "field_2", "values_2", "steps"}
    assert "lots" in said["values_1"]
    assert "&#39;Strat&#39; is no field of a run." in said["field_2"]
    assert "such as Strategy" in said["field_2"]
    assert said["values_2"].startswith("Nothing is filled in.")
    assert "says 4 steps" in said["steps"]
    live = client.post("/lab/sweeps/offered", data={**typed, "values_2": ""}).json()
    assert set(live["wrong"]) == {"values_1", "field_2", "values_2"}
    assert live["empty"] == ["values_2"], "not wrong before it is sent"
    assert live["runs"] == 0
    mistaken = client.post("/lab/sweeps/offered", data={**typed, "steps": "zero"}).json()
    assert "as it was typed" not in mistaken["alike"], "what is wrong at another field does not hide it"
    assert client.get("/lab/sweeps/1").status_code == 404


def test_the_form_of_a_sweep_counts_its_runs_and_their_time_before_it_starts(
    client: TestClient, database: Database
) -> None:
    page = client.get("/lab/sweeps", headers=HTML).text
    assert ">Run all 5</button>" in page
    for like, runs in (("activations", 6), ("recomputation", 10), ("strategies", 10)):
        assert f'href="/lab/sweeps?like={like}"' in page
        assert f">Run all {runs}</button>" in client.get(f"/lab/sweeps?like={like}", headers=HTML).text
    alike = re.search(r"data-alike>([^<]+)<", page)
    assert alike is not None
    assert "sequence 128" in alike[1]
    assert "sequences a step" not in alike[1], "the field that is turned is nothing they have alike"
    example = html.unescape(page.split('name="spec"')[1].split(">")[1].split("</textarea")[0])
    typed = {"spec": example, "field_1": "Layers", "values_1": "1, 2, 4", "steps": "100"}

    def offered(**changed: str) -> Any:
        return client.post("/lab/sweeps/offered", data={**typed, **changed}).json()

    assert offered()["runs"] == 3
    assert "nobody knows yet" in offered()["words"]
    run = client.post("/api/v1/lab/runs", json={"spec": json.loads(example)}).json()["id"]
    spec = client.get(f"/api/v1/lab/runs/{run}/spec").json()
    tokens = spec["training"]["micro_batch"] * spec["training"]["sequence"]
    finish(database, run, tokens_per_second=tokens / 0.5, step_seconds=0.5, world_size=1)
    assert "about 100 s," in offered(field_1="training.seed", values_1="1, 2")["words"], (
        "twice 100 steps of half a second"
    )
    smaller = offered(field_1="training.seed", values_1="1, 2", field_2="Sequence", values_2="16")["words"]
    assert re.search(r"about \d+ s to 100 s,", smaller), "what a step costs besides does not shrink with it"


def test_a_sweep_is_asked_for_in_the_forms_words(client: TestClient) -> None:
    html = client.get("/lab/sweeps", headers=HTML).text
    assert 'name="field_1" value="Micro-batch"' in html
    offered = re.findall(r'<option value="([^"]+)">([^<]+)</option>', html.split('<datalist id="fields">')[1])
    assert offered
    assert all(forms.path_called(label) == path for label, path in offered), "each label is its own way back"
    typed = {
        "key": "k",
        "spec": json.dumps({**SPEC, "parallel": {"data": 2}}),
        "field_1": "Micro-batch",
        "values_1": "1, 2",
        "field_2": "Strategy",
        "values_2": "ddp, FSDP",
    }
    assert client.post("/lab/sweeps", data=typed, headers=HTML).headers["location"] == "/lab/sweeps/1"
    zero = [client.get(f"/api/v1/lab/runs/{run}/spec").json()["parallel"]["zero"] for run in range(1, 5)]
    assert zero == [0, 3, 0, 3]
    assert "Micro-batch and Strategy" in client.get("/lab/sweeps", headers=HTML).text
    again = client.get("/lab/sweeps?run=1&sweep=1", headers=HTML).text
    assert 'name="values_1" value="1, 2"' in again
    assert 'name="values_2" value="DDP, FSDP"' in again


def test_a_sweep_of_strategies_has_two_ranks_and_says_so(client: TestClient, database: Database) -> None:
    """On one rank FSDP sends nothing, and that would look like an advantage."""
    knobs = {"field_1": "Micro-batch", "values_1": "1, 2, 4", "field_2": "Strategy", "values_2": "DDP, FSDP"}
    form = client.get("/lab/sweeps", headers=HTML).text
    assert "With Strategy, 1 data rank becomes 2." in form
    example = html.unescape(form.split('name="spec"')[1].split(">")[1].split("</textarea")[0])
    assert json.loads(example)["parallel"] == {"data": 1}
    sent = client.post("/lab/sweeps", data={"key": "k", "spec": example, **knobs}, headers=HTML)
    assert sent.headers["location"] == "/lab/sweeps/1"
    specs = [client.get(f"/api/v1/lab/runs/{run}/spec").json()["parallel"] for run in range(1, 7)]
    assert {each["data"] for each in specs} == {2}
    for run in range(1, 7):
        theory = client.get(f"/api/v1/lab/runs/{run}").json()["theory"]
        assert theory["payload_bytes_per_step"] > 0
        finish(database, run, payload_bytes_per_step=theory["payload_bytes_per_step"])
    shown = client.get("/lab/sweeps/1?quantity=payload_bytes_per_step", headers=HTML).text
    assert "theory to the last digit, at all 6 points</h1>" in shown
    assert "All on 2 data ranks: with 1, no strategy would have anyone to send to." in shown


@pytest.mark.parametrize(
    ("parallel", "fields", "data"),
    [
        ({"data": 4}, {"parallel.zero"}, 4),
        ({"data": 1}, {"training.micro_batch"}, 1),
        ({"data": 1}, {"parallel.data", "parallel.zero"}, 1),
        ({}, {"parallel.zero"}, 2),
        (None, {"parallel.zero"}, 2),
    ],
)
def test_only_strategies_on_one_rank_get_another(parallel: Any, fields: set[str], data: int) -> None:
    base: Any = base_of({"model": "gpt-mini", "parallel": parallel}, fields)
    assert base["parallel"]["data"] == data
    assert base_of("no spec", fields) == "no spec"


def test_a_series_of_zeros_is_named_and_counted(client: TestClient, database: Database) -> None:
    asked = ("training.micro_batch", [1, 2, 4]), ("parallel.zero", [0, 3])
    runs = sweep(client, *asked, parallel={"data": 1}).json()["runs"]
    theory = {run: client.get(f"/api/v1/lab/runs/{run}").json()["theory"]["payload_bytes_per_step"] for run in runs}
    assert sorted(theory.values())[:3] == [0, 0, 0]
    for run in runs:
        finish(database, run, payload_bytes_per_step=theory[run])
    address = "/lab/sweeps/1?quantity=payload_bytes_per_step"
    shown = client.get(address, headers=HTML).text
    assert "theory to the last digit, at all 6 points</h1>" in shown
    row = re.search(r'<th scope="row">FSDP</th>.*?</tr>', shown, re.DOTALL)
    assert row is not None
    assert "0 B, theory 0 B." in row[0]
    assert "All on 1 data rank, where what is sent goes to nobody." in shown
    finish(database, runs[1], payload_bytes_per_step=4000)
    assert "4 kB with FSDP at Micro-batch 1; theory has 0 B</h1>" in client.get(address, headers=HTML).text
    for run in runs:
        finish(database, run, **({"payload_bytes_per_step": 0} if theory[run] == 0 else {}))
    assert "0 B, theory to the last digit, at all 3 points</h1>" in client.get(address, headers=HTML).text


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


# --- what a comparison and a sweep find


def test_steps_of_more_tokens_are_compared_by_the_token(client: TestClient, database: Database) -> None:
    """DDP sends the same in a step of four micro-batches: a quarter for each token."""
    runs = [submit(client, parallel={"data": 2}, training={"steps": 4, "micro_batches": count}) for count in (1, 4)]
    for run in runs:
        finish(database, run, payload_bytes_per_step=8e6)
    html = client.get(f"/lab/compare?run={runs[1]}&run={runs[0]}", headers=HTML).text
    assert "<h1>Payload per rank and token: run 1 has 4 times that of run 2, as theory has it</h1>" in html
    assert html.index("Run 1</") < html.index("Run 2</"), "the earlier one is what the others are held against"
    assert "Put it beside" in client.get("/lab/compare?run=1", headers=HTML).text


def test_a_sweep_holds_steps_against_their_arithmetic_at_the_peak(client: TestClient, database: Database) -> None:
    """Steps made as 10 ms and twice their FLOPs over a peak of 10 GFLOP/s, which the second run alone saw: others were
    kept from it. Till all have ended the first one's 7 GFLOP/s count, so that no theory moves meanwhile."""
    reply = sweep(client, ("layers", [1, 2, 4]), model="gpt-mini", parallel={"data": 1})
    assert reply.status_code == 422, "the interface takes paths; the form also takes what it calls a field"
    typed = {
        "key": "k",
        "spec": json.dumps({**SPEC, "model": "gpt-mini"}),
        "field_1": "layers",
        "values_1": "1, 2, 4, 8, 16",
    }
    assert client.post("/lab/sweeps", data=typed, headers=HTML).headers["location"] == "/lab/sweeps/1"
    for run, layers in enumerate((1, 2, 4, 8, 16), start=1):
        seconds, arithmetic = 0.01 + 2 * 0.02 * layers, 0.02 * layers
        peak = {1: 7e9, 2: 1e10, 4: 3e9, 8: 5e9, 16: 4e9}[layers]
        mfu = arithmetic * 1e10 / (seconds * peak)
        made = {"step_seconds": seconds, "mfu": mfu, "peak_flops_per_second": peak, "world_size": 2}
        finish(database, run, **made)
        if layers < 16:
            early = client.get("/lab/sweeps/1?quantity=step_seconds", headers=HTML).text.replace("\xa0", " ")
            assert ">28.57 ms<" in early, "0.2 GFLOP at 7 GFLOP/s"
            assert "7 GFLOP/s in plain products (run 1," in early
            assert "It stays that until all runs have ended." in early
    assert "<h1>Duration of a step, not final after 4 of 5 runs: " in early
    assert "too few points to tell offset and factor</h1>" in early
    html = client.get("/lab/sweeps/1?quantity=step_seconds", headers=HTML).text
    assert "10 GFLOP/s in plain products (run 2," in html.replace("\xa0", " ")
    assert "until all runs" not in html
    assert "Duration of a step: 10 ms and 2 times its arithmetic" in html, "nothing is left over, so no error is told"
    assert "however small the step is" in html
    assert "What the factor is made of" not in html, "nothing was timed of these runs"
    below = [
        [Point("s", "a", x, y) for x, y in enumerate(ys)]
        for ys in ((0.06, 0.11, 0.21, 0.41, 0.81), (0.1, 0.2, 0.4, 0.8, 1.6))
    ]
    assert "The line is drawn anew once all runs have ended" in said_of_steps(*below, lines_of(*below))
    at_steps = [below[1], below[0]]
    sure, unsure = (said_of_steps(*at_steps, lines_of(*at_steps), of_steps) for of_steps in ((), (5,)))
    assert "at the least" not in sure
    assert "at the least. No plain product timed here was as fast as the steps of run 5." in unsure


def test_a_sweep_tells_a_constant_from_a_constant_share(client: TestClient, database: Database) -> None:
    runs = sweep(client, ("training.micro_batch", [1, 2, 4])).json()["runs"]
    for run in runs:
        theory = client.get(f"/api/v1/lab/runs/{run}").json()["theory"]
        finish(database, run, activation_bytes=theory["activation_bytes"] + 8000, peak_bytes=1)
    html = client.get("/lab/sweeps/1?quantity=activation_bytes", headers=HTML).text
    assert "<h1>Activations at their largest: 8 kB more than theory everywhere</h1>" in html
    assert "A constant: a fixed term that theory leaves out." in html
    assert ">8 kB<" in html, "the offset, and nothing of it is error"


def test_two_knobs_give_a_line_each_with_its_error_and_what_the_factor_is_made_of(
    client: TestClient, database: Database
) -> None:
    """Steps made as 5 ms and 1.5 of their arithmetic without recomputation, 10 ms and 2 with it; a bit off each."""
    reply = sweep(client, ("training.micro_batch", [1, 2, 4, 8, 16]), ("training.recompute", ["none", "full"]))
    for at, run in enumerate(reply.json()["runs"]):
        batch, is_full = 2 ** (at // 2), at % 2
        arithmetic = 0.01 * batch * (4 / 3 if is_full else 1)
        seconds = (0.01 + 2 * arithmetic if is_full else 0.005 + 1.5 * arithmetic) * (1.01, 0.99)[at // 2 % 2]
        made = {"mfu": 0.01 * batch / seconds, "peak_flops_per_second": 1e10, "world_size": 2}
        timed = {"products": 1.25 * arithmetic, "others": 0.1 * arithmetic, "optimizer": 0.004}
        finish(database, run, step_seconds=seconds, operations=timed, waiting_seconds=0.001, **made)
    html = client.get("/lab/sweeps/1?quantity=step_seconds", headers=HTML).text
    title = html.split("<h1>")[1].split("</h1>")[0].replace("\xa0", " ")
    assert re.search(r"Recompute none: 5.09 ± 0.97 ms and 1.5 ± 0.044 times, Recompute full: ", title), title
    rows = re.findall(r'<th scope="row">(Recompute \w+)</th><td[^>]*>([^<]+)</td>\s*<td[^>]*>([^<]+)</td>', html)
    assert [name for name, _, _ in rows] == ["Recompute none", "Recompute full"]
    assert [offset for _, offset, _ in rows] == ["5.09 ± 0.97 ms", "10.2 ± 1.8 ms"]
    says = html.split('class="prose says">', 1)[1].split("</p>", 1)[0].replace("\xa0", " ").replace("&#39;", "'")
    # the law of all parts is the steps' own: 1 + 0.25 + 0.1 + 0 + what is left of 1.5, and 4 + 1 + 0.09 of 5.09 ms
    grows = (
        "products below the peak's rate 0.25, other operations (norms, activations, loss, copies) 0.10, the optimizer"
    )
    assert f"Recompute none: the factor 1.50 is 1 for the arithmetic itself, {grows} 0.00, what lies between" in says
    assert (
        "(Python, autograd) 0.15, waiting (in collectives, or for a core) 0.00. Products ran at 80 % of the peak"
        in says
    )
    for head, sum_text in (("Recompute none", "5.09"), ("Recompute full", "10.2")):
        told = re.search(rf"{head}: .*?The offset {sum_text} ms is ([^.]*(?:\.\d[^.]*)*)\.(?= |$)", says)
        assert told is not None, says
        terms = [float(each.replace("−", "-")) for each in re.findall(r"(−?[\d.]+) ms", told[1])]
        assert len(terms) == 5, "every part is told, however small"
        assert sum(terms) == pytest.approx(float(sum_text), abs=0.03 if head.endswith("none") else 0.3)
    assert html.count("Products slower than the peak</th>") == 1
    assert "it bends" not in html


def test_a_sweep_says_that_what_is_sent_is_an_offset_and_where_to_compare(
    client: TestClient, database: Database
) -> None:
    """Bytes do not grow with the batch: 2 ms a MB at the half gigabyte a second of a ping-pong."""
    runs = sweep(client, ("training.micro_batch", [2, 1, 4]), ("parallel.zero", [0, 3])).json()["runs"]
    pinged = int(
        client.post("/api/v1/lab/runs", json={"spec": {"program": "collectives", "parallel": {"data": 2}}}).json()["id"]
    )
    finish(database, pinged, bytes_per_second=5e8, latency_seconds=1e-4)
    for run in runs:
        finish(database, run, step_seconds=0.1, mfu=0.5, peak_flops_per_second=1e9, world_size=2)
    html = client.get("/lab/sweeps/1?quantity=step_seconds", headers=HTML).text.replace("\xa0", " ")
    sent = client.get(f"/api/v1/lab/runs/{runs[0]}").json()["theory"]["wire_bytes_per_step"]
    said = html.split('id="h-sent"')[1]
    one = f"{sent / 1e6:.4g} MB with DDP in 2 messages, which takes {sent / 5e8 * 1e3 + 0.2:.2g} ms or more"
    assert one in said, "one all-reduce of two ranks, two messages of 0.1 ms each and the bytes"
    assert "In the parts above" not in said, "nothing was timed of these runs"
    assert f"run {pinged} timed between two ranks" in said
    assert f"/lab/compare?run={runs[2]}&amp;run={runs[3]}" in said, "micro-batch 1 of both strategies"
    form = {"spec": json.dumps({**SPEC, "parallel": {"data": 2}})}
    expected = client.post("/lab/expected", data=form, headers=HTML).text.replace("\xa0", " ")
    assert f"Of it, sending {sent / 1e6:.4g} MB in 2 messages takes {sent / 5e8 * 1e3 + 0.2:.2g} ms or more" in expected
    html = client.get("/lab/sweeps/1?quantity=activation_bytes", headers=HTML).text
    assert "h-sent" not in html


def test_sending_is_told_from_the_rest_of_waiting() -> None:
    theory = asdict(transfer("Gradients", "all_reduce", "backward", "data", 2, 3, 2e6))
    runs = [Run(id=1, theory={"transfers": [theory]})]
    link = Link(1e-3, 1e9, 9)
    said = said_of_sending(runs, {1: "DDP"}, link, {"DDP": 0.02})
    assert "2 MB in 6 messages, which takes 8 ms or more, by the α and B that run 9 timed" in said
    assert said.endswith("Of the waiting in the offset, 12 ms of 20 ms with DDP are more than that least time.")
    assert said_of_sending(runs, {1: "DDP"}, link, {}).endswith("waiting for the other ranks and for a core.")
    assert "waiting" not in said_of_sending(runs, {1: "DDP"}, link, None)


def test_the_parts_of_a_step_add_up_to_it_and_none_is_made_up() -> None:
    """By hand: of 20 ms, products of 8 ms whose arithmetic is 5 ms, 3 and 2 ms of other operations, and 1 ms of waiting
    leave 6 ms."""
    timed = {"operations": {"products": 0.008, "others": 0.003, "optimizer": 0.002}, "step_seconds": 0.02}
    timed["waiting_seconds"] = 0.001
    parts = parts_of(7, timed, 0.005)
    assert parts is not None
    assert parts.seconds == pytest.approx(
        {"arithmetic": 0.005, "slower": 0.003, "others": 0.003, "optimizer": 0.002, "between": 0.006, "waiting": 0.001}
    )
    assert sum(parts.seconds[name] for name in PARTS) == pytest.approx(parts.step)
    said = said_of_parts([parts])
    assert said.startswith("Run 7, in the middle, takes 4 times its arithmetic: 1 for itself, what lies between")
    assert "62 % of the peak" in said or "63 % of the peak" in said
    assert "less than nothing" not in said
    fast = parts_of(9, {**timed, "operations": {**timed["operations"], "products": 0.002}}, 0.005)
    assert fast is not None
    assert "%" not in why_not_apart([parts, fast]), "no share of a peak that is none"
    assert "products ran faster than at the peak that is known here" in why_not_apart([parts, fast])
    assert why_not_apart([parts]) == ""
    slow = parts_of(8, {**timed, "step_seconds": 0.012}, 0.005)
    assert slow is not None
    assert "In run 8 the watched steps were slower than the typical one" in said_of_parts([parts, slow])
    assert "the optimizer takes 2 ms" in said_of_parts([slow])
    assert parts_of(7, {"step_seconds": 0.02}, 0.005) is None
    assert parts_of(7, {**timed, "waiting_seconds": None}, 0.005) is None, "of an older release"
    assert parts_of(7, timed, None) is None
    assert said_of_parts([]) == ""
