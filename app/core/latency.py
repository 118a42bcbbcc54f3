"""How long this process takes to answer, by route: a histogram for a monitoring system.

Until the answer begins: a stream of events goes on for minutes. Counted in this process alone, since it started.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds, up to and with each
NO_ROUTE = "none"


@dataclass
class Histogram:
    """How many answers took at most so long; the last count has what took longer than any."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total_seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total_seconds += seconds


class Latency:
    """Times what the application answers. `seen` is by method, route as it is written down, and class of status."""

    def __init__(self, app: ASGIApp, seen: dict[tuple[str, str, str], Histogram]) -> None:
        self.app, self._seen = app, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                key = (_method(scope), _route(scope), f"{message['status'] // 100}xx")
                self._seen.setdefault(key, Histogram()).add(time.monotonic() - began)
            await send(message)

        await self.app(scope, receive, timed)


def _route(scope: Mapping[str, object]) -> str:
    """Of the route as it is written down: what somebody asked for would be ever new names."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else NO_ROUTE


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
