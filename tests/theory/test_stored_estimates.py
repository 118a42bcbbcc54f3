"""The JSON of estimates and searches stays what programs were answered, to the last key; records make it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from app.theory import estimate, parse_estimate_request, parse_search_request, search
from tests.support.stored_estimates import answered, stored

# What the fitted constants decide: of these only whether they are known is compared.
FITTED = {
    "time",
    "mfu",
    "mfu_by_definition",
    "hfu",
    "model_flops_per_second_per_gpu",
    "hardware_flops_per_second_per_gpu",
    "bubble_fraction",
    "seconds",
    "exposed_seconds",
    "interval",
}


def shape(value: Any) -> Any:
    """Its names, inside as well; of what is listed nothing."""
    return {name: shape(inner) for name, inner in value.items()} if isinstance(value, dict) else None


def comparable(value: Any, fitted: bool = False) -> Any:
    """JSON data with its keys in order, and fitted numbers by their type."""
    if isinstance(value, dict):
        return [(name, comparable(inner, fitted or name in FITTED)) for name, inner in value.items()]
    if isinstance(value, list):
        return [comparable(inner, fitted) for inner in value]
    return type(value).__name__ if fitted else value


@pytest.mark.parametrize("record", [each for each in stored() if "estimate" in each], ids=lambda each: each["name"])
def test_an_estimate_is_answered_as_it_was(record: dict[str, Any]) -> None:
    """Where it is meant to change: `python -m tests.support.stored_estimates`, and read the difference."""
    assert comparable(answered(record)) == comparable(record)


@pytest.mark.parametrize("record", [each for each in stored() if "search" in each], ids=lambda each: each["name"])
def test_a_search_is_answered_in_the_form_it_was(record: dict[str, Any]) -> None:
    """Which plans are best is up to the fitted constants."""
    now, then = answered(record)["search"], record["search"]
    assert (set(now), now["considered"]) == (set(then), then["considered"])
    assert len(now["best"]) == len(then["best"])
    for new, old in zip(now["best"], then["best"], strict=True):
        assert shape(new) == shape(old)
        assert isinstance(new["training"]["recompute"], str)


def test_a_record_cannot_be_changed() -> None:
    found = estimate(parse_estimate_request({"model": {"parameters": 7e9}}))
    with pytest.raises(FrozenInstanceError):
        found.memory.per_rank_bytes.total = 0.0  # type: ignore[misc]


def test_a_candidate_is_a_plan_whose_estimate_it_has() -> None:
    record = next(each for each in stored() if "search" in each)
    found = search(parse_search_request(record["request"]))
    best = found.best[0]
    assert best.estimate == estimate(best.request)
    assert found.to_json(limit=1)["best"] == [best.to_json()]
    assert best.to_json()["parallel"]["tensor"] == best.parallel.tensor
