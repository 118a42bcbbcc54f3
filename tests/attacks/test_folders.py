"""Folders: what an install writes is closed to other users, and what ranks leave in theirs is not trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.core.private import close_to_others
from tests.support.product import Product, running_product
from tests.support.sockets import Watch, tree

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
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, Watch]]:
    """The product under a careless umask, with a run that is under way, and who listened meanwhile."""
    before = os.umask(0)
    try:
        with (
            running_product(tmp_path_factory.mktemp("product") / "var") as running,
            Watch(running.process.pid) as watch,
        ):
            spec = {"model": "gpt-mini", "training": {"steps": 20}, "parallel": {"data": 2}, "device": "cpu"}
            _, run = running.post_json("/api/v1/lab/runs", {"spec": spec})
            import time

            deadline = time.monotonic() + 60
            while running.get_json(f"/api/v1/lab/runs/{run['id']}")["status"] not in ("finished", "failed"):
                assert time.monotonic() < deadline
                time.sleep(0.2)
            yield running, watch
    finally:
        os.umask(before)


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
