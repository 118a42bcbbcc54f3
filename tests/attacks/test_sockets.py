"""What comes of writing to a run's sockets. Who listens at all while ranks run: `tests/labs/test_listening.py`."""

from __future__ import annotations

import pickle
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from labs.command import plain_command
from labs.spec import parse_run_spec
from labs.warm import WarmHost
from tests.support.sockets import Listener, listeners, tree

pytestmark = [pytest.mark.slow, pytest.mark.together("attacked runs")]

TIME_LIMIT_SECONDS = 120


@pytest.fixture(params=["by the worker", "by the worker's warm host", "by hand"])
def long_run(request: pytest.FixtureRequest, tmp_path: Path, host: WarmHost) -> Iterator[tuple[int, Path]]:
    """A run that is under way, as the product starts it and as its page says to start it by hand: the pid of whoever
    is above its processes, and where its events are."""
    spec = {"model": "gpt-mini", "training": {"steps": 500, "sequence": 32}, "parallel": {"data": 2}, "device": "cpu"}
    events = tmp_path / "run" / "events"
    command: list[str] = ["sh", "-c", f"exec {plain_command(parse_run_spec(spec))} --events {events}"]
    if request.param != "by hand":
        from worker.launcher import launch

        is_warm = request.param == "by the worker's warm host"
        host.warm_up()
        launched = launch(parse_run_spec(spec), tmp_path / "run", {}, host if is_warm else None)
        above = host.pid if is_warm else launched.process.pid
        assert above is not None
        try:
            yield above, events
            assert launched.exit_code() is None
        finally:
            launched.end()
        return
    process = subprocess.Popen(command, env={"PATH": "/usr/bin:/bin"}, cwd=Path(__file__).parents[2], text=True)
    try:
        yield process.pid, events
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(TIME_LIMIT_SECONDS)


def wait_for_steps(events: Path, more_than: int = 0) -> int:
    """How many steps the run has done, once it is more than that."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    while time.monotonic() < deadline:
        path = events / "events-0.jsonl"
        done = path.read_text().count('"kind":"step"') if path.exists() else 0
        if done > more_than:
            return done
        time.sleep(0.05)
    raise AssertionError("the run did not go on")


class Marker:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (str(self.path), "w")


def test_writing_to_a_runs_sockets_runs_no_code_and_there_is_no_store_to_write_to(
    long_run: tuple[int, Path], tmp_path: Path
) -> None:
    """What the agent of a plain `torchrun --standalone` unpickles is what anybody puts into its store."""
    above, events = long_run
    steps = wait_for_steps(events)
    found = sorted(listeners(above))
    assert found, "gloo's pairs listen somewhere"
    assert [each for each in found if not each.is_loopback] == []
    evil = pickle.dumps(Marker(tmp_path / "got-in"))
    with ThreadPoolExecutor(len(found)) as pool:  # each is given its time to answer, while the ranks train on
        answers = list(pool.map(lambda each: is_store(each.address, each.port), found))
    assert not any(answers), found
    for each in found:
        send_raw(each, evil)
        send_raw(each, len(evil).to_bytes(8, "little") + evil)
    # The agent's state and the ranks' addresses are pickles and the like: in folders that nobody else may enter.
    (store,) = stores_of(above, events)
    assert store.exists()
    assert store.parent.parent.stat().st_mode & 0o777 == 0o700
    if (events / "rendezvous").exists():
        assert events.parent.stat().st_mode & 0o777 == 0o700
    wait_for_steps(events, steps)
    assert not (tmp_path / "got-in").exists()


def test_a_store_would_be_recognised() -> None:
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    assert is_store("127.0.0.1", store.port)


def is_store(address: str, port: int) -> bool:
    """Whether torch's TCP store answers there: it repeats the number of a ping."""
    magic, ping, number = (0x3C85F7CE).to_bytes(4, "little"), b"\x0d", b"\x01\x02\x03\x04"
    with socket.create_connection((address, port), timeout=2) as connection:
        connection.sendall(b"\x00" + magic + ping + number)
        connection.settimeout(0.5)
        try:
            return connection.recv(4) == number
        except OSError:
            return False


def send_raw(to: Listener, payload: bytes) -> None:
    with socket.create_connection((to.address, to.port), timeout=2) as connection:
        connection.sendall(payload)


def stores_of(above: int, events: Path) -> set[Path]:
    """Where a run's ranks meet: by their environment, or where torchrun was told to make its folders. Of a process that
    was forked, the system tells the environment that its host began with."""
    reports = {each.environ().get("TORCHELASTIC_ERROR_FILE") for each in tree(above)}
    told = {Path(report).parent.parent / "store" for report in reports if report}
    return told or set((events.parent / "logs").glob("*/attempt_0/store"))
