"""Grading a number and making a variant over HTTP, beside a no-op route of the same server, taken in turns."""

from __future__ import annotations

import http.client
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.product import Product, running_product

ROUNDS = 200
WARM_UP = 20
TARGETS = {"grade": 5.0, "variant": 3.0}
PROBLEMS = ("P03", "P08", "P15", "P22")  # with a figure, with carried values, short, long

Connection = http.client.HTTPConnection
Work = Callable[[Connection], None]


def measure(data: Path) -> dict[str, Any]:
    """Medians of POST answers (a variant of the learner's, one number) and GET variant over that of GET /healthz."""
    rows = []
    with running_product(data) as product:
        connection = Connection(urlsplit(product.url).netloc)
        for index in range(ROUNDS + WARM_UP):
            problem = PROBLEMS[index % len(PROBLEMS)]
            works = (_noop, _grade(product, problem), _variant(problem, index))
            rows.append([_timed(connection, work) for work in works])
    noop, grade, variant = (statistics.median(column) for column in zip(*rows[WARM_UP:], strict=True))
    ratios = {"grade": grade / noop, "variant": variant / noop}
    return {
        "noop_median_seconds": noop,
        "grade_median_seconds": grade,
        "variant_median_seconds": variant,
        "ratios": ratios,
        "targets": TARGETS,
        "lines": [
            f"no-op {noop * 1e3:.2f} ms, grade {grade * 1e3:.2f} ms, variant {variant * 1e3:.2f} ms, medians",
            *(f"{name} {ratio:.2f} × (target ≤ {TARGETS[name]:g} ×)" for name, ratio in ratios.items()),
        ],
    }


def _noop(connection: Connection) -> None:
    connection.request("GET", "/healthz")
    connection.getresponse().read()


def _grade(product: Product, problem: str) -> Work:
    """One part answered; the variant is issued outside the timing."""
    seed = product.post_json(f"/api/v1/problems/{problem}/variants", {})[1]["seed"]
    body = json.dumps({"answers": {"a": "112 GB" if problem in ("P03", "P08") else "17 %"}})

    def send(connection: Connection) -> None:
        path = f"/api/v1/problems/{problem}/variants/{seed}/answers"
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status == 200, text[:300]
        assert json.loads(text)["parts"][0]["status"] in ("correct", "wrong")

    return send


def _variant(problem: str, seed: int) -> Work:
    def send(connection: Connection) -> None:
        connection.request("GET", f"/api/v1/problems/{problem}/variants/{seed}")
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()[:300]
        reply.read()

    return send


def _timed(connection: Connection, work: Work) -> float:
    began = time.perf_counter()
    work(connection)
    return time.perf_counter() - began
