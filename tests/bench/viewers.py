"""Runs that many look on: how late a step is drawn, what looking on costs the run, and whether anybody misses anything;
and runs one after the other beside the time their ranks took.

A step is written when rank 0's file has it, and drawn when the page in a real browser says it. The other viewers are
connections that read the same stream of the page. What looking on costs is measured by `tests.bench.turns`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench.crowd import Viewer, look_on
from tests.bench.turns import ARRIVED, TURN_STEPS, Blocks, give_way, in_turns
from tests.support.browser import browser_path
from tests.support.product import Product, running_product

VIEWERS, MANY = 100, 1000
PAIRS = 3
LONG_RUNS = 3
IN_A_ROW = 10
DRAWN_SECONDS, COST, ROW_RATIO = 0.6, 0.03, 1.3  # targets
LOOKED_AT: dict[str, Any] = {
    "model": "gpt-small",
    "training": {"steps": 100},  # long enough that looking on is what is measured, not the arrival of a hundred
    "parallel": {"data": 2, "zero": 0},
    "device": "cpu",
}
CROWDED: dict[str, Any] = {**LOOKED_AT, "training": {"steps": 50}}
SHORT: dict[str, Any] = {**LOOKED_AT, "training": {"steps": 5}}
_WATCH = """() => {
  window.drawn = [];
  const part = document.querySelector('[data-part="waits"]');
  const note = () => {
    const found = /Step (\\d+) of/.exec(part.textContent);
    if (found) window.drawn.push([Number(found[1]), Date.now() / 1000]);
  };
  new MutationObserver(note).observe(part, { childList: true, subtree: true, characterData: true });
}"""


def measure(data: Path) -> dict[str, Any]:
    """Draw delay and cost with 100 viewers, 1,000 viewers of one run, ten runs in a row."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))  # inherited by the product
    with running_product(data, warm=True, RANKZERO_GIVE_WAY=give_way()) as product:
        _watched(product, SHORT, 0)  # one first, for whatever is done once
        every = [in_turns(product, LOOKED_AT, VIEWERS) for _ in range(LONG_RUNS)]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path())
            page = browser.new_page()
            delays = sorted(late for _ in range(PAIRS) for late in _drawn(product, page))
            browser.close()
        crowd = _watched(product, CROWDED, MANY)
        row = _in_a_row(product)
    p95 = delays[min(len(delays) - 1, int(0.95 * len(delays)))]
    chunks = list(range(1, crowd.run["chunks"] + 1))
    missed = sum(not (viewer.has_ended and viewer.chunks == chunks) for viewer in crowd.viewers)
    costs = Blocks([share for turns in every for share in turns.costs(0, statistics.mean)])
    costs_later = Blocks([share for turns in every for share in turns.costs(ARRIVED, statistics.median)])
    shares = {name: [share for turns in every for share in turns.added[name]] for name in every[0].added}
    added = {name: 100 * statistics.median(each) for name, each in shares.items()}
    web, clients = Blocks(shares["web"]), added.pop("clients")
    nobody = [each for turns in every for each in turns.alone]
    alone = 100 * statistics.median(sum(each.values()) - each["clients"] for each in nobody)
    missed_in_turns = sum(turns.missed for turns in every)
    said = ", ".join(f"{name} {share:.2f}" for name, share in added.items())
    return {
        "viewers": VIEWERS,
        "give_way": int(give_way()),
        "drawn_seconds": delays,
        "drawn_p95_seconds": p95,
        "cost_of_tokens_per_second": costs.shares,
        "cost_once_they_are_there": costs_later.shares,
        "shares_of_ranks": {"nobody": nobody, "added": shares},
        "crowd": {"viewers": len(crowd.viewers), "missed_something": missed, "missed_in_turns": missed_in_turns},
        "in_a_row": row,
        "targets": {"drawn_p95_seconds": DRAWN_SECONDS, "cost": COST, "in_a_row": ROW_RATIO, "missed_something": 0},
        "lines": [
            f"rank writes → drawn, {VIEWERS} viewers: p95 {p95:.2f} s of {len(delays)} steps "
            f"(target ≤ {DRAWN_SECONDS:g} s)",
            f"{VIEWERS} viewers cost the run {costs} of its tokens/s, their arrival with it (target ≤ {100 * COST:g} "
            f"%: {costs.verdict(COST)}), {costs_later} once they are there, by medians of steps "
            f"({costs_later.verdict(COST)}): {len(costs.shares)} turns of {TURN_STEPS} steps with them, each between "
            f"two without, within {LONG_RUNS} runs, clients at idle priority",
            f"of the ranks' processor time that is, in %: {said}; together {sum(added.values()):.1f} (web {web}), the "
            f"clients {clients:.1f}; the product with nobody looking on {alone:.1f}",
            f"{len(crowd.viewers):,} viewers of one run: {missed} missed something (target 0); of those who came and "
            f"went in turns: {missed_in_turns}",
            f"{IN_A_ROW} runs in a row: {row['ratio']:.2f} × their ranks' own time (target ≤ {ROW_RATIO:g} ×)",
        ],
    }


@dataclass(frozen=True)
class _Watched:
    run: dict[str, Any]
    viewers: list[Viewer]


def _drawn(product: Product, page: Page) -> list[float]:
    """Of each step of a run with its viewers, the browser among them, how late it was drawn."""
    with _written(product) as written:
        run_id = _submit(product, LOOKED_AT)
        page.goto(f"{product.url}/lab/runs/{run_id}")
        page.evaluate(_WATCH)
        _follow(product, run_id, VIEWERS - 1)
        time.sleep(1)
    drawn = page.evaluate("window.drawn")
    late = [
        min((at for shown, at in drawn if shown >= step), default=float("inf")) - at_file
        for step, at_file in written.items()
    ]
    return [each for each in late if each < float("inf")]


@contextmanager
def _written(product: Product) -> Iterator[dict[int, float]]:
    """When each step came to be in rank 0's file, looked at every five milliseconds."""
    found: dict[int, float] = {}
    over = threading.Event()
    before = set(product.data.rglob("events-0.jsonl"))

    def look() -> None:
        path = None
        while not over.is_set():
            path = path or next((each for each in product.data.rglob("events-0.jsonl") if each not in before), None)
            for line in path.read_text().splitlines() if path and path.exists() else ():
                if '"kind":"step"' in line and line.endswith("}"):
                    found.setdefault(json.loads(line)["step"], time.time())
            time.sleep(0.005)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _submit(product: Product, spec: dict[str, Any]) -> int:
    status, run = product.post_json("/api/v1/lab/runs", {"spec": spec})
    assert status == 201, run
    return int(run["id"])


def _watched(product: Product, spec: dict[str, Any], viewers: int) -> _Watched:
    return _follow(product, _submit(product, spec), viewers)


def _follow(product: Product, run_id: int, viewers: int) -> _Watched:
    """The run at its end, and what its viewers got."""
    # one at least, which waits for the end; of a crowd each only reads the events
    kind = "live" if viewers < MANY else "events"
    found: list[Viewer] = []
    if viewers:
        token = (product.data / "token").read_text().strip()
        with ThreadPoolExecutor(1) as aside:  # Playwright has a loop of its own in this thread
            looking = look_on(product.url, f"/lab/runs/{run_id}/{kind}", viewers, token)
            found = aside.submit(asyncio.run, looking).result()
    with urllib.request.urlopen(f"{product.url}/api/v1/lab/runs/{run_id}/events", timeout=300) as stream:
        for line in stream:
            if line.startswith(b"event: end"):
                break
    run = product.get_json(f"/api/v1/lab/runs/{run_id}")
    assert run["status"] == "finished", run
    return _Watched(run, found)


def _in_a_row(product: Product) -> dict[str, float]:
    """Ten runs submitted at once: from the first's submission to the last one's end, over what the ranks took."""
    began = time.perf_counter()
    runs = [_submit(product, SHORT) for _ in range(IN_A_ROW)]
    for run_id in runs:
        _follow(product, run_id, 0)
    whole = time.perf_counter() - began
    own = sum(_ranks_seconds(product, run_id) for run_id in runs)
    return {"seconds": whole, "ranks_seconds": own, "ratio": whole / own}


def _ranks_seconds(product: Product, run_id: int) -> float:
    """From the start of its ranks until rank 0 says that all is done."""
    with urllib.request.urlopen(f"{product.url}/api/v1/lab/runs/{run_id}/record", timeout=30) as reply:
        events = [json.loads(line) for line in reply]
    return max(float(each["t"]) for each in events if each["kind"] == "phase" and each["phase"] == "finished")
