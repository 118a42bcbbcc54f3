"""Pages as learners load them: the HTML of every room, at random times, by several at once. Scripts and styles are not
asked for: a browser has them from the first page on."""

from __future__ import annotations

import itertools
import random
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

from tests.support.product import Product

ROOMS = (
    *("/", "/study", "/practice", "/practice/P15", "/lab", "/lab/experiments/L10", "/lab/devices"),
    *("/planner", "/interview", "/progress", "/reference", "/search?q=ring+all-reduce"),
)
READERS = 8  # as many as ask at once where there is no pause between


@dataclass
class Loads:
    """How long each page took to load, in seconds."""

    seconds: list[float] = field(default_factory=list)
    by_page: dict[str, list[float]] = field(default_factory=dict)

    def load(self, address: str, page: str) -> None:
        request = urllib.request.Request(f"{address}{page}", headers={"Accept": "text/html"})
        began = time.monotonic()
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert b"</html>" in reply.read(), page
        took = time.monotonic() - began
        self.seconds.append(took)
        self.by_page.setdefault(page, []).append(took)

    def quantile(self, share: float) -> float:
        found = sorted(self.seconds)
        return found[min(len(found) - 1, int(share * len(found)))]

    def slowest(self) -> tuple[str, float]:
        """The page that takes longest in the median."""
        medians = {page: statistics.median(took) for page, took in self.by_page.items()}
        return max(medians.items(), key=lambda each: each[1])


@contextmanager
def loading(product: Product, pages: Sequence[str], a_second: float) -> Iterator[Loads]:
    """Pages load at random times, so many a second on average, whether those before have come or not."""
    loads, done, draw, asked = Loads(), threading.Event(), random.Random(3), list[Future[None]]()
    with ThreadPoolExecutor(32) as readers:

        def visit() -> None:
            while not done.wait(draw.expovariate(a_second)):
                asked.append(readers.submit(loads.load, product.url, draw.choice(pages)))

        visitor = threading.Thread(target=visit)
        visitor.start()
        try:
            yield loads
        finally:
            done.set()
            visitor.join()
    for each in asked:
        each.result()


@dataclass(frozen=True)
class Most:
    """What web servers do at most."""

    pages_a_second: float
    processor_seconds_a_page: float


def flat_out(servers: Mapping[str, psutil.Process], pages: Sequence[str], seconds: float) -> Most:
    """READERS ask for one page after the other, of the servers (by their addresses) in turns."""
    before, until, loads = _processor_seconds(servers), time.monotonic() + seconds, Loads()

    def read(number: int) -> None:
        draw, turns = random.Random(number), itertools.cycle(servers)
        while time.monotonic() < until:
            loads.load(next(turns), draw.choice(pages))

    with ThreadPoolExecutor(READERS) as readers:
        list(readers.map(read, range(READERS)))
    count = len(loads.seconds)
    return Most(count / seconds, (_processor_seconds(servers) - before) / count)


def _processor_seconds(servers: Mapping[str, psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in servers.values())
