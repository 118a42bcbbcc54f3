"""Sweeps: one spec with fields turned, submitted as one; the form, and what their pages find."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.core.limits import Limits
from app.lab import forms
from app.lab.link import Link
from app.lab.models import Run
from app.lab.sweeps import base_of
from app.lab.sweeps.lines import lines_of, said_of_steps
from app.lab.sweeps.parts import PARTS, parts_of, said_of_parts, why_not_apart
from app.lab.sweeps.sending import said_of_sending
from app.theory.lab_runs import Point
from app.theory.lab_runs.transfers import transfer
from tests.support.lab_runs import HTML, SPEC, finish, submit


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


# --- what a sweep finds


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
