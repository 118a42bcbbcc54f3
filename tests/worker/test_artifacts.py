"""What an ended run leaves is kept in the operator's store, offered on its page, and let go of in time."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.core.queue import Queue
from app.core.settings import Settings
from app.lab.models import Chunk, Run
from app.lab.run_file import read_file
from labs.spec.events import event_line, to_json
from tests.conftest import NOW
from tests.lab.test_run_file import SPEC, happened
from worker import artifacts, retention
from worker.context import Context
from worker.devices import Devices
from worker.retention import remove_old_folders


@pytest.fixture
def context(database: Database, settings_for: Callable[..., Settings], tmp_path: Path) -> Context:
    settings = settings_for(artifacts=f"{tmp_path}/kept", keep_artifacts_days=30, keep_events_days=1)
    return Context(settings, database, Queue(settings.redis), Devices(cpu=False, gpus=()), "control", "c")


@pytest.fixture
def kept(client: TestClient, database: Database, context: Context) -> dict[str, int]:
    """Run 1 has ended, run 2 is under way; what is kept of run 1."""
    for _ in range(2):
        client.post("/api/v1/lab/runs", json={"spec": SPEC})
    with database.write() as session:
        for run_id, status in ((1, "finished"), (2, "running")):
            run = session.get_one(Run, run_id)
            run.status, run.started_at, run.ended_at, run.chunks = status, NOW, NOW, 1
            session.add(Chunk(run_id=run_id, sequence=1, events=[to_json(each) for each in happened()], created_at=NOW))
        identity = session.get_one(Run, 1).identity
    for step, is_whole in ((2, True), (4, True), (6, False)):
        place = context.settings.run_folder / f"{identity}-checkpoints" / f"step-{step}"
        place.mkdir(parents=True)
        (place / "__0_0.distcp").write_bytes(bytes([step]))
        if is_whole:
            (place / ".metadata").write_bytes(b"it is")
    assert artifacts.keep(context) == 1
    assert artifacts.keep(context) == 0, "once"
    client.app.state.artifacts = context.settings.artifacts  # type: ignore[attr-defined]
    return client.get("/api/v1/lab/runs/1/artifacts").json()


def test_a_run_is_kept_whole_and_its_page_has_it(client: TestClient, kept: dict[str, int]) -> None:
    names = ["run-1.rzrun", "run-1-trace.json", "run-1-checkpoint-step-4.tar"]
    assert list(kept) == names
    files = {name: client.get(f"/api/v1/lab/runs/1/artifacts/{name}").content for name in names}
    assert {name: len(content) for name, content in files.items()} == kept
    read = read_file(BytesIO(files[names[0]]))
    assert (read.head.run.id, list(read.events)) == (1, [event_line(each) for each in happened()])
    assert json.loads(files[names[1]])["traceEvents"]
    with tarfile.open(fileobj=BytesIO(files[names[2]])) as tar:
        assert sorted(tar.getnames()) == ["step-4", "step-4/.metadata", "step-4/__0_0.distcp"]
    page = client.get("/lab/runs/1", headers={"Accept": "text/html"}).text
    assert f'href="/api/v1/lab/runs/1/artifacts/{names[2]}"' in page
    assert client.get("/api/v1/lab/runs/2/artifacts").json() == {}
    for wrong in ("run-2.rzrun", "..%2F..%2Fetc%2Fpasswd"):
        assert client.get(f"/api/v1/lab/runs/1/artifacts/{wrong}").status_code == 404


def test_the_last_checkpoint_is_had_from_the_runs_folder_without_a_store(
    client: TestClient, kept: dict[str, int], context: Context
) -> None:
    client.app.state.run_folder = context.settings.run_folder  # type: ignore[attr-defined]
    reply = client.get("/api/v1/lab/runs/1/checkpoint")
    assert reply.headers["content-disposition"] == 'attachment; filename="run-1-checkpoint-step-4.tar"'
    assert len(reply.content) == int(reply.headers["content-length"])
    with tarfile.open(fileobj=BytesIO(reply.content)) as tar:
        assert sorted(tar.getnames()) == ["step-4", "step-4/.metadata", "step-4/__0_0.distcp"]
    page = client.get("/lab/runs/1", headers={"Accept": "text/html"}).text
    assert "its last checkpoint</a> (after" in page
    assert "/snapshot/" not in page
    under_way = client.get("/api/v1/lab/runs/2/checkpoint")
    assert under_way.status_code == 404
    assert "has not ended" in under_way.json()["detail"]


def test_what_the_allocators_did_is_had_from_the_runs_folder_and_listed_where_there_is_some(
    client: TestClient, database: Database, kept: dict[str, int], context: Context
) -> None:
    runs = context.settings.run_folder
    client.app.state.run_folder = runs  # type: ignore[attr-defined]
    with database.read() as session:
        places = [runs / f"{session.get_one(Run, run_id).identity}-snapshots" for run_id in (1, 2)]
    for place in places:
        place.mkdir(parents=True)
        (place / "allocator-1.pickle").write_bytes(b"what happened")
    reply = client.get("/api/v1/lab/runs/1/snapshot/1")
    assert reply.content == b"what happened"
    assert reply.headers["content-length"] == "13"
    assert reply.headers["content-disposition"] == 'attachment; filename="run-1-allocator-rank-1.pickle"'
    page = client.get("/lab/runs/1", headers={"Accept": "text/html"}).text
    assert page.count("/api/v1/lab/runs/1/snapshot/") == 1
    assert "what the allocator of rank 1 did</a> (13 B" in page
    for missing in ("1/snapshot/0", "2/snapshot/1"):
        assert client.get(f"/api/v1/lab/runs/{missing}").status_code == 404
    remove_old_folders(runs, -1.0, {2})
    assert [place.exists() for place in places] == [False, True]


def test_events_go_from_the_database_once_they_are_kept_and_what_is_kept_goes_in_time(
    client: TestClient, database: Database, context: Context, kept: dict[str, int], tmp_path: Path
) -> None:
    with database.write() as session:
        session.get_one(Run, 2).status = "finished"
        for run_id in (1, 2):
            session.get_one(Run, run_id).ended_at = NOW - timedelta(days=60)
    retention.let_go(context)
    with database.read() as session:
        assert [row.run_id for row in session.query(Chunk)] == [2], "of run 2 nothing is kept elsewhere yet"
    assert artifacts.keep(context) == 1
    assert client.get("/api/v1/lab/runs/1/artifacts").json() == {}
    assert not list((tmp_path / "kept").glob("*/*"))
    assert client.get("/api/v1/lab/runs/1/artifacts/run-1.rzrun").status_code == 404


def test_a_store_that_does_not_answer_loses_nothing(
    client: TestClient, database: Database, context: Context, kept: dict[str, int], tmp_path: Path
) -> None:
    with database.write() as session:
        session.get_one(Run, 2).status = "finished"
    (tmp_path / "kept").rename(tmp_path / "elsewhere")
    (tmp_path / "kept").write_text("no folder")
    assert artifacts.keep(context) == 0
    assert client.get("/api/v1/lab/runs/1/artifacts/run-1.rzrun").status_code == 503
    refused = client.post("/progress/delete", data={"confirmation": "delete"}, headers={"Accept": "application/json"})
    assert refused.status_code == 503
    (tmp_path / "kept").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "kept")
    assert artifacts.keep(context) == 1


def test_what_is_kept_goes_with_a_learners_data(client: TestClient, kept: dict[str, int], tmp_path: Path) -> None:
    assert list((tmp_path / "kept").iterdir())
    reply = client.post("/progress/delete", data={"confirmation": "delete"})
    assert reply.status_code in (200, 303)
    assert not list((tmp_path / "kept").iterdir())
