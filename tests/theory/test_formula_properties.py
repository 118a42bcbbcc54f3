"""What holds of every formula: its function has the same defaults, its counts are whole, and bytes are proportional."""

from __future__ import annotations

import inspect
from typing import get_args, get_type_hints

import pytest

from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import Formula, evaluate

ALL = list(FORMULAS.by_name.values())
# Twice as many of these are twice the bytes held or sent: nothing in a formula is there once for all of them.
PROPORTIONAL = ("micro_batch", "layers", "tokens", "bytes_each")
# but for these, with what is there besides
BESIDES = {("fsdp_peak_backward", "bytes_each"): "gradients, in a type of their own"}
SCALED = [
    (formula, each.name)
    for formula in ALL
    if formula.dimension == "bytes"
    for each in formula.inputs
    if each.name in PROPORTIONAL and (formula.name, each.name) not in BESIDES
]


@pytest.mark.parametrize("formula", ALL, ids=lambda formula: formula.name)
def test_a_page_opens_with_the_defaults_of_the_function(formula: Formula) -> None:
    parameters = inspect.signature(formula.function).parameters
    both = {
        each.name: (each.default, parameters[each.name].default)
        for each in formula.inputs
        if each.default is not None and parameters[each.name].default not in (None, inspect.Parameter.empty)
    }
    assert {name for name, (page, function) in both.items() if page != function} == set()


@pytest.mark.parametrize("formula", ALL, ids=lambda formula: formula.name)
def test_what_a_function_counts_in_whole_numbers_is_whole_on_its_page(formula: Formula) -> None:
    hints = get_type_hints(inspect.unwrap(formula.function))
    whole = {each.name for each in formula.inputs if int in (hints[each.name], *get_args(hints[each.name]))}
    assert whole <= {each.name for each in formula.inputs if each.integer}


@pytest.mark.parametrize(("formula", "name"), SCALED, ids=lambda value: value if isinstance(value, str) else value.name)
def test_bytes_are_in_proportion_to_what_is_held_or_sent(formula: Formula, name: str) -> None:
    given = {each.name: each.default for each in formula.inputs if each.default is not None} | dict(formula.example)
    once, twice = (evaluate(formula, {**given, name: times * float(given[name])}).value for times in (1, 2))
    assert twice == pytest.approx(2 * once, rel=1e-12)
