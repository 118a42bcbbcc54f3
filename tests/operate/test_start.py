"""`make start` as an operator meets it: up, down, crashed, taken, twice."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.bench.soak import run_soak
from tests.support.product import (
    ENDS_SECONDS,
    READY_SECONDS,
    Product,
    SharedProduct,
    environment,
    free_port,
    launch,
    running_product,
    wait_until_ready,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _gone(processes: list[psutil.Process], seconds: float = ENDS_SECONDS) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def _named(product: Product, part: str) -> psutil.Process:
    """The process that does the work of one part (not its leash)."""
    for process in product.children():
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            if part in line and "labs/leash.py" not in line:
                return process
    raise AssertionError(f"no {part} among {product.children()}")


def test_one_command_brings_everything_up_and_outlives_its_terminal(shared_product: SharedProduct) -> None:
    """One product for what disturbs none: each start of its processes takes many seconds."""
    product = shared_product.up()
    ready = product.get_json("/readyz")
    assert ready["redis"] == "ok"
    assert ready["control"] is True
    assert [worker["devices"][0]["kind"] for worker in ready["workers"] if worker["kind"] == "device"] == ["cpu"]
    assert len(product.children()) >= 10, "five parts, each on its leash"
    _nothing_listens_but_the_page_on_loopback(product)
    _a_second_start_says_what_is_already_running(product)
    product.process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert product.get_json("/healthz") == {"status": "ok"}


def _nothing_listens_but_the_page_on_loopback(product: Product) -> None:
    listening = [
        connection.laddr
        for process in product.children()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    port = int(product.url.rsplit(":", 1)[1])
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", port)]
    assert (product.data / "redis").stat().st_mode & 0o077 == 0, "the socket's folder is private"


def _a_second_start_says_what_is_already_running(product: Product) -> None:
    again = launch(product.data, int(product.url.rsplit(":", 1)[1]))
    said = again.ended()
    assert again.process.returncode == 0
    assert f"already running at {product.url} (process {product.process.pid}" in said
    for part in ("redis", "web", "worker", "control", "beat"):
        assert part in said
    assert product.get_json("/healthz") == {"status": "ok"}
    elsewhere = launch(product.data, free_port())
    assert "already running at" in elsewhere.ended()
    assert elsewhere.process.returncode == 1, "it does not run where it was asked to"


def test_a_taken_port_is_said_with_a_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        product = launch(tmp_path, port)
        said = product.ended()
    assert product.process.returncode == 2
    assert f"Port {port} on 127.0.0.1 cannot be used" in said
    assert f"make start PORT={port + 1}" in said
    assert "Traceback" not in said


def test_gpus_that_are_not_there_are_said_before_anything_is_started(tmp_path: Path) -> None:
    product = launch(tmp_path, free_port(), RANKZERO_DEVICES="cuda:97")
    said = product.ended()
    assert product.process.returncode == 2
    assert "RANKZERO_DEVICES: --devices cuda:97: there is no GPU 97 here" in said
    assert "RankZero is starting" not in said
    assert not (tmp_path / "rankzero.sqlite3").exists()
    assert _no_traceback(said)


def _has(product: Product, part: str) -> bool:
    with contextlib.suppress(AssertionError):
        return _named(product, part).is_running()
    return False


def test_short_runs_under_random_kills_end_by_name_and_leave_nothing(shared_product: SharedProduct) -> None:
    """The soak of `make bench soak`, short, and over the product that the next test ends: of that nothing is left."""
    product = shared_product.up()
    soak = run_soak(product, 6, runs_between=(1, 1), most_waiting=1)
    assert soak.outcomes.total() == 6
    assert soak.kills.total() >= 2
    assert soak.left_over == []
    wait_until_ready(product)


def test_when_start_itself_is_killed_nothing_is_left_and_it_can_be_started_again(
    shared_product: SharedProduct, tmp_path: Path
) -> None:
    """The second start is one that differs in what else may: where it listens, and cards that somebody is writing. It
    ends as it should, with Ctrl-C."""
    product = shared_product.up()
    started = product.children()
    os.kill(product.process.pid, signal.SIGKILL)
    product.process.wait()
    assert _gone(started)
    cards = _one_broken_card(tmp_path / "cards")
    extra = {"RANKZERO_CARDS": str(cards), "RANKZERO_ENVIRONMENT": "development", "RANKZERO_GIVE_WAY": "1"}
    bind = "::1" if _has_ipv6() else "127.0.0.1"
    host = f"[{bind}]" if ":" in bind else bind
    with running_product(product.data, warm=True, host=host, RANKZERO_BIND=bind, **extra) as again:
        assert again.get_json("/healthz") == {"status": "ok"}
        assert f"RankZero is at http://{host}:" in again.said()
        assert again.get_json("/api/v1/problems") == [], "development serves what is right"
        _parts_that_crash_come_back(again)
        own = os.getpriority(os.PRIO_PROCESS, 0)
        less = max(1, own)
        gives_way = {"app.cli serve": less, "--control": less, "--beat": less, "worker --devices": own}
        assert {part: _named(again, part).nice() for part in gives_way} == gives_way
        present = _workers_written_down(again)
        started = again.children()
        said = again.stop()
        assert said.count("starting it again") >= 3
        assert f"RankZero is at {again.url}" in said
        assert again.process.returncode == 0
        assert _gone(started)
    assert not (product.data / "running.json").exists()
    stopped = {str(each.pid) for each in started}
    assert {name for name in present if name.rpartition("-")[2] in stopped}
    assert not {name for name in _workers_written_down(again) if name.rpartition("-")[2] in stopped}


def _workers_written_down(product: Product) -> set[str]:
    """By name, which ends with the process; those that were killed stay for a while."""
    with contextlib.closing(sqlite3.connect(product.data / "rankzero.sqlite3")) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM worker_presence")}


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _one_broken_card(cards: Path) -> Path:
    (cards / "problems").mkdir(parents=True)
    (cards / "concepts.yaml").write_text("concepts: []\n")
    (cards / "problems" / "P01.yaml").write_text("id: P01\nslug: ok\ncolour: red\n")
    return cards


def _parts_that_crash_come_back(product: Product) -> None:
    redis = "redis-server" if _has(product, "redis-server") else "valkey"
    for part in ("worker --devices", "app.cli serve", redis):
        victim = _named(product, part)
        victim.kill()
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with contextlib.suppress(OSError, AssertionError):
                if product.get_json("/readyz")["status"] == "ready" and _named(product, part).pid != victim.pid:
                    break
            assert time.monotonic() < deadline, part
            time.sleep(0.2)


def test_a_broken_content_file_stops_a_production_start_with_file_line_and_field(tmp_path: Path) -> None:
    cards = _one_broken_card(tmp_path / "cards")
    product = launch(tmp_path / "var", free_port(), RANKZERO_CARDS=str(cards))
    said = product.ended()
    assert product.process.returncode == 2
    assert "cards/problems/P01.yaml:3 colour: Extra inputs are not permitted" in said
    assert _no_traceback(said)


def _no_traceback(said: str) -> bool:
    return "Traceback" not in said


def test_a_data_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    product = launch(blocked, free_port())
    said = product.ended()
    assert product.process.returncode == 2
    assert "cannot be written" in said
    assert _no_traceback(said)


def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "app.cli", "migrate"], env=environment(tmp_path), check=True, timeout=ENDS_SECONDS
    )
    with sqlite3.connect(tmp_path / "rankzero.sqlite3") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '2099_01_01_01'")
    product = launch(tmp_path, free_port())
    said = product.ended()
    assert product.process.returncode == 2
    assert "2099_01_01_01" in said
    assert _no_traceback(said)


def test_a_worker_without_redis_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "worker"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=ENDS_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert "RANKZERO_REDIS_URL" in done.stderr
