"""Who takes runs, and who does not: releases, drained workers, GPUs that are taken; and how long a run waits."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.clock import utc_now
from app.core.db import Database, database_time, open_database
from app.core.errors import NotFound, SpecError
from app.core.limits import Limits
from app.core.release import release, version
from app.lab import presence, service, takers, work
from app.lab.models import GpuLease, Run
from app.lab.waiting import expected_waits
from app.lab.work import Claim, GpuTaken
from labs.spec import parse_run_spec
from tests.conftest import NOW

HTML = {"Accept": "text/html"}
SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 10, "sequence": 32}, "parallel": {"data": 2}}
CPU = [{"kind": "cpu", "name": "CPU", "backend": "gloo", "memory_bytes": 1}]


def _announce(database: Database, name: str, of_release: str = "", devices: list[dict[str, object]] = CPU) -> None:
    with database.write() as session:
        presence.announce_worker(session, name, "device", devices, database_time(session), None, of_release)


def _why(database: Database, name: str) -> str:
    with database.read() as session:
        return presence.why_nothing_is_taken(session, name)


def _submit(database: Database, spec: Any = SPEC) -> int:
    with database.write() as session:
        return service.submit_run(session, 1, spec, None, NOW).id


def test_a_release_tells_version_and_what_is_shared() -> None:
    assert release().startswith(f"{version()}+")
    assert release() == release()


def test_a_worker_of_another_release_takes_nothing(database: Database) -> None:
    _announce(database, "old", "0.0.9+aaaa")
    assert _why(database, "old") == "", "no page was served yet: nobody to differ from"
    with database.write() as session:
        presence.note_release(session, "0.1.0+bbbb", NOW)
    assert "It is of release 0.0.9+aaaa, the pages are of 0.1.0+bbbb" in _why(database, "old")
    with database.read() as session:
        spec = parse_run_spec(SPEC)
        why = takers.why_nobody_takes(session, spec, database_time(session))
        assert why is not None
        assert why.startswith("Worker old is of release 0.0.9+aaaa")
    _announce(database, "new", "0.1.0+bbbb")
    assert _why(database, "new") == ""
    with database.read() as session:
        assert takers.why_nobody_takes(session, spec, database_time(session)) is None


def test_the_web_server_says_its_release(client: TestClient, database: Database) -> None:
    with database.read() as session:
        assert presence.served_release(session) == release()
    assert f'release <span class="num">{release()}</span>' in client.get("/lab/devices", headers=HTML).text


def test_a_worker_is_drained_and_resumed_on_the_page(client: TestClient, database: Database) -> None:
    _announce(database, "device-here-1")
    assert client.post("/lab/workers/device-here-1/drain", headers=HTML).status_code == 303
    assert "It is drained" in _why(database, "device-here-1")
    _announce(database, "device-here-1")
    assert "It is drained" in _why(database, "device-here-1"), "a heartbeat changes nothing"
    assert "What is submitted waits until a worker takes runs." in client.get("/lab/devices", headers=HTML).text
    html = client.get("/lab/devices", headers=HTML).text
    assert "Drained" in html
    assert "/lab/workers/device-here-1/resume" in html
    client.post("/lab/workers/device-here-1/resume", headers=HTML)
    assert re.search(r"A run of up to .* starts at once\.", client.get("/lab/devices", headers=HTML).text, re.DOTALL)
    assert _why(database, "device-here-1") == ""
    assert client.post("/lab/workers/nobody/drain", headers=HTML).status_code == 404
    with database.write() as session, pytest.raises(NotFound, match="no device worker 'nobody'"):
        presence.drain_worker(session, "nobody", True, utc_now())


def test_a_run_that_waits_for_a_drained_worker_offers_to_resume_it(client: TestClient, database: Database) -> None:
    _announce(database, "w")
    client.post("/lab/workers/w/drain", headers=HTML)
    runs = [_submit(database) for _ in range(3)]
    html = client.get(f"/lab/runs/{runs[0]}", headers=HTML).text
    assert 'action="/lab/workers/w/resume"' in html
    assert "Queued, nobody takes it" in html
    assert "make start" not in html, "nothing has to be started"
    assert "Nobody takes it now. Worker w is drained" in client.post("/lab/offered", data={}).json()["words"]
    devices = client.get("/lab/devices", headers=HTML).text
    assert devices.count("is drained") == 1, "once, and not for every run that waits"
    assert "drained since" in devices
    client.post("/lab/workers/w/resume", headers=HTML)
    assert "/resume" not in client.get(f"/lab/runs/{runs[0]}", headers=HTML).text
    assert "Nobody takes it" not in client.post("/lab/offered", data={}).json()["words"]
    assert "up since" in client.get("/lab/devices", headers=HTML).text


def test_hosts_that_are_not_here_are_refused_at_their_own_field(client: TestClient, database: Database) -> None:
    _announce(database, "w")

    def offered(hosts: str) -> Any:
        return client.post("/lab/offered", data={"hosts": hosts}).json()

    assert offered("2")["wrong"]["hosts"].startswith("It asks for 2 hosts, and no worker that is there has several")
    assert offered("2")["words"] == ""
    assert "device" not in offered("2")["refused"], "it is not the device's fault"
    assert offered("3")["wrong"]["hosts"].endswith("Accepted: 1."), "2 is no better here"
    assert offered("1")["wrong"] == {}


def test_the_page_says_what_waits_and_why_nobody_takes_it(client: TestClient, database: Database) -> None:
    assert "No worker answers" in client.get("/lab/devices", headers=HTML).text
    _announce(database, "w")
    _submit(database)
    gpus = _submit(database, {**SPEC, "device": "cuda"})
    html = client.get("/lab/devices", headers=HTML).text
    assert "2 runs wait" in html
    assert f'href="/lab/runs/{gpus}"' in html
    assert "It asks for 2 GPUs, one for every rank; no worker that is there has more than 0." in html
    assert "doctor gpu" not in html
    with database.write() as session:
        gpu = {"kind": "cuda", "name": "H100", "backend": "nccl", "memory_bytes": 8e10, "uuid": "GPU-1"}
        presence.announce_worker(session, "g", "device", [gpu], utc_now(), None, release())
    assert "Runs on GPUs have not been tested by this project" in client.get("/lab/devices", headers=HTML).text


def test_a_wait_is_told_from_what_runs_took(database: Database) -> None:
    done = [_submit(database) for _ in range(3)]
    with database.write() as session:
        for run_id, seconds in zip(done, (8, 10, 30), strict=True):
            run = session.get_one(Run, run_id)
            run.status, run.started_at, run.ended_at = "finished", NOW, NOW + timedelta(seconds=seconds)
    _announce(database, "w")
    first, second = _submit(database), _submit(database)
    now = utc_now()
    with database.write() as session:
        claim = work.claim_next(session, "w", lambda _: "CPU", now)
        assert claim is not None
        assert claim.run_id == first
        third = service.submit_run(session, 1, SPEC, None, now).id
    with database.read() as session:
        assert expected_waits(session, now + timedelta(seconds=4)) == {
            second: pytest.approx(6),
            third: pytest.approx(16),
        }
    _announce(database, "another")
    with database.read() as session:
        assert expected_waits(session, now + timedelta(seconds=4)) == {second: 0, third: pytest.approx(6)}


def _claim_gpu(database: Database, worker: str, uuid: str) -> Claim | None:
    """As a worker does that is bound to one GPU."""
    with database.write() as session:
        if uuid in work.gpus_taken(session):
            return None
        claim = work.claim_next(session, worker, lambda _: "1 × H200, NCCL", NOW)
        if claim is not None:
            work.take_gpus(session, claim.run_id, [uuid])
        return claim


def test_two_workers_never_have_the_same_gpu(database: Database) -> None:
    for _ in range(4):
        _submit(database)
    barrier, taken = threading.Barrier(4), []

    def take(worker: str) -> None:
        barrier.wait()
        try:
            taken.append(_claim_gpu(database, worker, "GPU-1"))
        except GpuTaken:
            taken.append(None)

    threads = [threading.Thread(target=take, args=(f"w{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (claim,) = [each for each in taken if each is not None]
    with database.read() as session:
        assert [(each.uuid, each.run_id) for each in session.query(GpuLease)] == [("GPU-1", claim.run_id)]
        assert session.query(Run).filter(Run.status == "queued").count() == 3, "an undone claim leaves nothing"
    with database.write() as session:
        work.end_run(session, claim, "failed", NOW)
    assert _claim_gpu(database, "w9", "GPU-1") is not None, "free with its run's end, whichever end it was"


def test_an_install_says_what_a_run_may_take_and_holds_to_it(sqlite: Database) -> None:
    url = sqlite.engine.url.render_as_string(hide_password=False)
    strict = open_database(url, Limits(runs_a_day=3, runs_at_once=1, run_steps=10))
    with strict.write() as session, pytest.raises(SpecError, match="11 steps are more than a run may have here"):
        service.submit_run(session, 1, {**SPEC, "training": {"steps": 11}}, None, NOW)
    for _ in range(3):
        _submit(strict)
    with pytest.raises(service.QueueFull, match="3 runs were started in 24 hours"):
        _submit(strict)
    with strict.write() as session:
        assert work.claim_next(session, "w1", lambda _: "CPU", NOW) is not None
        assert work.claim_next(session, "w2", lambda _: "CPU", NOW) is None, "one at once"
        service.submit_run(session, 1, SPEC, None, NOW + timedelta(days=1, seconds=1))
    strict.engine.dispose()


def test_hosts_are_listed_with_what_each_is_and_does(client: TestClient, database: Database) -> None:
    hosts = [
        {"name": "n1", "state": "idle", "is_usable": True, "cpus": 64, "gpus": 8, "memory_bytes": 5e11},
        {"name": "n2", "state": "down*", "is_usable": False, "cpus": 64, "gpus": 8, "memory_bytes": 5e11},
    ]
    _announce(database, "device-c-1")
    over = {"model": "gpt-mini", "parallel": {"data": 3}, "hosts": 3}
    refused = client.post("/api/v1/lab/runs", json={"spec": over})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "hosts")
    assert refused.json()["errors"][0]["accepted"] == "1; more once a worker that has several hosts is started"
    form = client.post("/lab/runs", data={"data": "3", "hosts": "3", "zero": "0"}, headers=HTML)
    assert form.status_code == 422
    assert '<span class="error" id="h-hosts">It asks for 3 hosts, and no worker' in form.text
    device = {"kind": "slurm", "name": "Slurm partition gpu", "backend": "NCCL", "memory_bytes": 1e12, "hosts": hosts}
    with database.write() as session:
        presence.announce_worker(session, "device-s-1", "device", [device], database_time(session), None)
    page = " ".join(client.get("/lab/devices").text.split())
    assert "n1: idle, 64 cores, 8 GPUs" in page
    assert "n2: down*, 64 cores, 8 GPUs" in page
    reply = client.post("/api/v1/lab/runs", json={"spec": over})
    assert reply.json()["id"] == 1, "nothing of what was refused is queued"
    assert reply.json()["warning"] == "It asks for 3 hosts; Slurm partition gpu."
    page = " ".join(client.get(f"/lab/runs/{reply.json()['id']}").text.split())
    assert "3 hosts with 1 rank each: data goes across hosts." in page
