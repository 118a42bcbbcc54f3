"""Runs over two hosts, through a real Slurm: the same losses, the same ledger, and every end named."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from app.core.clock import utc_now
from app.core.db import Database
from app.core.models import Learner
from app.lab import presence, service, takers
from app.lab import work as leases
from app.lab.models import Run
from app.theory.lab_runs import rank_theory, world
from labs import gang
from labs.command import TORCHRUN, environment
from labs.spec import EXACT, parse_run_spec
from labs.spec.events import LogEvent, StepEvent
from tests.labs.ranks import PROGRAMS, run_now
from tests.labs.test_matrix import MODEL, TRAINING, expected, ledger, reports
from tests.support.pace import slack_seconds
from tests.support.slurm import Site, running_slurm
from tests.support.working import Working
from worker import slurm, slurm_jobs
from worker.devices import UnknownDevice
from worker.slurm_jobs import Partition, cancel_leftovers, find_partition

pytestmark = pytest.mark.slow

LAYOUTS: dict[str, dict[str, int]] = {
    "data": {"data": 4},
    "fsdp": {"data": 4, "zero": 3},
    "tensor": {"tensor": 4},
    "pipeline": {"pipeline": 4},
    "tensor-inside-pipeline-across": {"tensor": 2, "pipeline": 2},
}
STEPS = 150
SHORT: dict[str, Any] = {
    "model": {**MODEL, "layers": 2},
    "training": {"steps": STEPS, "sequence": 32},
    "parallel": {"data": 2, "zero": 3},
    "device": "cpu",
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_slurm() as running:
        yield running


@pytest.fixture
def partition(site: Site, monkeypatch: pytest.MonkeyPatch) -> Partition:
    monkeypatch.setenv("PATH", site.path)
    return find_partition("lab", "sqlite:///this-test")


class _Work:
    """Starts a worker's runs in this process, and ends what a failed test leaves."""

    def __init__(self, database: Database, folder: Path, partition: Partition) -> None:
        self._database, self._folder, self.partition = database, folder, partition
        self.working: list[Working] = []

    def __call__(self, spec: dict[str, Any]) -> Working:
        self.working.append(Working(self._database, self._folder, spec, devices=self.partition))
        return self.working[-1]


@pytest.fixture
def work(sqlite: Database, tmp_path: Path, partition: Partition) -> Iterator[_Work]:
    starts = _Work(sqlite, tmp_path, partition)
    yield starts
    for each in starts.working:
        each.close()


def spec_of(layout: dict[str, int]) -> dict[str, Any]:
    training = {**TRAINING, "micro_batches": 4, "micro_batch": 4 // layout.get("data", 1)}
    model = {**MODEL, "layers": max(2, layout.get("pipeline", 1))}
    return {"model": model, "training": training, "parallel": layout, "device": "cpu", "hosts": 2}


@pytest.fixture(scope="module")
def seen(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What every rank reported of each layout: one job of four ranks, two on each host."""
    folder = tmp_path_factory.mktemp("job")
    rows = [{"id": name, "spec": spec_of(layout), "fp64": True} for name, layout in LAYOUTS.items()]
    (folder / "spec.json").write_text(json.dumps(rows))
    (folder / gang.LIFELINE).touch()
    ranks = [*TORCHRUN, "--nnodes=2", "--nproc-per-node=2", "--node-rank", gang.NODE_RANK]
    ranks += ["--master-addr", gang.ADDRESS, "--master-port", gang.PORT, "--log-dir", str(folder / "logs")]
    ranks += [str(PROGRAMS / "matrix.py"), "--rows", str(folder / "spec.json"), "--events", str(folder)]
    command = [TORCHRUN[0], gang.__file__, "batch", str(folder), "--", *ranks]
    options = ["--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=2", "--partition=lab", f"--output={folder}/job.log"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", site.path)
        job = slurm.submit(f"#!/bin/sh\nexec {' '.join(command)}\n", options, environment())
        site.wait_until(lambda: slurm.look_at(job).has_ended)
        ended = slurm.look_at(job)
    said = "".join(path.read_text() for path in folder.glob("*.log"))
    assert ended.state == "COMPLETED", said
    return reports(folder)


@pytest.mark.parametrize("name", LAYOUTS)
def test_over_two_hosts_the_losses_are_one_processs(seen: dict[str, list[dict[str, Any]]], name: str) -> None:
    assert len(seen[name]) == 4
    for report in seen[name]:
        assert report["losses"] == pytest.approx(report["reference"], rel=EXACT)
        assert report["losses"][-1] < report["losses"][0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_over_two_hosts_the_ledger_is_theorys(seen: dict[str, list[dict[str, Any]]], name: str) -> None:
    spec = parse_run_spec(spec_of(LAYOUTS[name]))
    for report, place in zip(sorted(seen[name], key=lambda each: each["rank"]), world(spec), strict=True):
        assert ledger(report["collectives"]) == expected(rank_theory(spec, place))


def test_a_run_survives_a_lost_host_and_a_restart_of_the_controller(
    site: Site, work: _Work, sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host is named and the run waits again; with the host back it goes on where it was, and gives the losses that
    one host gives."""
    monkeypatch.setattr(slurm_jobs, "END_SECONDS", 3.0)  # of what Slurm cannot end, for its host is gone
    working = work({**SHORT, "hosts": 2, "training": {**SHORT["training"], "checkpoint_every": 10}})
    working.wait_for_step(12)
    site.lose("n2")
    lost_at = time.monotonic()
    run = working.ended()
    assert time.monotonic() - lost_at < 30 + slack_seconds()
    assert run.status == "queued"
    assert re.match(r"Host n2 was lost after step \d+, and rank 1 with it\.", run.phase), run.phase
    site.wait_until(lambda: not site.ranks())

    site.bring_back("n2")
    working.work()
    site.wait_until(lambda: working.run().status == "running")
    site.restart_controller()
    run = working.ended()
    assert run.status == "finished", run.failure
    assert run.device == "CPU, 2 ranks on 2 hosts over gloo"
    assert run.attempts == 2
    assert working.hosts() == {0: "n1", 1: "n2"}
    last = working.starts()[-1]
    said = [event.line for event in last if isinstance(event, LogEvent)]
    assert said[0].startswith("starting again: Host n2 was lost after step")
    assert any("going on after step" in line for line in said)
    losses = [event.loss for event in last if isinstance(event, StepEvent)]
    assert len(losses) == STEPS
    few = {**SHORT, "training": {**SHORT["training"], "steps": 20}}
    assert losses[:20] == pytest.approx(run_now(few).losses(), rel=1e-5)  # rounding grows later
    assert not site.ranks()


def test_a_cancelled_run_is_gone_within_ten_seconds(site: Site, work: _Work, sqlite: Database) -> None:
    working = work({**SHORT, "hosts": 2})
    site.wait_until(lambda: len(site.ranks()) >= 2)
    with sqlite.write() as session:
        service.cancel_run(session, 1, working.run_id, utc_now())
    cancelled_at = time.monotonic()
    run = working.ended()
    assert time.monotonic() - cancelled_at < 10 + slack_seconds()
    assert run.status == "cancelled"
    assert not site.ranks()
    site.wait_until(lambda: not site.jobs())


def test_where_the_hosts_cannot_read_the_folder_that_is_said(
    site: Site, sqlite: Database, partition: Partition
) -> None:
    """Folder `hidden` of the cluster is another one on n2."""
    working = Working(sqlite, site.folder / "hidden", {**SHORT, "hosts": 2}, devices=partition)
    run = working.ended()
    working.close()
    assert run.failure is not None
    assert run.failure["cause"] == "no shared folder"
    assert f"{site.folder}/hidden/runs/" in run.failure["message"]


def test_two_learners_take_turns_and_a_killed_workers_job_goes(site: Site, work: _Work, sqlite: Database) -> None:
    """Whoever submits two runs first still waits with the second for another's first. Their ranks never get to load
    torch: each is cancelled as soon as it is Slurm's, the last in Slurm itself, and says so."""
    with sqlite.write() as session:
        session.add(Learner(name="Other", created_at=utc_now()))
        session.flush()
        spec = {**SHORT, "hosts": 2}
        runs = [service.submit_run(session, learner, spec, None, utc_now()).id for learner in (1, 1, 2)]
    order = []
    working = work(spec)  # the third of the first learner
    for _ in range(3):
        site.wait_until(lambda: bool(active(sqlite)) and bool(site.jobs()))
        order += active(sqlite)
        if len(order) < 3:
            with sqlite.write() as session:
                service.cancel_run(session, 2 if order[-1] == runs[2] else 1, order[-1], utc_now())
        else:
            site.call("scancel", *site.jobs())
        working.ended()
        site.wait_until(lambda: not site.jobs())
        working.work()
    assert order == [runs[0], runs[2], runs[1]]
    with sqlite.read() as session:
        ends = [session.get_one(Run, each) for each in order]
    assert [(run.status, (run.failure or {}).get("cause")) for run in ends] == [
        ("cancelled", None),
        ("cancelled", None),
        ("failed", "cancelled in Slurm"),
    ]

    # what a worker that was killed leaves: a job of a claim that is nobody's any more
    site.wait_until(lambda: bool(site.jobs()))
    with sqlite.write() as session:
        session.execute(update(Run).values(status="failed"))
    cancel_leftovers(work.partition.jobs(), set())
    site.wait_until(lambda: not site.jobs())


def active(database: Database) -> list[int]:
    with database.read() as session:
        return [run_id for run_id, _ in leases.list_leases(session)]


def test_what_cannot_be_is_refused_with_what_there_is(site: Site, partition: Partition, sqlite: Database) -> None:
    with pytest.raises(UnknownDevice, match=r"--partition night: Slurm has lab\."):
        find_partition("night", "")
    assert partition.place(parse_run_spec({**SHORT, "parallel": {"data": 3}, "hosts": 3})) is None
    assert partition.place(parse_run_spec({**SHORT, "parallel": {"data": 6}, "hosts": 2})) is None
    assert partition.place(parse_run_spec(SHORT)) is None, "one host's runs are a plain worker's"
    now = utc_now()
    with sqlite.write() as session:
        presence.announce_worker(session, "device-s-1", "device", partition.describe(), now, None)
        three = takers.why_nobody_takes(session, parse_run_spec({**SHORT, "parallel": {"data": 3}, "hosts": 3}), now)
        six = takers.why_nobody_takes(session, parse_run_spec({**SHORT, "parallel": {"data": 6}, "hosts": 2}), now)
        assert takers.why_nobody_takes(session, parse_run_spec({**SHORT, "hosts": 2}), now) is None
        one = takers.why_nobody_takes(session, parse_run_spec(SHORT), now) or ""
    assert one.startswith("It is for one host, and the workers that are there take runs over several;")
    assert three == "It asks for 3 hosts; Slurm partition lab, 2 of 2 hosts usable."
    assert six is not None
    assert six.startswith("It asks for 2 hosts with 3 cores each; 0 have them: ")
