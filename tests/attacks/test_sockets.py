"""Sockets: who listens while ranks run and while the product is up, and what comes of writing to them."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labs.command import environment, local_torchrun, plain_command
from labs.spec import PROGRAMS, SUPPORT, parse_run_spec
from labs.warm import WarmHost, WarmRun
from tests.labs.ranks import parse_events
from tests.labs.test_programs import SMALL_OPTIONS
from tests.support.sockets import Listener, Watch, listeners, tree

pytestmark = pytest.mark.slow

RANKS = 4
MODEL = {"hidden": 32, "heads": 8, "vocab": 256, "layers": 4}
TRAINING = {"sequence": 32, "micro_batch": 2, "micro_batches": 4, "steps": 1}
FAMILIES = sorted({row.family for row in SUPPORT})
TIME_LIMIT_SECONDS = 120


def spec_of_family(family: str) -> dict[str, Any]:
    """A row of the family on four ranks, or on as many as it has, beside data parallelism."""
    for row in (row for row in SUPPORT if row.family == family):
        for layout in row.layouts:
            data = {
                "model": {**MODEL, **row.model},
                "training": {**TRAINING, **row.training},
                "parallel": dict(layout),
                "device": "cpu",
                "compression": dict(row.compression) or {"kind": "none"},
            }
            if parse_run_spec(data).parallel.world_size == RANKS:
                return data
    raise LookupError(f"no row of {family} has a layout for {RANKS} ranks")


def spec_of_program(name: str) -> dict[str, Any]:
    axis = PROGRAMS[name].axis
    options = SMALL_OPTIONS[name] | ({"micro_batches": [4]} if name == "schedule" else {})
    return {"program": name, "options": options, "parallel": {axis: RANKS} if axis else {}, "device": "cpu"}


EVERYTHING = {
    **{family: spec_of_family(family) for family in FAMILIES},
    **{name: spec_of_program(name) for name in PROGRAMS},
}


@dataclass
class Watched:
    """What ranks did, and who listened meanwhile."""

    done: list[str]
    watch: Watch
    said: str


@pytest.fixture(scope="module")
def host() -> Iterator[WarmHost]:
    host = WarmHost()
    host.warm_up()
    yield host
    host.close()


@pytest.fixture(scope="module", params=["cold", "warm"])
def everything(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, host: WarmHost) -> Watched:
    folder = tmp_path_factory.mktemp("everything")
    (folder / "specs.json").write_text(json.dumps(EVERYTHING))
    script = Path(__file__).with_name("programs") / "everything.py"
    command = [*local_torchrun(RANKS), str(script), "--specs", str(folder / "specs.json"), "--events", str(folder)]
    output = folder / "output"
    if request.param == "warm":
        process: subprocess.Popen[bytes] | WarmRun = host.start(command, folder, environment(), output)
        watched = host.pid
    else:
        with output.open("wb") as file:
            process = subprocess.Popen(command, env=environment(), stdout=file, stderr=subprocess.STDOUT)
        watched = process.pid
    assert watched is not None
    with Watch(watched) as watch:
        code = process.wait(TIME_LIMIT_SECONDS)
    said = output.read_text()
    assert code == 0, said
    events = parse_events((folder / "events-0.jsonl").read_text())
    return Watched([event["line"] for event in events if event["kind"] == "log"], watch, said)


@pytest.mark.parametrize("name", EVERYTHING)
def test_ranks_listen_on_loopback_only(everything: Watched, name: str) -> None:
    assert name in everything.done
    assert everything.watch.looks > 10
    assert everything.watch.seen, "gloo's pairs listen somewhere"
    assert everything.watch.outside == []


@pytest.fixture(params=["by the worker", "by the worker's warm host", "by hand"])
def long_run(request: pytest.FixtureRequest, tmp_path: Path, host: WarmHost) -> Iterator[tuple[int, Path]]:
    """A run that is under way, as the product starts it and as its page says to start it by hand: the pid of whoever
    is above its processes, and where its events are."""
    spec = {"model": "gpt-mini", "training": {"steps": 500}, "parallel": {"data": 2}, "device": "cpu"}
    events = tmp_path / "run" / "events"
    command: list[str] = ["sh", "-c", f"exec {plain_command(parse_run_spec(spec))} --events {events}"]
    if request.param != "by hand":
        from worker.launcher import launch

        is_warm = request.param == "by the worker's warm host"
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
        process.wait(20)


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
    for each in found:
        assert not is_store(each.address, each.port)
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
