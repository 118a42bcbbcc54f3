"""Short runs, one after the other, while parts of the product are killed at random: each run must end, once, with a
named outcome, its events whole and in order, and nothing may be left over.

What is killed comes from a seed. Everything is asked over HTTP, as a user's program would: a POST that got no answer is
sent again with its Idempotency-Key, so that a doubled run would be found.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil

from tests.support.product import Product, running_product

RUNS = int(os.environ.get("SOAK_RUNS", "200"))
SEED = 7
RUNS_BETWEEN = (1, 6)  # from one kill to the next, once all parts answer again: however slow the machine is
LONGEST_PAUSE_SECONDS = 1.5  # of that moment
MOST_WAITING = 10  # at a time
LONGEST_SECONDS = 180.0  # without any run ending, or any answer: then the soak has failed
ENDED = ("finished", "failed", "cancelled", "expired")

# By what its command line or its name has in it; a warm rank is a fork, which has the host's command line.
VICTIMS: dict[str, Callable[[psutil.Process], bool]] = {
    "worker": lambda each: "worker --devices" in _line(each) and _is_python(each),
    "control": lambda each: "worker --control" in _line(each),
    "beat": lambda each: "worker --beat" in _line(each),
    "web": lambda each: "app.cli serve" in _line(each) or "rankzero serve" in _line(each),
    "redis": lambda each: "redis" in each.name() or "valkey" in each.name(),
    "warm host": lambda each: "labs.host" in _line(each) and not each.name().startswith("rz "),
    "torchrun": lambda each: each.name() == "rz torchrun" or "torch.distributed.run" in _line(each),
    "one rank": lambda each: each.name().startswith("rz rank") or "labs.train" in _line(each),
    "all ranks": lambda each: each.name().startswith("rz rank") or "labs.train" in _line(each),
}


def _line(process: psutil.Process) -> str:
    line = " ".join(process.cmdline())
    return "" if "labs/leash.py" in line else line


def _is_python(process: psutil.Process) -> bool:
    return "python" in process.name()


@dataclass
class Soak:
    """What was done and what came of it."""

    kills: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_seconds: float = 0.0
    ended: int = 0
    next_kill_at: int = 0  # that many runs ended
    left_over: list[str] = field(default_factory=list)


def measure(data: Path) -> dict[str, Any]:
    with running_product(data, warm=True) as product:
        soak = run_soak(product, RUNS)
        started = product.children()
        product.stop()
        _, alive = psutil.wait_procs(started, timeout=LONGEST_SECONDS)
        left_over = [f"process {each.pid}" for each in alive if each.status() != psutil.STATUS_ZOMBIE]
        assert not left_over, left_over
    named = sum(soak.outcomes.values())
    lines = [
        f"{RUNS} runs, {named} named outcomes, {len(soak.left_over)} things left over, {soak.kills.total()} kills",
        *(f"  {count:>4} {outcome}" for outcome, count in soak.outcomes.most_common()),
        "killed: " + ", ".join(f"{name} {count}" for name, count in soak.kills.most_common()),
        f"the longest from submission of a run to its end, waiting included: {soak.slowest_seconds:.0f} s",
    ]
    return {
        "runs": RUNS,
        "outcomes": dict(soak.outcomes),
        "kills": dict(soak.kills),
        "left_over": soak.left_over,
        "slowest_seconds": soak.slowest_seconds,
        "lines": lines,
    }


def run_soak(
    product: Product, runs: int, runs_between: tuple[int, int] = RUNS_BETWEEN, most_waiting: int = MOST_WAITING
) -> Soak:
    """`runs` short runs under random kills, `most_waiting` of them submitted beyond the one at whose end the next kill
    is due: so there are as many kills on a slow machine. Raises AssertionError where a run is lost, doubled, has no
    name or leaves something."""
    draw, done = random.Random(SEED), threading.Event()
    soak = Soak(next_kill_at=draw.randint(*runs_between))
    killer = threading.Thread(target=_kill, args=(product, soak, draw, done, runs_between), daemon=True)
    killer.start()
    try:
        ids = _submit_all(product, runs, soak, most_waiting)
    finally:
        done.set()
        killer.join()
    assert len(set(ids)) == runs, "a run was doubled or lost"
    for identity in ids:
        _note(soak, _ask(lambda identity=identity: product.get_json(f"/api/v1/lab/runs/{identity}")))  # type: ignore[misc]
    soak.left_over += _still_there(product)
    _check_database(product.data / "rankzero.sqlite3", ids)
    assert not soak.left_over, soak.left_over
    return soak


def _submit_all(product: Product, runs: int, soak: Soak, most_waiting: int) -> list[int]:
    """A few at a time, until all have ended."""
    ids: list[int] = []
    open_ones: set[int] = set()
    last_end = time.monotonic()
    while len(ids) < runs or open_ones:
        while len(ids) < min(runs, soak.next_kill_at + most_waiting) and len(open_ones) < MOST_WAITING:
            number = len(ids)
            reply = _ask(lambda number=number: _post(product, number))  # type: ignore[misc]
            ids.append(reply["id"])
            open_ones.add(reply["id"])
        for identity in sorted(open_ones):
            run = _ask(lambda identity=identity: product.get_json(f"/api/v1/lab/runs/{identity}"))  # type: ignore[misc]
            if run["status"] in ENDED:
                open_ones.discard(identity)
                last_end = time.monotonic()
                soak.ended += 1
            else:
                break  # they are taken in order
        assert time.monotonic() - last_end < LONGEST_SECONDS, f"nothing has ended for {LONGEST_SECONDS:g} s"
        time.sleep(0.2)
    return ids


def _post(product: Product, number: int) -> dict[str, Any]:
    ranks = 1 + number % 2
    spec = {"model": "gpt-mini", "training": {"steps": 5, "sequence": 32}, "parallel": {"data": ranks}, "device": "cpu"}
    status, reply = product.post_json(
        "/api/v1/lab/runs", {"spec": spec}, **{"Idempotency-Key": f"soak-{SEED}-{number}"}
    )
    assert status == 201, reply
    found: dict[str, Any] = reply
    return found


def _ask(what: Callable[[], Any]) -> Any:
    """Again and again while nobody answers: the web server may just have been killed."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        try:
            return what()
        except (urllib.error.URLError, OSError, HTTPException):
            assert time.monotonic() < deadline, "the web server did not come back"
            time.sleep(0.1)


def _kill(product: Product, soak: Soak, draw: random.Random, done: threading.Event, between: tuple[int, int]) -> None:
    """Each kill is drawn from the seed alone: an order of all victims, of which the first that is there is killed."""
    pauses = random.Random(SEED)  # how many there are depends on the machine
    while not done.wait(pauses.uniform(0, LONGEST_PAUSE_SECONDS)):
        if soak.ended < soak.next_kill_at or not _is_ready(product):
            continue
        there = {name: list(_matching(product, is_one)) for name, is_one in VICTIMS.items()}
        if not any(there.values()):
            continue
        name = next(name for name in draw.sample(sorted(VICTIMS), len(VICTIMS)) if there[name])
        for victim in there[name] if name == "all ranks" else there[name][:1]:
            with contextlib.suppress(psutil.Error):
                victim.send_signal(signal.SIGKILL)
        soak.kills[name] += 1
        soak.next_kill_at = soak.ended + draw.randint(*between)


def _is_ready(product: Product) -> bool:
    try:
        return bool(product.get_json("/readyz")["status"] == "ready")
    except (urllib.error.URLError, OSError, HTTPException):
        return False


def _matching(product: Product, is_one: Callable[[psutil.Process], bool]) -> Iterator[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        for process in product.children():
            with contextlib.suppress(psutil.Error):
                if is_one(process):
                    yield process


def _note(soak: Soak, run: dict[str, Any]) -> None:
    assert run["status"] in ENDED, run
    cause = "" if run["failure"] is None else run["failure"]["cause"]
    assert run["status"] != "failed" or (cause and run["failure"]["message"]), run
    again = ", on the second start" if run["attempts"] > 1 else ""
    took = datetime.fromisoformat(run["ended_at"]) - datetime.fromisoformat(run["created_at"])
    soak.slowest_seconds = max(soak.slowest_seconds, took.total_seconds())
    soak.outcomes[f"{run['status']}{f': {cause}' if cause else ''}{again}"] += 1


def _still_there(product: Product) -> list[str]:
    """Ranks, or runs that wait, though all have ended."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        ranks = [f"rank {each.pid}" for each in _matching(product, VICTIMS["one rank"])]
        if not ranks or time.monotonic() > deadline:
            return ranks
        time.sleep(0.2)


def _check_database(path: Path, ids: list[int]) -> None:
    """Every run from the first of these on once, its chunks numbered without a gap, its steps in order in a start."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT id, status, chunks FROM run WHERE id >= ?", (min(ids),)).fetchall()
        assert sorted(row[0] for row in rows) == sorted(ids)
        for identity, _, chunks in rows:
            query = "SELECT sequence, events FROM run_chunk WHERE run_id = ? ORDER BY sequence"
            found = connection.execute(query, (identity,)).fetchall()
            assert [sequence for sequence, _ in found] == list(range(1, chunks + 1)), f"run {identity}"
