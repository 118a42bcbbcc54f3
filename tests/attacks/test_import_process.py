"""The process an import has to itself: what a file does to it, it does to nobody else, and half an import is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import text

from app.core.db import Database
from app.exchange import imports, limits
from app.exchange.imports import Busy, Job, Order
from tests.attacks.conftest import ClientOf
from tests.conftest import NOW, moment_at
from tests.exchange.test_bad_files import GOOD, collection, package
from tests.exchange.test_pages import settled
from tests.lab.test_run_file import a_file

Begin = Callable[..., str]
SECONDS = 200.0  # a busy machine is slow, not wrong
MANY = package(collection([(f"guid{n}", f"What is \\({n}^2\\)? {'word ' * 40}\x1f\\({n * n}\\)") for n in range(3000)]))


@pytest.fixture
def begin(sqlite: Database, tmp_path: Path) -> Begin:
    """Start an import of these bytes; its id."""

    def begin(data: bytes, name: str = "deck.apkg") -> str:
        url = sqlite.engine.url.render_as_string(hide_password=False)
        return imports.start(tmp_path / "imports", BytesIO(data), Order(name, url, 1, {}, moment_at(NOW), True))

    return begin


def _over(folder: Path, identity: str, seconds: float = SECONDS) -> Job:
    deadline = time.monotonic() + seconds
    while (job := imports.find(folder, identity)).state == "running":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return job


def _under_way(folder: Path, identity: str, phase: str = "reading") -> psutil.Process:
    deadline = time.monotonic() + SECONDS
    while (job := imports.find(folder, identity)).phase != phase or job.done == 0:
        assert job.state == "running"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process = imports._process(folder / identity)
    assert process is not None
    return process


def _cards(database: Database) -> int:
    with database.read() as session:
        return int(session.execute(text("SELECT count(*) FROM own_card")).scalar_one())


@pytest.mark.slow
def test_an_import_has_a_process_without_torch_and_with_limits_and_once_cancelled_it_makes_room(
    sqlite: Database, tmp_path: Path, begin: Begin
) -> None:
    folder = tmp_path / "imports"
    identity = begin(MANY)
    process = _under_way(folder, identity)
    assert process.pid != os.getpid()
    if sys.platform == "linux":
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert "torch" not in maps
        assert process.rlimit(psutil.RLIMIT_DATA)[0] == limits.CHILD_DATA_BYTES
        assert process.rlimit(psutil.RLIMIT_AS)[0] == limits.CHILD_ADDRESS_BYTES
        assert process.rlimit(psutil.RLIMIT_CPU)[0] == limits.CHILD_CPU_SECONDS
    given = process.environ()
    assert not {name for name in given if "KEY" in name or "PASSWORD" in name or name == "RANKZERO_DATABASE_URL"}
    assert str(sqlite.engine.url.database) not in " ".join(process.cmdline())
    with pytest.raises(Busy, match=r"deck\.apkg is being imported"):
        begin(package(GOOD))
    assert imports.cancel(folder, identity).state == "cancelled"
    assert not process.is_running()
    assert _cards(sqlite) == 0
    assert _over(folder, begin(package(GOOD))).state == "done"


@pytest.mark.slow
def test_a_killed_import_leaves_nothing_half_done(sqlite: Database, tmp_path: Path, begin: Begin) -> None:
    folder = tmp_path / "imports"
    identity = begin(MANY)
    _under_way(folder, identity).kill()
    job = _over(folder, identity)
    assert (job.state, _cards(sqlite)) == ("refused", 0)
    assert "150 s" in job.violations[0].message
    deadline = time.monotonic() + SECONDS
    while (left := {path.name for path in (folder / identity).iterdir()}) - {
        "order.json",
        "process.json",
        "status.json",
    }:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    assert (folder / identity).stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_crash_is_said_and_the_next_import_goes_on(sqlite: Database, tmp_path: Path, begin: Begin) -> None:
    folder = tmp_path / "imports"
    for number in (signal.SIGSEGV, signal.SIGALRM):
        identity = begin(MANY)
        _under_way(folder, identity).send_signal(number)
        job = _over(folder, identity)
        assert job.state == "refused"
        assert any(part in job.violations[0].message for part in (number.name, "150 s", "10 minutes"))
        assert _cards(sqlite) == 0
    assert _over(folder, begin(package(GOOD))).state == "done"
    assert _cards(sqlite) == 1


@pytest.mark.slow
def test_memory_without_end_is_refused_by_the_kernel(tmp_path: Path) -> None:
    """What no check of ours foresees: the limit holds whoever asks for memory."""
    code = (
        "from app.exchange import child, limits; limits.CHILD_DATA_BYTES = 300_000_000; child.limit_self()\n"
        "from pathlib import Path\n"
        "child._import = lambda folder, order: [bytearray(10**7) for _ in range(10**4)]\n"
        "child.main(Path('.'), {})"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=_environment(), check=True, timeout=SECONDS)
    assert "300 MB of memory" in (tmp_path / "status.json").read_text()


@pytest.mark.slow
def test_work_without_end_is_ended_by_the_kernel(tmp_path: Path) -> None:
    code = (
        "from app.exchange import child, limits; limits.CHILD_CPU_SECONDS = 1; child.limit_self()\n"
        "import re; re.match('(a+)+$', 'a' * 60 + 'b')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=_environment(), check=False, timeout=SECONDS)
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.slow
def test_the_page_shows_an_import_survives_a_reload_and_cancels(client_of: ClientOf) -> None:
    client = client_of()
    begun = client.post("/study/exchange", files={"file": ("deck.apkg", MANY)})
    where = begun.headers["location"]
    for _ in range(2):
        shown = client.get(where)
        assert shown.status_code == 200
        assert "Importing deck.apkg" in shown.text
        assert f'action="{where}/cancel"' in shown.text
    part = client.get(where, headers={"HX-Request": "true"}).text
    assert "<progress" in part
    assert "<html" not in part
    assert "cancel" not in part, "what has the focus is not swapped"
    second = client.post("/study/exchange", files={"file": ("other.apkg", package(GOOD))})
    assert second.status_code == 409
    assert "deck.apkg is being imported" in second.text
    assert client.post(f"{where}/cancel").status_code == 303
    over = client.get(where)
    assert over.status_code == 422
    assert "was cancelled" in over.text
    assert client.get(where, headers={"HX-Request": "true"}).headers["hx-redirect"] == where
    reply = settled(client, client.post("/study/exchange", files={"file": ("other.apkg", package(GOOD))}))
    assert reply.headers["location"] == "/study/exchange/1"


@pytest.mark.parametrize("identity", ["..%2F..%2Fetc", "0" * 16, "z" * 16, "0" * 15, "%00"])
def test_an_import_that_is_none_is_not_found(client_of: ClientOf, identity: str) -> None:
    client = client_of()
    assert client.get(f"/study/exchange/jobs/{identity}").status_code in (404, 422)
    assert client.post(f"/study/exchange/jobs/{identity}/cancel").status_code in (404, 405, 422)


@pytest.mark.slow
def test_a_run_from_a_file_is_opened_by_the_same_process_and_its_page_says_why_not(client_of: ClientOf) -> None:
    client = client_of()
    html = {"Accept": "text/html"}

    def sent(data: bytes, name: str) -> Any:
        begun = client.post("/lab/open", files={"file": (name, data)}, headers=html)
        return settled(client, begun) if begun.status_code == 303 else begun

    good = sent(a_file(), "../../theirs.rzrun")
    assert good.headers["location"] == "/lab/runs/1"
    assert "theirs.rzrun" in client.get("/lab/runs/1", headers=html).text
    assert "../" not in client.get("/api/v1/lab/runs/1").json()["opened_from"]
    cut = sent(a_file()[: a_file().rindex(b'{"sha256"')], "theirs.rzrun")
    assert cut.status_code == 422
    assert "Open a run from a file" in cut.text
    assert "ends before its last line" in cut.text
    assert "does not say that it is a run" in sent(a_file(), "theirs.zip").text
    assert client.get("/api/v1/lab/runs/2").status_code == 404
