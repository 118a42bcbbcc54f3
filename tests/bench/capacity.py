"""How far an install goes: waiting on paper, in a simulation, and on real workers at a small scale.

On paper runs arrive at random and take exponentially long (Erlang's formula for c servers); the simulation plays the
same, and durations that vary more. At the small scale the real web server, PostgreSQL, Redis and four workers carry out
short runs that arrive at random, and their waits are held against a simulation of the same arrivals and durations.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import text

from app.core.db import open_database
from app.operate import processes
from tests.bench.page_load import ROOMS, Loads, Most, flat_out, loading
from tests.support.postgres import running_postgres
from tests.support.product import Product, environment, free_port, running_product

LEARNERS, RUNS_A_DAY, NODES = 100_000, 2_000, 64
RUN_SECONDS = 600.0
PEAK_HOUR = 1 / 6  # of a day's runs
LOADS = (0.5, 0.7, 0.8, 0.9, 0.95)
WORKERS, ARRIVALS, LOAD = 4, 40, 0.7
SMALL: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 3, "sequence": 32}, "device": "cpu"}
YEAR_DAYS = 365
ON_A_DAY, PAGES_EACH = 0.1, 60  # of the learners, and how many pages one loads
PAGES_A_SECOND, FLAT_OUT_SECONDS = 5.0, 15.0  # while runs are carried out, and with nothing else


def measure(data: Path) -> dict[str, Any]:
    """Waits by load for 64 nodes, the peak hour, what a year leaves in the database, and the check on real workers."""
    lines = [
        f"{NODES} nodes, runs of {RUN_SECONDS / 60:g} min on one node each; mean wait on paper, simulated, and where"
    ]
    lines += ["durations vary three times as much:"]
    for load in LOADS:
        rate = load * NODES / RUN_SECONDS
        paper = erlang_wait_seconds(NODES, rate, RUN_SECONDS)
        played = simulated_wait_seconds(NODES, rate, lambda draw: draw.expovariate(1 / RUN_SECONDS))
        varied = simulated_wait_seconds(NODES, rate, _varied)
        lines.append(f"  load {load:4.0%}: {paper:7.1f} s  {played:7.1f} s  {varied:7.1f} s")
    peak = RUNS_A_DAY * PEAK_HOUR / 3600
    wait = erlang_wait_seconds(NODES, peak, RUN_SECONDS)
    lines.append(
        f"{RUNS_A_DAY:,} runs a day, a sixth of them in one hour: load {peak * RUN_SECONDS / NODES:.0%}, {wait:.0f} s"
    )
    found = _on_real_workers(data)
    return {"lines": [*lines, *found.pop("lines")], "peak_wait_seconds": wait, **found}


def erlang_wait_seconds(servers: int, rate: float, service_seconds: float) -> float:
    """The mean wait of M/M/c (Erlang C). Source: Erlang 1917; any textbook of queueing."""
    offered = rate * service_seconds
    assert offered < servers, "more comes than can be done"
    blocked = 1.0  # Erlang B, by its recursion
    for each in range(1, servers + 1):
        blocked = offered * blocked / (each + offered * blocked)
    waits = blocked / (1 - offered / servers * (1 - blocked))
    return waits * service_seconds / (servers - offered)


def simulated_wait_seconds(
    servers: int, rate: float, duration: Callable[[random.Random], float], runs: int = 200_000
) -> float:
    draw, now, arrivals, durations = random.Random(1), 0.0, [], []
    for _ in range(runs):
        now += draw.expovariate(rate)
        arrivals.append(now)
        durations.append(duration(draw))
    waits = waits_of(servers, arrivals, durations)
    return statistics.mean(waits[runs // 10 :])  # behind the beginning, when nobody waits


def waits_of(servers: int, arrivals: Sequence[float], durations: Sequence[float]) -> list[float]:
    """Of runs that are taken in their order, each by the server that is free first."""
    free, waits = [0.0] * servers, []
    for arrived, took in zip(arrivals, durations, strict=True):
        began = max(arrived, heapq.heappop(free))
        waits.append(began - arrived)
        heapq.heappush(free, began + took)
    return waits


def _varied(draw: random.Random) -> float:
    """Log-normal, of the same mean and three times the deviation."""
    variance = math.log(1 + 9)
    return draw.lognormvariate(math.log(RUN_SECONDS) - variance / 2, math.sqrt(variance))


def _on_real_workers(data: Path) -> dict[str, Any]:
    with (
        running_postgres() as url,
        running_product(data / "var", warm=True, RANKZERO_DATABASE_URL=url) as product,
    ):
        more = _more_workers(product, url)
        try:
            took = _seconds_of_one(product)
            pages = [*ROOMS, f"/lab/runs/{_start(product)}"]
            for page in pages:  # once each, for whatever is done once
                Loads().load(product.url, page)
            began = time.monotonic()
            with loading(product, pages, PAGES_A_SECOND) as loads:
                ids = _submit(product, took)
                runs = [_ended(product, each) for each in ids]
            seconds = time.monotonic() - began
            most = _flat_out(product, url, pages)
        finally:
            for worker in more:
                worker.terminate()
            for worker in more:
                worker.wait(60)
        found = _held_against(runs, seconds, url)
        return {**found, **_of_pages(loads, most), "lines": [*found["lines"], *_of_pages(loads, most)["lines"]]}


def _flat_out(product: Product, url: str, pages: Sequence[str]) -> list[Most]:
    """What one web server does at most, and two: a second one beside it, with the same database and data folder."""
    first = {product.url: next(each for each in product.children() if each.cmdline()[1:4] == processes.web()[1:])}
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
    more = psutil.Popen(command, env=_own(product, url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        second = f"http://127.0.0.1:{port}"
        while not _is_open(second):
            time.sleep(0.2)
        for page in pages:
            Loads().load(second, page)
        return [flat_out(each, pages, FLAT_OUT_SECONDS) for each in (first, {**first, second: more})]
    finally:
        more.terminate()
        more.wait(60)


def _is_open(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _of_pages(loads: Loads, most: Sequence[Most]) -> dict[str, Any]:
    peak = LEARNERS * ON_A_DAY * PAGES_EACH * PEAK_HOUR / 3600
    page, slowest = loads.slowest()
    median, late = loads.quantile(0.5) * 1e3, loads.quantile(0.95) * 1e3
    return {
        "lines": [
            f"{len(loads.seconds)} pages beside them, {PAGES_A_SECOND:g} a second: {median:.0f} ms in the median, "
            f"{late:.0f} ms for one in twenty; slowest {page}, {slowest * 1e3:.0f} ms",
            *(
                f"{count} web {'process serves' if count == 1 else 'processes serve'} {each.pages_a_second:.1f} pages "
                f"a second at most, for {each.processor_seconds_a_page * 1e3:.1f} ms of a processor each"
                for count, each in enumerate(most, 1)
            ),
            f"{LEARNERS:,} learners, {ON_A_DAY:.0%} of them on a day with {PAGES_EACH} pages each, load {peak:.0f} a "
            "second in the hour when most do",
        ],
        "page_seconds": loads.quantile(0.5),
        "page_seconds_one_in_twenty": loads.quantile(0.95),
        "pages_a_second": most[0].pages_a_second,
        "pages_a_second_of_two_processes": most[1].pages_a_second,
        "processor_seconds_a_page": most[0].processor_seconds_a_page,
        "processor_seconds_a_page_of_two_processes": most[1].processor_seconds_a_page,
        "peak_pages_a_second": peak,
    }


def _own(product: Product, url: str) -> dict[str, str]:
    """The environment of what is started beside the product."""
    return environment(
        product.data, RANKZERO_DATABASE_URL=url, RANKZERO_REDIS_URL=f"unix://{product.data}/redis/redis.sock"
    )


def _more_workers(product: Product, url: str) -> list[subprocess.Popen[bytes]]:
    own = _own(product, url)
    command = [sys.executable, "-m", "worker", "--devices", "cpu"]
    started = [
        subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(WORKERS - 1)
    ]
    while sum(each["kind"] == "device" for each in product.get_json("/readyz")["workers"]) < WORKERS:
        time.sleep(0.2)
    return started


def _seconds_of_one(product: Product) -> float:
    """What a run takes while as many are under way as there are workers, all of them warm."""
    for _ in range(2):
        ids = [_start(product) for _ in range(WORKERS)]
        runs = [_ended(product, each) for each in ids]
    return statistics.mean(_duration(run) for run in runs)


def _submit(product: Product, took: float) -> list[int]:
    draw, ids = random.Random(2), []
    for _ in range(ARRIVALS):
        time.sleep(draw.expovariate(LOAD * WORKERS / took))
        ids.append(_start(product))
    return ids


def _start(product: Product) -> int:
    status, reply = product.post_json("/api/v1/lab/runs", {"spec": SMALL})
    assert status == 201, reply
    run_id: int = reply["id"]
    return run_id


def _ended(product: Product, run_id: int) -> dict[str, Any]:
    while True:
        run: dict[str, Any] = product.get_json(f"/api/v1/lab/runs/{run_id}")
        if run["ended_at"]:
            assert run["status"] == "finished", run
            return run
        time.sleep(0.1)


def _at(run: dict[str, Any], name: str) -> float:
    return datetime.fromisoformat(run[name]).timestamp()


def _duration(run: dict[str, Any]) -> float:
    return _at(run, "ended_at") - _at(run, "started_at")


def _held_against(runs: list[dict[str, Any]], seconds: float, url: str) -> dict[str, Any]:
    waited = statistics.mean(_at(run, "started_at") - _at(run, "created_at") for run in runs)
    arrivals, durations = [_at(run, "created_at") for run in runs], [_duration(run) for run in runs]
    expected = statistics.mean(waits_of(WORKERS, arrivals, durations))
    database = open_database(url)
    with database.engine.connect() as connection:
        chunks, size = connection.execute(
            text("SELECT count(*), sum(pg_column_size(events)) FROM run_chunk WHERE run_id > :first"),
            {"first": runs[0]["id"] - 1},
        ).one()
    database.engine.dispose()
    a_run, rows = float(size) / len(runs), chunks / len(runs)
    a_year = RUNS_A_DAY * YEAR_DAYS
    return {
        "lines": [
            f"{ARRIVALS} short runs on {WORKERS} real workers in {seconds:.0f} s: waited {waited:.2f} s on average, "
            f"{expected:.2f} s by the simulation of the same arrivals",
            f"a run left {rows:.0f} rows and {a_run / 1e3:.0f} kB of events; {RUNS_A_DAY:,} such a day are "
            f"{rows * a_year / 1e6:.1f}M rows and {a_run * a_year / 1e9:.0f} GB a year",
        ],
        "waited_seconds": waited,
        "simulated_seconds": expected,
        "event_bytes_of_a_run": a_run,
    }
