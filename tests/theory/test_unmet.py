"""Limits within which no plan fits: those to blame are named, and what is offered for them leads to a plan."""

from __future__ import annotations

import re
from typing import Any

import pytest

from app.theory import parse_search_request, search
from app.theory.planner.unmet import leanest, unmet
from app.units import factor_of

ASKED: dict[str, Any] = {
    "model": "llama-3-8b",
    "training": {"sequence": 8192, "global_batch": 8},
    "cluster": {"gpu": "h100-80gb", "nodes": 1},
}
Given = dict[str, Any]


def found(given: Given) -> Any:
    return parse_search_request({**ASKED, **given}, may_be_empty=True)


def changed(given: Given, field: str, accepted: str) -> Given:
    """The limits with the first value that is offered at a field."""
    part, _, axis = field.partition(".")
    if field == "profile":
        return {name: value for name, value in given.items() if name != field}
    if field == "memory_bytes":
        size, unit = accepted.split()[:2]
        return {**given, field: float(size) * factor_of(unit)}
    if field == "memory_share":
        return {**given, field: float(accepted.split(maxsplit=1)[0])}
    first = re.sub(r"^up to ", "", accepted).split(",")[0].split()[0]
    value = int(first) if first.isdecimal() else first
    return {**given, part: {**given[part], axis: [value] if part == "axes" else value}}


@pytest.mark.parametrize(
    ("given", "blamed"),
    [
        ({"memory_bytes": 2e9}, {"memory_bytes"}),
        ({"memory_share": 0.01}, {"memory_share"}),
        (
            {"axes": {"tensor": [1], "pipeline": [1], "zero": [0]}, "at_most": {"micro_batch": 4}},
            {"axes.tensor", "axes.pipeline", "axes.zero"},
        ),
        ({"profile": "composer", "at_least": {"pipeline": 2}}, {"profile", "at_least.pipeline"}),
        ({"axes": {"tensor": [3], "recompute": ["none"]}}, {"axes.tensor"}),
    ],
)
def test_a_limit_is_blamed_where_to_change_it_alone_will_do(given: Given, blamed: set[str]) -> None:
    assert not search(found(given)).best
    violations = unmet(found(given))
    assert {each.field for each in violations} == blamed
    for each in violations:
        assert search(found(changed(given, each.field, each.accepted))).best, each


def test_limits_to_blame_only_together_are_offered_values_that_go_together() -> None:
    given: Given = {
        "memory_bytes": 2e9,
        "axes": {"tensor": [1], "pipeline": [1], "context": [1], "zero": [0]},
        "at_least": {"micro_batch": 8},
    }
    violations = unmet(found(given))
    assert {each.field for each in violations} == {"axes.zero", "at_least.micro_batch", "memory_bytes"}
    for each in violations:
        assert not search(found(changed(given, each.field, each.accepted))).best, "not by itself"
    together = given
    for each in violations:
        together = changed(together, each.field, each.accepted)
    assert search(found(together)).best


def test_no_limit_is_blamed_where_nothing_would_fit_without_any() -> None:
    given: Given = {"model": "llama-3-405b", "axes": {"tensor": [1]}}
    assert unmet(found(given)) == ()
    least = leanest(found({**given, "axes": {}}))
    assert least is not None
    assert least.memory_bytes > 0.9 * 80e9
    assert unmet(found({"model": "llama-3-405b"})) == ()
