"""A run as one file: what goes out is what comes in elsewhere, and a file that a stranger changed is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.core.errors import DomainError
from app.lab import service
from app.lab.models import Chunk, Run
from app.lab.run_file import Head, read_file, write_file
from labs.spec.events import Event, LogEvent, PhaseEvent, ResultEvent, SpanEvent, StepEvent, TrainingSummary, to_json
from tests.conftest import NOW

HTML = {"Accept": "text/html"}
SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 2}, "parallel": {"data": 2, "zero": 3}}
KEPT = {"parameters": 100, "gradients": 100, "optimizer": 200, "total": 400}


def summary() -> TrainingSummary:
    return TrainingSummary(
        world_size=2, backend="gloo", device="cpu", device_name="a laptop", steps=2, first_loss=5.5, final_loss=5.25,
        tokens_per_second=640.0, model_flops_per_second=1e9, peak_flops_per_second=None, mfu=None, parameters=25,
        state_layout="fp32", model_state_bytes=KEPT, peak_bytes=KEPT, activation_bytes=7, payload_bytes_per_step=300,
        wire_bytes_per_step=150, collectives=None, device_peak_bytes=None,
    )  # fmt: skip


def happened() -> list[Event]:
    return [
        PhaseEvent(0.1, 0, "ready"),
        *(StepEvent(0.2 * n, 0, n, 5.75 - 0.25 * n, 64, 0.1, 640.0, False, None) for n in (1, 2)),
        *(SpanEvent(0.3, rank, 2, "F", 0, 0, 0.3, 0.35) for rank in (0, 1)),
        LogEvent(0.4, 1, "stderr", "a line with ünïcode and \x1b[31mcolour"),
        *(ResultEvent(0.5, rank, summary()) for rank in (0, 1)),
    ]


@pytest.fixture
def exported(client: TestClient, database: Database) -> bytes:
    """The file of run 1, which has finished."""
    run_id = client.post("/api/v1/lab/runs", json={"spec": SPEC}).json()["id"]
    assert client.get(f"/api/v1/lab/runs/{run_id}/file").status_code == 409, "it has not ended"
    with database.write() as session:
        run = session.get(Run, run_id)
        assert run is not None
        run.status, run.started_at, run.ended_at, run.chunks, run.steps_done = "finished", NOW, NOW, 1, 2
        run.device, run.name, run.note = "CPU, 2 ranks over gloo", "Mine", "with <b>care</b>"
        run.result = {"model_state_bytes": 400, "step_seconds": 0.1}
        session.add(Chunk(run_id=run.id, sequence=1, events=[to_json(each) for each in happened()], created_at=NOW))
    reply = client.get(f"/api/v1/lab/runs/{run_id}/file")
    assert 'filename="run-1.rzrun"' in reply.headers["content-disposition"]
    return reply.content


def opened(database: Database, data: bytes, name: str = "theirs.rzrun") -> int:
    with database.write() as session:
        return service.store_opened(session, 1, name, read_file(BytesIO(data)), NOW).id


def test_what_comes_in_is_what_went_out_and_can_be_compared(
    client: TestClient, database: Database, exported: bytes
) -> None:
    run_id = opened(database, exported)
    assert run_id == 2
    assert opened(database, exported) == run_id, "the same file is the same run"
    mine, theirs = (client.get(f"/api/v1/lab/runs/{each}").json() for each in (1, run_id))
    for name in ("spec", "status", "steps_done", "started_at", "ended_at", "device", "name", "note", "theory"):
        assert theirs[name] == mine[name], name
    assert theirs["result"]["step_seconds"] == pytest.approx(mine["spec"]["training"]["sequence"] * 2 / 640, rel=1)
    assert theirs["result"]["model_state_bytes"] == 400
    assert (theirs["opened_from"], theirs["origin"]["run"]) == ("theirs.rzrun", 1)
    records = [client.get(f"/api/v1/lab/runs/{each}/record").text for each in (1, run_id)]
    assert records[0] == records[1]
    assert client.get(f"/api/v1/lab/runs/{run_id}/trace").json()["traceEvents"]
    again = client.get(f"/api/v1/lab/runs/{run_id}/file").content
    assert [*again.splitlines()[1:-1]] == [*exported.splitlines()[1:-1]]
    html = client.get(f"/lab/runs/{run_id}", headers=HTML).text
    assert "Opened from a file" in html
    assert "of this very install" in html
    from_elsewhere = opened(database, _submitted_earlier(exported))
    assert "run 1 of another install" in " ".join(client.get(f"/lab/runs/{from_elsewhere}", headers=HTML).text.split())
    assert f"/lab/runs/{run_id}/name" not in html
    beside = client.get(f"/lab/compare?run=1&run={run_id}", headers=HTML).text
    assert "The same spec" in beside
    assert "theirs.rzrun" in beside
    assert beside.count("Step 2, 50 ms; ranks stand still 0 % of it.") == 2, "strips of both"


def test_a_run_from_a_file_counts_for_nothing_and_cannot_be_changed_only_removed(
    client: TestClient, database: Database, exported: bytes
) -> None:
    run_id = opened(database, exported)
    assert client.post(f"/lab/runs/{run_id}/name", data={"name": "changed"}).status_code == 422
    client.post(f"/api/v1/lab/runs/{run_id}/cancel")
    assert client.get(f"/api/v1/lab/runs/{run_id}").json()["status"] == "finished"
    with database.read() as session:
        assert [each["id"] for each in service.list_records(session, 1)] == [1]
        assert service.count_by_status(session) == {"finished": 1}
    assert client.post("/lab/runs/1/remove").status_code == 422
    assert client.post(f"/lab/runs/{run_id}/remove").status_code == 303
    assert client.get(f"/api/v1/lab/runs/{run_id}").status_code == 404


def signed(*lines: bytes) -> bytes:
    body = b"".join(line + b"\n" for line in lines)
    foot = {"sha256": hashlib.sha256(body).hexdigest(), "events": len(lines) - 1}
    return body + json.dumps(foot).encode() + b"\n"


def _submitted_earlier(exported: bytes) -> bytes:
    """The file of a run of the same number that was submitted at another moment: of another install."""
    return signed(head_with(exported, created_at="2026-01-01T00:00:00Z"), *exported.splitlines()[1:-1])


def head_with(exported: bytes, **changed: Any) -> bytes:
    head = json.loads(exported.splitlines()[0])
    return json.dumps({**head, "run": {**head["run"], **changed}}).encode()


STEP = b'{"t":1,"rank":0,"kind":"step","step":1,"loss":1,"tokens":1,"seconds":1,"tokens_per_second":1,"probed":false}'
Change = Callable[[bytes], bytes]
HOSTILE: dict[str, tuple[Change, str]] = {
    "nothing": (lambda _: b"", "It is empty"),
    "a zip file": (lambda _: b"PK\x03\x04" + b"\0" * 100, "no JSON"),
    "half of it": (lambda data: data[: len(data) // 2], "cut off|ends before"),
    "a line cut off": (lambda data: data.splitlines(keepends=True)[0] + STEP[:40], "cut off"),
    "without its foot": (lambda data: data[: data.rindex(b'{"sha256"')], "ends before"),
    "a changed number": (lambda data: data.replace(b"640", b"999", 1), "digest"),
    "something behind": (lambda data: data + b"x\n", "follows"),
    "a head of brackets": (lambda _: signed(b"[" * 100_000), "head|recursion|JSON"),
    "a head without end": (lambda _: b"x" * 1_000_002, "too long"),
    "a line without end": (lambda data: signed(data.splitlines()[0], b'{"t":1,' + b" " * 200_000), "too long"),
    "no event": (lambda data: signed(data.splitlines()[0], b'{"kind":"exec"}'), "no event"),
    "brackets": (lambda data: signed(data.splitlines()[0], b"[" * 60_000), "no event"),
    "a rank that is none": (
        lambda data: signed(data.splitlines()[0], STEP.replace(b'"rank":0', b'"rank":7')),
        "no rank 7",
    ),
    "a NUL": (lambda data: signed(data.splitlines()[0], b'{"t":1,"rank":0,"kind":"log","line":"\\u0000"}'), "no event"),
    "a name with a NUL": (lambda data: signed(head_with(data, name="\0")), "database"),
    "half a surrogate": (lambda data: signed(head_with(data, name="\ud800")), "head|surrogate|JSON"),
    "a run of another kind": (lambda data: signed(head_with(data, spec={"program": "shell"})), "no such run"),
    "a model beyond limits": (
        lambda data: signed(
            head_with(data, spec={"model": {"layers": 9999, "hidden": 8192, "heads": 1, "vocab": 256}})
        ),
        "no such run",
    ),
    "a status of its own": (lambda data: signed(head_with(data, status="running")), "head|Input"),
    "a name beyond measure": (lambda data: signed(head_with(data, name="n" * 81)), "80"),
    "another format": (lambda data: data.replace(b'"rankzero_run":1', b'"rankzero_run":2'), "newer RankZero"),
}


def a_file() -> bytes:
    told = {"id": 7, "spec": SPEC, "status": "finished", "created_at": NOW, "ended_at": NOW, "name": "Mine"}
    head = Head.model_validate({"rankzero_run": 1, "release": "0.1.0", "exported_at": NOW, "run": told})
    return b"".join(write_file(head, happened()))


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_file_is_refused_with_its_reason(attack: str) -> None:
    change, reason = HOSTILE[attack]
    with pytest.raises(DomainError) as refused:
        read_file(BytesIO(change(a_file())))
    said = f"{refused.value} " + " ".join(f"{each.field} {each.message}" for each in refused.value.violations)
    assert any(part in said for part in reason.split("|")), said


@pytest.mark.parametrize("result", [None, {"model_state_bytes": "<script>"}, {"anything": 1}])
def test_a_run_that_finished_without_a_result_is_not_kept(client: TestClient, database: Database, result: Any) -> None:
    without = signed(head_with(a_file(), result=result), STEP)
    with pytest.raises(DomainError, match="not opened"):
        opened(database, without)
    assert client.get("/api/v1/lab/runs/1").status_code == 404
    kept = signed(head_with(a_file(), result={"model_state_bytes": 400, "anything": 1}), STEP)
    assert client.get(f"/api/v1/lab/runs/{opened(database, kept)}").json()["result"] == {"model_state_bytes": 400}


def test_a_head_tells_neither_learner_nor_prediction(exported: bytes) -> None:
    told = Head.model_validate_json(exported.splitlines()[0])
    assert not {"learner_id", "prediction", "worker", "lease"} & set(told.run.model_dump())
