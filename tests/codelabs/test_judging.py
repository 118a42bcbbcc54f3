"""From the door to the verdict: the worker's judge and the command line, both with real ranks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.codelabs.folder import MARK, SOLUTION, read_folder
from app.codelabs.proof import Proof, make_proof, same_verdict
from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError
from app.core.queue import Queue
from app.core.settings import Settings
from labs.code.grading import judge
from labs.code.sandbox import Pool
from labs.spec.code import Submission, Verdict, VerdictEvent
from tests.support.code_labs import needs_sandboxes
from worker import judging
from worker.context import Context
from worker.devices import Devices

pytestmark = needs_sandboxes
CLI = [sys.executable, "-m", "app.cli", "labs"]
API = "/api/v1/labs"


@pytest.fixture
def worker(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[Context]:
    chosen = settings_for()
    context = Context(chosen, sqlite, Queue(chosen.redis), Devices(True, ()), "device", "worker")
    yield context
    judging.let_go(context)


@pytest.fixture
def page(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    from app.main import create_app

    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1") as client:
        yield client


def submitted(page: TestClient, worker: Context, code: str) -> dict[str, Any]:
    number = page.post(f"{API}/CL01/submissions", json={"code": code}).json()["id"]
    assert judging.take_next(worker)
    found: dict[str, Any] = page.get(f"{API}/submissions/{number}").json()
    return found


def test_the_worker_has_submissions_judged(page: TestClient, worker: Context, content: Catalogue) -> None:
    lab = content.labs["CL01"]
    judging.warm_up(worker)
    process = judging.judge_of(worker)._process
    assert process is not None
    process.kill()  # one that is gone comes back when it is needed
    process.wait()
    right = submitted(page, worker, lab.reference)
    assert (right["status"], right["verdict"]["passed"], right["verdict"]["mistake"]) == ("judged", True, None)
    checks = [(check["name"], check["ranks"]) for check in right["verdict"]["checks"]]
    assert checks == [(name, ranks) for ranks in (2, 3, 4) for name in ("finishes", "sum", "messages")]
    traces = page.get(f"{API}/submissions/{right['id']}/trace").json()
    for found in traces.values():
        assert (found["ranks"], len(found["calls"])) == (4, 4 * 2 * 2 * 3), "each rank sends and receives 2(n−1) times"
    wrong = submitted(page, worker, lab.wrong[0].code)
    assert (wrong["verdict"]["passed"], wrong["verdict"]["mistake"]) == (False, lab.wrong[0].says)
    assert wrong["verdict"]["autopsy"]["says"]
    assert not judging.take_next(worker), "nothing waits any more"
    _take_one_back(page, worker)


def _take_one_back(page: TestClient, worker: Context) -> None:
    """One that sleeps: it ends within seconds of being cancelled, and no process of it is left."""
    code = "import time\n\n\ndef ring_all_reduce(x, rank, n, send, recv):\n    time.sleep(600)\n"
    number = page.post(f"{API}/CL01/submissions", json={"code": code}).json()["id"]
    judged = threading.Thread(target=judging.take_next, args=(worker,))
    judged.start()
    at = f"{API}/submissions/{number}"
    wait_for(lambda: "ranks" in page.get(f"/labs/submissions/{number}").text, "its ranks run")
    process = judging.judge_of(worker)._process
    assert process is not None
    family = descendants(process.pid)
    assert len(family) > 4, "the judge and a rank of each sandbox"
    assert page.post(f"{at}/cancel").json()["status"] == "running"
    assert "Being taken back" in page.get(f"/labs/submissions/{number}").text
    judged.join(60)
    assert page.get(at).json()["status"] == "cancelled"
    wait_for(lambda: not any(is_alive(each) for each in family), "its processes are gone")


def wait_for(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def descendants(process: int) -> set[Path]:
    """Its processes and theirs, as the kernel lists them."""
    found, new = set[Path](), {process}
    while new:
        parents, new = new, set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[1]) in parents and stat.parent not in found:
                    found.add(stat.parent)
                    new.add(int(stat.parent.name))
    return found


def is_alive(process: Path) -> bool:
    with contextlib.suppress(OSError):
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_what_is_still_said_of_a_submission_that_nobody_listens_to_is_not_the_next_ones(
    worker: Context, content: Catalogue
) -> None:
    lab, judge = content.labs["CL04"], judging.judge_of(worker)
    left = judge.events(Submission(id="first", lab=lab.id, code=lab.wrong[0].code, mode="run"))
    assert next(event for event in left if event is not None).id == "first"
    left.close()  # as when the database goes away in the middle
    heard = [each for each in judge.events(Submission(id="second", lab=lab.id, code=lab.reference, mode="run")) if each]
    assert {each.id for each in heard} == {"second"}
    assert isinstance(heard[-1], VerdictEvent)
    assert heard[-1].verdict.passed


def test_where_code_may_not_run_the_submission_says_so(
    page: TestClient, sqlite: Database, settings_for: Callable[..., Settings]
) -> None:
    chosen = settings_for(code_labs="off")
    context = Context(chosen, sqlite, Queue(chosen.redis), Devices(True, ()), "device", "worker")
    found = submitted(page, context, "x = 1")
    assert found["status"] == "failed"
    assert "RANKZERO_CODE_LABS=off" in found["detail"]


def rankzero(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
        check=False,
    )


def test_a_lab_from_ones_own_editor(tmp_path: Path, content: Catalogue) -> None:
    folder, proof = tmp_path / "ring", tmp_path / "proof.json"
    assert rankzero("new", "CL01", folder).returncode == 0
    assert (folder / "solution.py").read_text() == content.labs["CL01"].starter
    assert "26.25 GB" in (folder / "README.md").read_text() or "24.5 GB" in (folder / "README.md").read_text()
    assert rankzero("new", "CL01", folder).returncode == 2, "nothing is written over"
    (folder / "solution.py").write_text(content.labs["CL01"].reference)
    done = rankzero("submit", folder, "--proof", proof)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert {"lab", "passed", "score", "checks", "mistake", "autopsy"} <= set(verdict)
    assert (verdict["lab"], verdict["passed"], verdict["score"]) == ("CL01", True, 1.0)
    assert Proof.model_validate_json(proof.read_text()).verdict.passed


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"x = 1\ny = '\xff'\n", "solution.py:2 is not UTF-8"),
        (b"x" * 10_000_000, "10,000,000 bytes"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_said_before_anything_starts(
    tmp_path: Path, content: Catalogue, data: bytes | None, says: str
) -> None:
    (tmp_path / MARK).write_text('{"lab": "CL01"}')
    if data is not None:
        (tmp_path / SOLUTION).write_bytes(data)
    with pytest.raises(DomainError, match=says):
        read_folder(content, tmp_path)


def test_a_folder_that_is_none_is_refused_as_problem_details(tmp_path: Path) -> None:
    done = rankzero("submit", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no folder of `rankzero labs new`" in json.loads(done.stderr)["detail"]


def test_a_proof_holds_on_another_machine_and_no_other_program_has_it(code_pool: Pool, content: Catalogue) -> None:
    lab = content.labs["CL01"]

    def judged(code: str, seed: int | None) -> Verdict:
        return judge(Submission(lab="CL01", code=code, seed=seed), code_pool, lambda _: None)

    proof = Proof.model_validate(make_proof(lab, lab.reference, judged(lab.reference, None)))
    assert same_verdict(lab, proof, judged(proof.code, proof.seed)) == []
    assert same_verdict(lab, proof, judged(lab.wrong[0].code, proof.seed))
    assert same_verdict(lab, proof, judged(proof.code, proof.seed + 1)), "the ledger is of other inputs"
