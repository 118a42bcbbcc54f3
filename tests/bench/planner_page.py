"""The planner's page and an estimate over HTTP, beside a no-op route of the same server, taken in turns."""

from __future__ import annotations

import http.client
import json
import statistics
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.support.product import running_product

ROUNDS = 100
WARM_UP = 10
TARGETS = {"page": 6.0}
JSON = {"Content-Type": "application/json"}


def measure(data: Path) -> dict[str, Any]:
    """Medians of GET /planner and POST /api/v1/estimate over that of GET /healthz. No two plans are the same."""
    rows = []
    with running_product(data) as product:
        connection = http.client.HTTPConnection(urlsplit(product.url).netloc)
        for index in range(ROUNDS + WARM_UP):
            batch = 8 * (index + 1)
            plan = {"model": "llama-3-8b", "training": {"global_batch": batch}, "parallel": {"data": 8, "zero": 3}}
            body = json.dumps({**plan, "cluster": {"gpu": "h100-80gb"}})
            rows.append(
                (
                    _timed(connection, "GET", "/healthz"),
                    _timed(connection, "GET", "/planner?" + urlencode({"global_batch": batch})),
                    _timed(connection, "POST", "/api/v1/estimate", body),
                )
            )
    noop, page, answer = (statistics.median(column) for column in zip(*rows[WARM_UP:], strict=True))
    ratios = {"page": page / noop, "estimate": answer / noop}
    return {
        "noop_median_seconds": noop,
        "page_median_seconds": page,
        "estimate_median_seconds": answer,
        "ratios": ratios,
        "targets": TARGETS,
        "lines": [
            f"no-op {noop * 1e3:.2f} ms, page {page * 1e3:.2f} ms, estimate {answer * 1e3:.2f} ms, medians",
            f"page {ratios['page']:.1f} × (target ≤ {TARGETS['page']:g} ×), estimate {ratios['estimate']:.1f} ×",
        ],
    }


def _timed(connection: http.client.HTTPConnection, method: str, path: str, body: str | None = None) -> float:
    began = time.perf_counter()
    connection.request(method, path, body, JSON if body else {})
    reply = connection.getresponse()
    text = reply.read()
    assert reply.status == 200, text[:300]
    return time.perf_counter() - began
