"""Runs that many look on: how late a step is drawn, what looking on costs the run, and whether anybody misses anything;
and runs one after the other beside the time their ranks took.

A step is written when rank 0's file has it, and drawn when the page in a real browser says it. The other viewers are
connections that read the same stream of the page. All ratios are of one run of the benchmark: pairs, in turns.

The clients are on the machine that trains, which viewers are not; so what they take is told apart, by processor time:
that of web, worker and Redis together, and that of this process with its browser.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from playwright.sync_api import Page, sync_playwright

from tests.support.browser import browser_path
from tests.support.product import Product, running_product

VIEWERS, MANY = 100, 1000
PAIRS = 3
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
# A viewer is told a chunk's number before its kind. A client that read line by line would take more of the machine than
# the server that is measured.
_CHUNK = re.compile(rb"id: (\d+)\r\nevent: chunk\r\n")
_LONGEST_HEAD = 64

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
    with running_product(data, warm=True) as product, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path())
        page = browser.new_page()
        _watched(product, SHORT, 0)  # one first, for whatever is done once
        pairs, server, clients, web = [], [], [], []
        for _ in range(PAIRS):
            before = _processor_seconds(product)
            unseen = _watched(product, LOOKED_AT, 0)
            between = _processor_seconds(product)
            pairs.append((_rate(unseen), _drawn(product, page)))
            after = _processor_seconds(product)
            web.append((between.web - before.web, after.web - between.web))
            alone_share, looked_share = _shares(before, between), _shares(between, after)
            server.append(looked_share[0] - alone_share[0])
            clients.append(looked_share[1] - alone_share[1])
        browser.close()
        before = _processor_seconds(product)
        crowd = _watched(product, CROWDED, MANY)
        crowd_web = _processor_seconds(product).web - before.web
        row = _in_a_row(product)
    delays = sorted(each for _, (_, found) in pairs for each in found)
    p95 = delays[min(len(delays) - 1, int(0.95 * len(delays)))]
    costs = [1 - looked_at / alone for alone, (looked_at, _) in pairs]
    chunks = list(range(1, crowd.run["chunks"] + 1))
    missed = sum(not (viewer.has_ended and viewer.chunks == chunks) for viewer in crowd.viewers)
    return {
        "viewers": VIEWERS,
        "drawn_seconds": delays,
        "drawn_p95_seconds": p95,
        "cost_of_tokens_per_second": costs,
        "server_share": server,
        "web_processor_seconds": {"none": [a for a, _ in web], str(VIEWERS): [b for _, b in web], str(MANY): crowd_web},
        "clients_share": clients,
        "crowd": {"viewers": len(crowd.viewers), "missed_something": missed},
        "in_a_row": row,
        "targets": {"drawn_p95_seconds": DRAWN_SECONDS, "cost": COST, "in_a_row": ROW_RATIO, "missed_something": 0},
        "lines": [
            f"rank writes → drawn, {VIEWERS} viewers: p95 {p95:.2f} s of {len(delays)} steps "
            f"(target ≤ {DRAWN_SECONDS:g} s)",
            f"{VIEWERS} viewers cost the run {100 * statistics.median(costs):.1f} % of its tokens/s, {PAIRS} pairs "
            f"(target ≤ {100 * COST:g} %)",
            f"of which web, worker and Redis: {100 * statistics.median(server):.1f} % of the ranks' processor time "
            f"(target ≤ {100 * COST:g} %); the clients and their browser on the same cores: "
            f"{100 * statistics.median(clients):.0f} %",
            f"the web process: {statistics.median(a for a, _ in web):.2f} s of processor time without viewers, "
            f"{statistics.median(b for _, b in web):.2f} s with {VIEWERS}, {LOOKED_AT['training']['steps']} steps; "
            f"{crowd_web:.2f} s with {MANY:,}, who come and go, {CROWDED['training']['steps']} steps",
            f"{len(crowd.viewers):,} viewers of one run: {missed} missed something (target 0)",
            f"{IN_A_ROW} runs in a row: {row['ratio']:.2f} × their ranks' own time (target ≤ {ROW_RATIO:g} ×)",
        ],
    }


@dataclass
class _Viewer:
    """What one connection got: numbers of chunks, and whether the end came."""

    chunks: list[int] = field(default_factory=list)
    has_ended: bool = False


@dataclass(frozen=True)
class _Watched:
    run: dict[str, Any]
    viewers: list[_Viewer]


def _drawn(product: Product, page: Page) -> tuple[float, list[float]]:
    """Tokens a second of a run with its viewers, the browser among them, and of each step how late it was drawn."""
    with _written(product) as written:
        run_id = _submit(product, LOOKED_AT)
        page.goto(f"{product.url}/lab/runs/{run_id}")
        page.evaluate(_WATCH)
        watched = _follow(product, run_id, VIEWERS - 1)
        time.sleep(1)
    drawn = page.evaluate("window.drawn")
    late = [
        min((at for shown, at in drawn if shown >= step), default=float("inf")) - at_file
        for step, at_file in written.items()
    ]
    return _rate(watched), [each for each in late if each < float("inf")]


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
    found: list[_Viewer] = []
    if viewers:
        # as browsers bring their cookie: of who brings nothing the kernel is asked, for each connection
        token = (product.data / "token").read_text().strip()
        with ThreadPoolExecutor(1) as aside:  # Playwright has a loop of its own in this thread
            look_on = _look_on(product.url, f"/lab/runs/{run_id}/{kind}", viewers, token)
            found = aside.submit(asyncio.run, look_on).result()
    with urllib.request.urlopen(f"{product.url}/api/v1/lab/runs/{run_id}/events", timeout=300) as stream:
        for line in stream:
            if line.startswith(b"event: end"):
                break
    run = product.get_json(f"/api/v1/lab/runs/{run_id}")
    assert run["status"] == "finished", run
    return _Watched(run, found)


async def _look_on(url: str, path: str, viewers: int, token: str) -> list[_Viewer]:
    return list(await asyncio.gather(*(_view(url, path, token) for _ in range(viewers))))


async def _view(url: str, path: str, token: str) -> _Viewer:
    host, port = urlsplit(url).hostname, urlsplit(url).port
    viewer = _Viewer()
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 24)
    who = f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream"
    writer.write(f"GET {path} HTTP/1.1\r\n{who}\r\n\r\n".encode())
    tail = b""
    while not viewer.has_ended and (piece := await reader.read(1 << 20)):
        tail += piece
        over = 0
        for found in _CHUNK.finditer(tail):
            viewer.chunks.append(int(found[1]))
            over = found.end()
        viewer.has_ended = b"event: end\r\n" in tail
        tail = tail[max(over, len(tail) - _LONGEST_HEAD) :]
    writer.close()
    return viewer


@dataclass(frozen=True)
class _Taken:
    """Processor seconds until now: of the web process, of web, worker and Redis together, of the clients, and of all
    ranks that have ended."""

    web: float
    server: float
    clients: float
    ranks: float


def _processor_seconds(product: Product) -> _Taken:
    web, server, ranks = 0.0, 0.0, 0.0
    for process in product.children():
        command, taken = " ".join(process.cmdline()), process.cpu_times()
        if "app.cli serve" in command:
            web += taken.user + taken.system
        if "serve" in command or "--devices" in command:  # redis-server, too
            server += taken.user + taken.system
        if "labs.host" in command:
            ranks += taken.children_user + taken.children_system
    ours = psutil.Process()
    others = {process.pid for process in product.children()} | {product.process.pid}
    browser = [each for each in ours.children(recursive=True) if each.pid not in others]
    clients = sum(taken.user + taken.system for each in (ours, *browser) for taken in (each.cpu_times(),))
    return _Taken(web, server, clients, ranks)


def _shares(before: _Taken, after: _Taken) -> tuple[float, float]:
    """Of the server and of the clients in between, each over the processor time of the ranks."""
    ranks = after.ranks - before.ranks
    return (after.server - before.server) / ranks, (after.clients - before.clients) / ranks


def _rate(watched: _Watched) -> float:
    return float(watched.run["result"]["tokens_per_second"])


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
