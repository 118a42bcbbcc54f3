"""Grading a free answer of 300 words over HTTP, beside a no-op route of the same server, taken in turns."""

from __future__ import annotations

import http.client
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.content.catalogue import catalogue
from tests.support.product import running_product

ROUNDS = 120
WARM_UP = 24  # every rubric is read once before
WORDS = 300
TARGET = 40.0

Connection = http.client.HTTPConnection


def measure(data: Path) -> dict[str, Any]:
    """The median of POST grade, over all rubrics in turn, over that of GET /healthz."""
    answers = [(identity, _answer(identity)) for identity in catalogue().rubrics]
    rows = []
    with running_product(data) as product:
        connection = Connection(urlsplit(product.url).netloc)
        for index in range(ROUNDS + WARM_UP):
            identity, text = answers[index % len(answers)]
            rows.append((_timed(lambda: _noop(connection)), _timed(lambda: _grade(connection, identity, text))))  # noqa: B023
    noop, grade = (statistics.median(column) for column in zip(*rows[WARM_UP:], strict=True))
    ratio = grade / noop
    return {
        "noop_median_seconds": noop,
        "grade_median_seconds": grade,
        "ratio": ratio,
        "target": TARGET,
        "words": WORDS,
        "lines": [
            f"no-op {noop * 1e3:.2f} ms, free answer of {WORDS} words {grade * 1e3:.2f} ms, medians",
            f"{ratio:.1f} × (target ≤ {TARGET:g} ×)",
        ],
    }


def _answer(identity: str) -> str:
    """300 words to the question: its own exemplars, as often as needed."""
    rubric = catalogue().rubrics[identity]
    words = " ".join(rubric.exemplar(each.kind) for each in rubric.exemplars).split()
    return " ".join((words * (WORDS // len(words) + 1))[:WORDS])


def _noop(connection: Connection) -> None:
    connection.request("GET", "/healthz")
    connection.getresponse().read()


def _grade(connection: Connection, identity: str, text: str) -> None:
    body = json.dumps({"text": text})
    connection.request("POST", f"/api/v1/rubrics/{identity}/grade", body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()[:300]
    assert json.loads(reply.read())["points"]


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
