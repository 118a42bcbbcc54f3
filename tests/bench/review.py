"""A card review over HTTP beside a no-op route of the same server, in turns: many learners, and years of study."""

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

from tests.bench.long_log import write_long_log
from tests.bench.review_app import CARDS
from tests.support.product import environment, free_port

LEARNERS = (1, 8, 32)
REVIEWS = 400  # of each number of learners, shared among them
TURNS = 8
RATIO_TARGET, LONG_TARGET = 4.0, 1.2
LONG_REVIEWS, LONG_CARDS = 1_000_000, 20_000
LONG_PAIRS = 300
WARM_UP = 6
EFFORT = 3  # keeps a card in its first steps, so that there is always a next one
ZONE = "Europe/Berlin"

_SHOWN = re.compile(rb'data-card="(\w+)".*?data-version="(\d+)"')


def measure(data: Path) -> dict[str, Any]:
    """p50 and p95 of the review POST (answer stored, next card rendered) over those of GET /healthz."""
    empty = _prepared(data / "empty")
    with _serving(empty, 0) as port:
        crowds = {count: _crowd(port, count) for count in LEARNERS}
    long = _long(data)
    ratios = {count: found["p50_ratio"] for count, found in crowds.items()}
    return {
        "crowds": crowds,
        "long_log": long,
        "targets": {"p50_ratio": RATIO_TARGET, "long_log": LONG_TARGET},
        "ratio": ratios[1],
        "lines": [
            *(
                f"{count} {'learner' if count == 1 else 'learners'}: p50 {found['p50_ratio']:.2f} × no-op "
                f"(target ≤ {RATIO_TARGET:g} ×), p95 {found['p95_ratio']:.2f} × its p95; "
                f"review {1e3 * found['review_p50_seconds']:.2f} ms, no-op {1e3 * found['noop_p50_seconds']:.2f} ms"
                for count, found in crowds.items()
            ),
            f"{LONG_REVIEWS:,} reviews of {LONG_CARDS:,} cards: {long['ratio']:.2f} × the empty database "
            f"(target ≤ {LONG_TARGET:g} ×), {1e3 * long['long_p50_seconds']:.2f} ms beside "
            f"{1e3 * long['empty_p50_seconds']:.2f} ms in turns; "
            f"the first page of a day, which looks through all cards, {1e3 * long['first_seconds']:.0f} ms",
        ],
    }


def _crowd(port: int, count: int) -> dict[str, float]:
    """`count` learners at once: all ask for nothing, then all review, and again."""
    sessions = [_Learner(port, learner) for learner in range(count, 2 * count)]
    for session in sessions:
        session.open()
    noop: list[float] = []
    review: list[float] = []
    each = max(2, REVIEWS // count // TURNS)
    for turn in range(TURNS + 1):
        for taken, work in ((noop, _Learner.nothing), (review, _Learner.review)):
            found = _together(sessions, work, each)
            taken.extend(found if turn else [])  # the first turn warms up
    nothing, reviewed = _percentiles(noop), _percentiles(review)
    return {
        "noop_p50_seconds": nothing[0],
        "noop_p95_seconds": nothing[1],
        "review_p50_seconds": reviewed[0],
        "review_p95_seconds": reviewed[1],
        "p50_ratio": reviewed[0] / nothing[0],
        "p95_ratio": reviewed[1] / nothing[1],
    }


def _long(data: Path) -> dict[str, float]:
    """The same review in a database with years in it and in an empty one, in turns."""
    folder = _prepared(data / "long")
    card_ids = [f"B{index + 1}" for index in range(LONG_CARDS - 200)]
    write_long_log(folder / "rankzero.sqlite3", card_ids, LONG_REVIEWS, datetime.now(UTC), ZONE)
    with _serving(folder, LONG_CARDS) as long_port, _serving(_prepared(data / "fresh"), 0) as empty_port:
        years, fresh = _Learner(long_port, 1), _Learner(empty_port, 1)
        first = years.open()
        fresh.open()
        pairs = [(years.review(), fresh.review()) for _ in range(LONG_PAIRS + WARM_UP)][WARM_UP:]
    long, empty = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"long_p50_seconds": long, "empty_p50_seconds": empty, "ratio": long / empty, "first_seconds": first}


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

    def nothing(self) -> float:
        began = time.perf_counter()
        self.connection.request("GET", "/healthz")
        self.connection.getresponse().read()
        return time.perf_counter() - began

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
def _serving(folder: Path, cards: int) -> Iterator[int]:
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
        yield port
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    import json
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        print(json.dumps(measure(Path(temporary)), indent=2))  # noqa: T201
