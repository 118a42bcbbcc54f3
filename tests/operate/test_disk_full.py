"""A disk without room: what is there can be read, what is to be saved is refused in one sentence, a run that cannot be
written down ends by that name, and everything goes on when there is room again. On a disk of its own (needs root)."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.product import Product, running_product

pytestmark = pytest.mark.slow
SECONDS = 180.0  # a busy machine is slow, not wrong
SPEC = {"model": "gpt-mini", "training": {"steps": 500, "sequence": 64}, "parallel": {"data": 2}, "device": "cpu"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m,mode=0700", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk of a test's own: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (2**20, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def _page(product: Product, path: str) -> tuple[int, str]:
    request = urllib.request.Request(f"{product.url}{path}", headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _wait(product: Product, run_id: int, *statuses: str) -> dict[str, object]:
    deadline = time.monotonic() + SECONDS
    while True:
        run: dict[str, object] = product.get_json(f"/api/v1/lab/runs/{run_id}")
        if run["status"] in statuses:
            return run
        assert time.monotonic() < deadline, run
        time.sleep(0.1)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can mount a disk of a test's own")
def test_a_full_disk_ends_nothing_but_the_run_and_says_so(small_disk: Path) -> None:
    with running_product(small_disk / "data", warm=True) as product:
        _, run = product.post_json("/api/v1/lab/runs", {"spec": SPEC})
        _wait(product, run["id"], "running")
        filler = _fill(small_disk)
        seen = []
        for path in ("/", "/lab", "/study", f"/lab/runs/{run['id']}", "/healthz"):
            seen.append((path, _page(product, path)[0]))
        assert seen == [(path, 200) for path, _ in seen]
        deadline = time.monotonic() + SECONDS
        while (refused := product.post_json("/api/v1/lab/runs", {"spec": SPEC}))[0] == 201:
            assert time.monotonic() < deadline, "there is still room"
            _fill(small_disk).rename(small_disk / f"filler-{time.monotonic_ns()}")
        assert refused[0] == 507
        assert refused[1]["detail"].startswith("The disk is full: nothing can be saved until there is room.")
        time.sleep(2)
        for path in small_disk.glob("filler*"):
            path.unlink()
        assert not filler.exists()
        ended = _wait(product, run["id"], "failed", "finished")
        assert ended["status"] == "failed"
        assert ended["failure"]["cause"] == "disk full"  # type: ignore[index]
        short = {**SPEC, "training": {"steps": 2, "sequence": 32}}
        deadline = time.monotonic() + SECONDS
        while (again := product.post_json("/api/v1/lab/runs", {"spec": short}))[0] != 201:
            assert time.monotonic() < deadline, again
            time.sleep(0.2)
        assert _wait(product, again[1]["id"], "finished", "failed")["status"] == "finished"
        assert product.process.poll() is None
