"""How long this process takes to answer, by route: a histogram for a monitoring system.

Until the answer begins: a stream of events goes on for minutes. Counted in this process alone, since it started.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds, up to and with each
NO_ROUTE = "none"

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series besides, for each, of when it was first counted


def new_histogram() -> Histogram:
    """Of one application, by method, route as it is written down, and class of status."""
    return Histogram(
        "rankzero_http_response_seconds",
        "Until an answer begins, in this process since it started.",
        ("method", "route", "status"),
        registry=CollectorRegistry(),  # not the one of the whole process: tests make many applications
        buckets=BUCKETS,
    )


class Latency:
    """Times what the application answers."""

    def __init__(self, app: ASGIApp, seen: Histogram) -> None:
        self.app, self._seen = app, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                labels = (_method(scope), _route(scope), f"{message['status'] // 100}xx")
                self._seen.labels(*labels).observe(time.monotonic() - began)
            await send(message)

        await self.app(scope, receive, timed)


def _route(scope: Mapping[str, object]) -> str:
    """Of the route as it is written down: what somebody asked for would be ever new names."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else NO_ROUTE


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
