"""The formula list as others use it: found by id or name, typed and ranged inputs, never a NaN."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from latex2mathml.converter import convert

from app.theory.formulas import FORMULAS, SECTIONS
from app.theory.formulas.registry import Formula, Registry, evaluate
from app.units import DIMENSIONS, SCALES
from labs.spec import SpecError
from tests.theory.points import evaluations, outcome, points
from tests.theory.worked import OPENING

ALL = list(FORMULAS.by_name.values())
STATE = FORMULAS.by_name["zero_state"]


POINTS, POINTS_OF_A_SIMULATION = 200, 60  # a simulation plays two steps for each
SIMULATED = "exposed_transfers"


def refused(formula: Formula, given: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SpecError) as raised:
        evaluate(formula, given)
    return {violation.field: violation.message for violation in raised.value.violations}


@pytest.mark.parametrize(
    "formula",
    [pytest.param(each, marks=pytest.mark.slow if each.name == SIMULATED else ()) for each in ALL],
    ids=lambda formula: formula.name,
)
def test_any_point_gives_a_finite_number_or_names_the_inputs_that_clash(formula: Formula) -> None:
    names, agreed = {each.name for each in formula.inputs}, 0
    for given in points(formula, POINTS_OF_A_SIMULATION if formula.name == SIMULATED else POINTS):
        found = outcome(formula, given)
        if isinstance(found, list):
            assert found
            assert {violation.field for violation in found} <= names
            assert all(violation.message and violation.accepted for violation in found)
        else:
            assert math.isfinite(found.value)
            assert found.value >= 0
            agreed += 1
    assert agreed >= 8


@pytest.mark.parametrize("formula", ALL, ids=lambda formula: formula.name)
def test_every_formula_can_be_typeset_with_its_values_in_it(formula: Formula) -> None:
    for found in evaluations(formula, 8):
        for latex in (found.latex, found.latex_values):
            assert convert(latex).startswith("<math")
            assert latex.count("{") == latex.count("}")


def test_every_formula_of_the_list_is_registered() -> None:
    """F01 to F57, as content numbers them."""
    assert sorted({f"F{number:02}" for number in range(1, 58)} - {formula.id for formula in ALL}) == []


def test_every_formula_has_a_worked_example() -> None:
    modules = [import_module(f"tests.theory.{path.stem}") for path in Path(__file__).parent.glob("test_worked_*.py")]
    worked = [(name, inputs) for module in modules for name, inputs, *_ in module.EXAMPLES]
    assert sorted(set(FORMULAS.by_name) - {name for name, _ in worked}) == []
    for name, formula in FORMULAS.by_name.items():
        assert (name, OPENING) in worked or (name, formula.example) in worked, f"{name}: where its page opens"


def test_every_section_is_registered_in_its_order() -> None:
    assert [formula for entries in SECTIONS.values() for formula in entries] == ALL
    assert all(SECTIONS.values())


def test_a_formula_is_found_by_its_id_and_by_its_name() -> None:
    assert FORMULAS.find("F02") is FORMULAS.find("f02") is FORMULAS.find("zero_state") is STATE
    assert FORMULAS.find("F99") is None
    assert FORMULAS.find("") is None


def test_names_are_unique() -> None:
    registry = Registry()
    registry.add(STATE)
    with pytest.raises(ValueError, match="zero_state"):
        registry.add(STATE)


@pytest.mark.parametrize("formula", ALL, ids=lambda formula: formula.name)
def test_units_and_dimensions_are_those_of_the_tables(formula: Formula) -> None:
    """So that what is shown can be typed back in."""
    assert formula.source
    assert {each.dimension for each in formula.inputs} | {formula.dimension} <= set(DIMENSIONS)
    assert SCALES[formula.unit][0] == formula.dimension


@pytest.mark.parametrize("formula", ALL, ids=lambda formula: formula.name)
def test_defaults_are_values_their_input_takes(formula: Formula) -> None:
    for each in formula.inputs:
        if each.default is not None:
            assert each.read(each.default) == each.default


def test_defaults_fill_what_is_not_given_and_are_reported() -> None:
    found = evaluate(STATE, {"parameters": 7e9, "ranks": 8, "stage": 3})
    assert found.inputs == {"parameters": 7e9, "ranks": 8, "stage": 3, "layout": "zero-16", "part": "all"}


def test_every_mistake_is_named_at_once() -> None:
    found = refused(STATE, {"ranks": 0, "stage": 1.5, "layout": "zero-17", "colour": "red"})
    assert set(found) == {"parameters", "ranks", "stage", "layout", "colour"}
    assert "missing" in found["parameters"]
    assert "no input of that name" in found["colour"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (0, "out of range"),
        (1.01e15, "out of range"),
        (-7e9, "out of range"),
        (float("nan"), "out of range"),
        (float("inf"), "out of range"),
        (10**400, "out of range"),
        ("many", "not a number"),
        ("", "not a number"),
        ("nan", "out of range"),
        ([7e9], "not a number"),
        ({}, "not a number"),
        (None, "missing"),
    ],
    ids=repr,
)
def test_what_is_no_number_of_parameters_is_refused(value: Any, reason: str) -> None:
    assert reason in refused(STATE, {"parameters": value, "ranks": 8, "stage": 3})["parameters"]


@pytest.mark.parametrize("value", ["zero-17", 16, None, [], {}, "ZERO-16"], ids=repr)
def test_a_choice_is_one_of_its_choices(value: Any) -> None:
    given = {"parameters": 7e9, "ranks": 8, "stage": 3, "layout": value}
    assert set(refused(STATE, given)) == {"layout"}


def test_a_whole_number_is_whole() -> None:
    assert evaluate(STATE, {"parameters": 7e9, "ranks": "8", "stage": 3.0}).inputs["ranks"] == 8
    assert "not whole" in refused(STATE, {"parameters": 7e9, "ranks": 2.5, "stage": 3})["ranks"]


def test_the_limits_themselves_are_taken() -> None:
    for each in (each for formula in ALL for each in formula.inputs if not each.choices):
        assert each.read(each.minimum) == each.minimum
        assert each.read(each.maximum) == each.maximum


@pytest.mark.parametrize(
    ("stage", "symbols", "values"),
    [
        (0, "16N", r"16 \times 7 \times 10^{9}"),
        (1, r"4N + \frac{12N}{K}", r"4 \times 7 \times 10^{9} + \frac{12 \times 7 \times 10^{9}}{8}"),
        (3, r"\frac{16N}{K}", r"\frac{16 \times 7 \times 10^{9}}{8}"),
    ],
)
def test_the_formula_is_shown_as_its_stage_has_it(stage: int, symbols: str, values: str) -> None:
    found = evaluate(STATE, {"parameters": 7e9, "ranks": 8, "stage": stage})
    assert (found.latex, found.latex_values) == (symbols, values)
