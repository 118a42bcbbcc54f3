"""Folders: what an install writes is closed to other users, and what ranks leave in theirs is not trusted."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from app.core.limits import Limits
from app.core.private import close_to_others
from labs.spec.events import PhaseEvent, event_line
from tests.support.events import log, result, step
from tests.support.product import Product, SharedProduct
from tests.support.sockets import Watch, tree
from worker import untrusted
from worker.failures import explain, last_lines
from worker.tail import Follower
from worker.untrusted import MOST_FILE_BYTES, READ_BYTES

# --- other users of the machine


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    return [str(path) for path in (folder, *folder.rglob("*")) if mode(path) & 0o077 and not path.is_symlink()]


@pytest.fixture
def careless() -> Iterator[None]:
    """A shell whose new files everybody may write."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careless")
def test_an_install_from_before_is_closed(tmp_path: Path) -> None:
    data = tmp_path / "var"
    for name in ("rankzero.sqlite3", "rankzero.sqlite3-wal", "log/web.log", "runs/1-a/logs/x/stderr.log", "backups/a"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("private")
    assert close_to_others(data) > 10
    assert open_to_others(data) == []
    assert mode(data / "runs/1-a") == 0o700
    assert mode(data / "rankzero.sqlite3") == 0o600
    assert close_to_others(data) == 0


@pytest.mark.usefixtures("careless")
def test_what_is_no_installs_own_is_left_alone(tmp_path: Path) -> None:
    """A data folder somebody names may be full of other things, and links lead anywhere."""
    elsewhere, data = tmp_path / "elsewhere", tmp_path / "shared"
    for folder in (elsewhere, data):
        folder.mkdir()
        (folder / "theirs").write_text("public")
    close_to_others(data)
    assert mode(data) == 0o777
    assert mode(data / "theirs") == 0o666
    (data / "runs").symlink_to(elsewhere)
    close_to_others(data)
    assert mode(elsewhere / "theirs") == 0o666
    assert mode(elsewhere) == 0o777


@pytest.fixture(scope="module")
def product(shared_product: SharedProduct) -> tuple[Product, Watch]:
    """The product under a careless umask, with a run that it carried out, and who listened meanwhile."""
    running = shared_product.up()
    with Watch(running.process.pid) as watch:
        spec = {"model": "gpt-mini", "training": {"steps": 20}, "parallel": {"data": 2}, "device": "cpu"}
        _, run = running.post_json("/api/v1/lab/runs", {"spec": spec})
        deadline = time.monotonic() + 180  # the machine may have other work
        while running.get_json(f"/api/v1/lab/runs/{run['id']}")["status"] not in ("finished", "failed"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    return running, watch


@pytest.mark.slow
def test_everything_the_product_writes_is_its_owners_alone(product: tuple[Product, Watch]) -> None:
    running, _ = product
    written = {path.name for path in running.data.rglob("*")}
    assert {"rankzero.sqlite3", "web.log", "redis", "events-0.jsonl", "rendezvous", "torchrun.log"} <= written
    assert open_to_others(running.data) == []


@pytest.mark.slow
def test_the_product_listens_on_loopback_only_and_redis_on_no_port(product: tuple[Product, Watch]) -> None:
    running, watch = product
    assert any(each.port == int(running.url.rpartition(":")[2]) for each in watch.seen)
    assert watch.outside == []
    assert not [each for each in watch.seen if "redis" in each.program or "valkey" in each.program]
    sockets = {
        Path(connection.laddr)
        for process in tree(running.process.pid)
        for connection in process.net_connections(kind="unix")
        if connection.status in (psutil.CONN_NONE, psutil.CONN_LISTEN) and str(connection.laddr).startswith("/")
    }
    named = [path for path in sockets if path.name == "redis.sock"]
    assert named
    for path in named:
        assert mode(path) & 0o077 == 0
        assert mode(path.parent) == 0o700


# --- what ranks leave behind

STEP = event_line(step(1, t=1.0)) + b"\n"
MUCH = 8 * 2**20  # bytes of memory that reading may take


def put(kind: str, path: Path, secret: Path) -> None:
    """Something hostile at `path`; `secret` is what it would lead to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "folder link":
        path.parent.rmdir()
        path.parent.symlink_to(secret.parent)
        (secret.parent / path.name).write_bytes(secret.read_bytes())
    elif kind == "hanging link":
        path.symlink_to(path.parent / "nothing")
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    else:
        path.mkdir()


HOSTILE = ("link", "folder link", "hanging link", "link to itself", "pipe", "device", "socket", "folder")


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A socket's path may not be long."""
    with tempfile.TemporaryDirectory(prefix="rz-") as folder:
        yield Path(folder)


@pytest.fixture
def secret(short_path: Path) -> Path:
    path = short_path / "elsewhere" / "secret"
    path.parent.mkdir()
    path.write_bytes(event_line(log("the-secret")) + b"\n")
    return path


@pytest.mark.parametrize("kind", HOSTILE)
def test_events_are_read_from_regular_files_alone(short_path: Path, secret: Path, kind: str) -> None:
    events = short_path / "run" / "events"
    put(kind, events / "events-0.jsonl", secret)
    follower = Follower(events, 1)
    if kind == "folder link":  # the folder itself is ours to name: what is in it is read from there
        pytest.skip("the launcher makes this folder, and names it")
    assert follower.read() == []
    assert not follower.is_behind


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("stream", ["stderr", "stdout"])
def test_last_lines_are_read_from_regular_files_alone(short_path: Path, secret: Path, kind: str, stream: str) -> None:
    logs = short_path / "run" / "logs"
    put(kind, logs / "id" / "attempt_0" / "0" / f"{stream}.log", secret)
    assert last_lines([], 0, logs) == []


@pytest.mark.parametrize("kind", HOSTILE)
def test_torchruns_own_words_are_read_from_a_regular_file_alone(short_path: Path, secret: Path, kind: str) -> None:
    put(kind, short_path / "run" / "torchrun.log", secret)
    if kind == "folder link":
        pytest.skip("the launcher makes this folder, and names it")
    assert untrusted.last_lines(short_path / "run", Path("torchrun.log"), 10) == []


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MUCH
    finally:
        tracemalloc.stop()


def write_large(path: Path, line: bytes, size: int) -> None:
    """A file of about `size` bytes of `line` over and over, written a part at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = line * max(1, 2**20 // len(line))
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(part)


def test_one_line_of_64_mb_is_cut_and_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "id" / "attempt_0" / "0" / "stderr.log"
    write_large(path, b"x", 64 * 2**20)
    with little_memory():
        (line,) = last_lines([], 0, tmp_path)
    assert len(line) < 3_000
    assert "cut" in line


def test_a_gigabyte_of_lines_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "id" / "attempt_0" / "0" / "stderr.log"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:  # the beginning is a hole, so that the test is quick; a reader cannot tell
        file.truncate(2**30)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast but one\nlast\n")
    with little_memory():
        lines = last_lines([], 0, tmp_path)
    assert lines[-2:] == ["last but one", "last"]
    assert sum(map(len, lines)) < 50_000


@pytest.mark.slow
def test_an_event_file_of_hundreds_of_megabytes_is_read_so_far_and_said_to_be_cut(tmp_path: Path) -> None:
    write_large(tmp_path / "events-0.jsonl", b'{"t": 1, "kind": "party"}'.ljust(4_000) + b"\n", MOST_FILE_BYTES + 2**22)
    follower, found = Follower(tmp_path, 1), []
    with little_memory():
        while follower.is_behind:
            found += follower.read()
    assert [event.kind for event in found] == ["log"]
    assert f"{MOST_FILE_BYTES:,}" in found[0].line
    assert follower.read() == []


def test_what_follows_in_a_line_that_is_too_long_is_no_line_of_its_own(tmp_path: Path) -> None:
    """The end of it could otherwise be made to look like an event."""
    with (tmp_path / "events-0.jsonl").open("wb") as file:
        file.write(b"x" * (READ_BYTES + 5) + STEP + STEP)
    follower, found = Follower(tmp_path, 1), []
    while follower.is_behind:
        found += follower.read()
    assert [event.kind for event in found] == ["log", "step"]
    assert "cut" in found[0].line


def test_results_without_end_are_few(tmp_path: Path) -> None:
    write_large(tmp_path / "events-0.jsonl", event_line(result(0, {"program": "gemm"})) + b"\n", 2**18)
    found = Follower(tmp_path, 1, Limits(run_events=10)).read()
    assert 10 < len(found) < 200


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b'{"t": NaN, "kind": "log", "rank": 0, "stream": "stderr", "line": "x"}',
        b'{"t": Infinity, "kind": "log", "rank": 0, "stream": "stderr", "line": "x"}',
        b'{"t": 1, "kind": "log", "rank": 0, "stream": "stderr", "line": "\\u0000"}',
        b'{"t": 1, "kind": "log", "rank": 0, "stream": "stderr", "line": "\\ud800"}',
        b'{"t": 1, "kind": "log", "rank": 0, "stream": "stderr", "line": "\xff\xfe"}',
        b'{"t": ' + b"9" * 60_000 + b', "kind": "log", "rank": 0, "stream": "stderr", "line": "x"}',
        b'{"t": "1", "kind": "log", "rank": 0, "stream": "stderr", "line": "x"}',
        b'{"t": 1, "kind": ["log"], "rank": 0, "stream": "stderr", "line": "x"}',
        event_line(step(1)).replace(b'"step":1', b'"step":"1"'),
        event_line(step(1)).replace(b'"step":1', b'"step":99999999999999999999'),
        b"null",
        b'"step"',
        b"\x00" * 1000,
    ],
    ids=range(15),
)
def test_a_line_no_database_or_reader_could_take_is_left_out(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "events-0.jsonl").write_bytes(line + b"\n" + STEP)
    assert [event.kind for event in Follower(tmp_path, 1).read()] == ["step"]


@pytest.mark.parametrize(
    "said",
    [
        "rank : 1 (local_rank: 1)\n exitcode : -9999 (pid: 1)",
        "rank : 1 (local_rank: 1)\n exitcode : -200 (pid: 1)",
        "rank : " + "9" * 5000 + "\n exitcode : 1",
        "\n" * 200_000,
        " " * 200_000 + "rank",
        "rank : 1\n" * 20_000,
    ],
    ids=range(6),
)
def test_no_report_of_torchruns_is_slow_or_fatal_to_read(tmp_path: Path, said: str) -> None:
    began = time.process_time()
    found = explain([PhaseEvent(1.0, 0, "failed")], said, tmp_path)
    assert found.cause
    assert time.process_time() - began < 5
