"""A card review over HTTP: the CPU time it costs the server, with years of study too, and how long a crowd waits."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil

from tests.bench.long_log import write_long_log
from tests.bench.review_app import CARDS
from tests.support.product import environment, free_port

LEARNERS = (1, 8, 32)
REVIEWS = 400  # of each number of learners, shared among them
CPU_TARGET_SECONDS = 0.025  # of the server, from the POST to the next card, one learner
LONG_TARGET = 2.0  # as much again with a million reviews
CROWD_TARGET_SECONDS = 0.250  # p95 of the largest crowd
LONG_REVIEWS, LONG_CARDS = 1_000_000, 20_000
LONG_PAIRS = 300
WARM_UP = 6
EFFORT = 3  # keeps a card in its first steps, so that there is always a next one
ZONE = "Europe/Berlin"

_SHOWN = re.compile(rb'data-card="(\w+)".*?data-version="(\d+)"')


def measure(data: Path) -> dict[str, Any]:
    """Server CPU of a review (POST to next card) at one learner and with a long log; p50 and p95 of crowds."""
    empty = _prepared(data / "empty")
    with _serving(empty, 0) as server:
        crowds = {count: _crowd(server, count) for count in LEARNERS}
    long = _long(data)
    waits = crowds[max(LEARNERS)]["review_p95_seconds"]
    return {
        "crowds": crowds,
        "long_log": long,
        "targets": {"cpu_seconds": CPU_TARGET_SECONDS, "long_log": LONG_TARGET, "crowd_p95": CROWD_TARGET_SECONDS},
        "lines": [
            f"one learner: {1e3 * long['empty_cpu_seconds']:.1f} ms of server CPU a review "
            f"(target ≤ {1e3 * CPU_TARGET_SECONDS:g} ms)",
            f"{LONG_REVIEWS:,} reviews of {LONG_CARDS:,} cards: {1e3 * long['long_cpu_seconds']:.1f} ms, "
            f"{long['ratio']:.2f} × (target ≤ {LONG_TARGET:g} ×); first page {1e3 * long['first_seconds']:.0f} ms",
            f"{max(LEARNERS)} learners at once: p95 {1e3 * waits:.0f} ms (target ≤ {1e3 * CROWD_TARGET_SECONDS:g} ms)",
            *(
                f"{count} {'learner' if count == 1 else 'learners'}: p50 {1e3 * found['review_p50_seconds']:.1f} ms, "
                f"p95 {1e3 * found['review_p95_seconds']:.1f} ms, {1e3 * found['cpu_seconds']:.1f} ms of server CPU "
                f"each; it had {found['cores']:.2f} of a core"
                for count, found in crowds.items()
            ),
        ],
    }


def _crowd(server: _Server, count: int) -> dict[str, float]:
    """How long `count` learners wait who all review at once, and what that is made of.

    The server's CPU for each review says whether more learners cost more, by waiting for each other's locks; the share
    of a core it had, whether the machine was busy with something else. One that it had to itself is near 1.
    """
    sessions = [_Learner(server.port, learner) for learner in range(count, 2 * count)]
    for session in sessions:
        session.open()
    each = max(2, REVIEWS // count)
    _together(sessions, _Learner.review, WARM_UP)
    spent, began = server.cpu_seconds(), time.perf_counter()
    times = _together(sessions, _Learner.review, each)
    spent, took = server.cpu_seconds() - spent, time.perf_counter() - began
    p50, p95 = _percentiles(times)
    return {
        "review_p50_seconds": p50,
        "review_p95_seconds": p95,
        "cpu_seconds": spent / len(times),
        "cores": spent / took,
    }


def _long(data: Path) -> dict[str, float]:
    """The same review in a database with years in it and in an empty one, in turns."""
    folder = _prepared(data / "long")
    card_ids = [f"B{index + 1}" for index in range(LONG_CARDS - 200)]
    write_long_log(folder / "rankzero.sqlite3", card_ids, LONG_REVIEWS, datetime.now(UTC), ZONE)
    with _serving(folder, LONG_CARDS) as busy, _serving(_prepared(data / "fresh"), 0) as idle:
        years, fresh = _Learner(busy.port, 1), _Learner(idle.port, 1)
        first = years.open()
        fresh.open()
        for learner in (years, fresh):
            for _ in range(WARM_UP):
                learner.review()
        spent = (busy.cpu_seconds(), idle.cpu_seconds())
        for _ in range(LONG_PAIRS):
            years.review()
            fresh.review()
        long, empty = (
            (now - before) / LONG_PAIRS
            for now, before in zip((busy.cpu_seconds(), idle.cpu_seconds()), spent, strict=True)
        )
    return {"long_cpu_seconds": long, "empty_cpu_seconds": empty, "ratio": long / empty, "first_seconds": first}


@dataclass(frozen=True)
class _Server:
    port: int
    process: subprocess.Popen[bytes]

    def cpu_seconds(self) -> float:
        """User and system time of the server's process so far: what others do on the machine does not count."""
        spent = psutil.Process(self.process.pid).cpu_times()
        return spent.user + spent.system


@dataclass
class _Learner:
    """A browser with the study page open."""

    port: int
    learner: int
    card: bytes = b""
    version: bytes = b""

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def open(self) -> float:
        return self._timed("GET", "/study?more=500", None)

    def review(self) -> float:
        form = {"card_id": self.card.decode(), "version": self.version.decode(), "level": EFFORT, "more": 500}
        return self._timed("POST", "/study/reviews", urlencode(form))

    def _timed(self, method: str, path: str, body: str | None) -> float:
        headers = {"HX-Request": "true", "X-Learner": str(self.learner)}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        began = time.perf_counter()
        self.connection.request(method, path, body, headers)
        reply = self.connection.getresponse()
        text = reply.read()
        seconds = time.perf_counter() - began
        found = _SHOWN.search(text)
        assert reply.status == 200, text[:300]
        assert found, "the benchmark ran out of cards"
        assert b"Nothing was counted" not in text
        self.card, self.version = found[1], found[2]
        return seconds


def _together(sessions: list[_Learner], work: Callable[[_Learner], float], each: int) -> list[float]:
    """`work` of every session, `each` times, all at once."""
    taken: list[list[float]] = [[] for _ in sessions]
    barrier = threading.Barrier(len(sessions))

    def one(index: int) -> None:
        barrier.wait()
        taken[index] = [work(sessions[index]) for _ in range(each)]

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [seconds for times in taken for seconds in times]


def _percentiles(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=20)[18]


def _prepared(folder: Path) -> Path:
    """A data folder with a database and its learners."""
    command = [sys.executable, "-m", "app.cli", "migrate"]
    subprocess.run(command, env=environment(folder), check=True, stdout=subprocess.DEVNULL)
    with sqlite3.connect(folder / "rankzero.sqlite3") as database:
        rows = [(index, f"Learner {index}") for index in range(2, 2 * max(LEARNERS))]
        database.executemany("INSERT INTO learner (id, name, created_at) VALUES (?, ?, '2026-01-01 00:00:00')", rows)
    return folder


@contextlib.contextmanager
def _serving(folder: Path, cards: int) -> Iterator[_Server]:
    """The web server of the benchmark on a port of its own."""
    port = free_port()
    variables = {**environment(folder, RANKZERO_TIME_ZONE=ZONE), CARDS: str(cards), "PYTHONPATH": os.getcwd()}
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "uvicorn",
            "tests.bench.review_app:make",
            "--factory",
            "--port",
            str(port),
            "--log-level",
            "warning",
            "--no-access-log",
            "--no-server-header",
            "--timeout-keep-alive",
            "120",  # a crowd on a busy machine is idle for longer than the five seconds of the default
        ],
        env=variables,
    )
    try:
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                break
            if server.poll() is not None:
                raise RuntimeError("the server of the benchmark did not start")
            time.sleep(0.05)
        yield _Server(port, server)
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    import json
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        print(json.dumps(measure(Path(temporary)), indent=2))  # noqa: T201
