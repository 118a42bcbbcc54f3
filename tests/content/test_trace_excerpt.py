"""The step whose trace is taught: what page and cards quote from it is what its file holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from app.content.catalogue import Catalogue
from app.theory.traffic import pipeline_boundary_bytes

FILE = Path(__file__).parents[2] / "app" / "static" / "traces" / "pipeline-of-two-stages.trace"
SPANS: list[dict[str, Any]] = [each for each in json.loads(FILE.read_text("utf-8"))["traceEvents"] if each["ph"] == "X"]


def of(rank: int, category: str) -> list[dict[str, Any]]:
    return [each for each in SPANS if each["pid"] == rank and each["cat"] == category]


def lasting(rank: int, category: str) -> list[float]:
    """Milliseconds of each span, in order of time."""
    return [each["dur"] / 1000 for each in of(rank, category)]


def sends(rank: int) -> list[float]:
    return [each["dur"] / 1000 for each in of(rank, "Collectives and messages") if each["args"]["operation"] == "send"]


def all_reduce(rank: int) -> dict[str, Any]:
    (found,) = [each for each in of(rank, "Collectives and messages") if each["args"]["operation"] == "all_reduce"]
    return found


WHOLE = max(each["ts"] + each["dur"] for each in SPANS) / 1000
QUOTED = {
    "281 ms": lasting(0, "Forward")[0],
    "403 ms": sends(0)[0],
    "29 ms": sends(0)[2],
    "537 ms": all_reduce(1)["dur"] / 1000,
    "18 ms": all_reduce(0)["dur"] / 1000,
    "1,140 ms": sum(lasting(0, "Waiting")),
    "275 ms": sum(lasting(1, "Waiting")),
    "665 ms": max(lasting(0, "Waiting")),
    "425 ms": lasting(0, "Waiting")[-1],
    "5,218 ms": WHOLE,
    "643 ms": median(lasting(0, "Backward")),
    "318 ms": median(lasting(0, "Forward")),
    "608 ms": median(lasting(1, "Backward")),
    "380 ms": median(lasting(1, "Forward")),
    "22 %": 100 * sum(lasting(0, "Waiting")) / WHOLE,
}


@pytest.mark.parametrize(("said", "found"), QUOTED.items())
def test_a_quoted_figure_is_that_of_the_trace(said: str, found: float) -> None:
    assert float(re.sub(r"[^\d.]", "", said)) == pytest.approx(found, abs=0.6)


def test_page_and_cards_quote_nothing_else_from_it(content: Catalogue) -> None:
    heads = [content.pages["reading-a-trace"].head, content.cards["X121"].head, content.cards["X122"].head]
    quoted = {text for head in heads for text, source in head.given.items() if source.startswith("the trace")}
    assert quoted == set(QUOTED)


def test_who_waits_is_told_by_where_the_waits_end() -> None:
    """Both long waits of rank 0 end with a backward of rank 1, and its all-reduce begins last and is the shortest."""
    backwards = [(each["ts"] + each["dur"]) / 1000 for each in of(1, "Backward")]
    ends = [(each["ts"] + each["dur"]) / 1000 for each in of(0, "Waiting") if each["dur"] > 100_000]
    assert len(ends) == 2
    assert all(min(abs(end - other) for other in backwards) < 10 for end in ends)
    late, waiting = all_reduce(0), all_reduce(1)
    assert late["ts"] > waiting["ts"]
    assert late["ts"] + late["dur"] == pytest.approx(waiting["ts"] + waiting["dur"], abs=10_000)


def test_its_messages_have_the_bytes_that_theory_gives() -> None:
    sent = {each["args"]["payload_bytes"] for each in SPANS if each["args"].get("operation") == "send"}
    assert sent == {pipeline_boundary_bytes(sequence=128, micro_batch=4, hidden=256, bytes_each=4)}
    assert {all_reduce(rank)["args"]["payload_bytes"] for rank in (0, 1)} == {256 * 256 * 4}
