"""A formula as it is displayed is the formula that is computed: its LaTeX, evaluated at random points."""

from __future__ import annotations

import math
from decimal import Overflow

import pytest

from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import Evaluation, Formula
from app.theory.number_formats import rounded
from tests.support.latex import UnreadableLatexError, evaluate_latex
from tests.theory.points import evaluations

POINTS = 60
# What is displayed is no closed form: why.
NOT_EVALUATED = {
    "exposed_transfers": "T(c) is the length of a simulated schedule",
    "serving_optimum_parameters": "a least value under a condition, found by bisection",
    "serving_optimum_tokens": "a least value under a condition, found by bisection",
}
EVALUATED = [formula for name, formula in FORMULAS.by_name.items() if name not in NOT_EVALUATED]


def displayed(found: Evaluation) -> float:
    """The value of what is displayed; `fl` rounds to the number format of the inputs, `round` to whole numbers."""
    functions = {"round": round, "fl": lambda value: rounded(value, str(found.inputs["number_format"]))}
    return evaluate_latex(found.latex, found.symbols, functions)


@pytest.mark.parametrize("formula", EVALUATED, ids=lambda formula: formula.name)
def test_what_is_displayed_is_what_is_computed(formula: Formula) -> None:
    compared = 0
    for found in evaluations(formula, POINTS):
        try:
            value = displayed(found)
        except Overflow:  # a step on the way is beyond any number, e to the 10¹⁹ in goodput
            continue
        assert math.isclose(value, found.value, rel_tol=1e-6, abs_tol=1e-12), (found.latex, found.symbols, found.value)
        compared += 1
    assert compared >= POINTS / 2


@pytest.mark.parametrize("name", NOT_EVALUATED)
def test_what_is_not_evaluated_cannot_be(name: str) -> None:
    """So that the list does not outlive its reasons."""
    found = next(evaluations(FORMULAS.by_name[name], 1))
    with pytest.raises(UnreadableLatexError):
        displayed(found)


@pytest.mark.parametrize(
    ("latex", "value"),
    [
        (r"2(n-1)\alpha + \frac{2(n-1)}{n}\frac{S}{B}", 2 * 3 * 0.5 + 2 * 3 / 4 * 100 / 8),
        (r"2\lceil\log_2 n\rceil\alpha", 2.0),
        (r"\min(n,\; S - 98)^2", 4.0),
        (r"B_{\mathrm{NIC}}/B", 2.0),
        (r"-n + \left\lfloor\frac{S}{n'}\right\rfloor \bmod B", -4 + 33 % 8),
        (r"n^\alpha S^{-1/2}", 0.2),
        (r"3 \times 10^2 - \sqrt{S}", 290.0),
        (r"e^{0}", 1.0),
        (r"\text{double}(n) \cdot 3", 24.0),
    ],
)
def test_the_evaluator_reads_as_a_person_does(latex: str, value: float) -> None:
    symbols = {"n": 4, r"\alpha": 0.5, "S": 100, "B": 8, r"B_{\mathrm{NIC}}": 16, "n'": 3}
    assert evaluate_latex(latex, symbols, {"double": lambda value: 2 * value}) == pytest.approx(value)


@pytest.mark.parametrize(
    "latex", ["n_0", "m", r"\frac{1}{n", "n +", "1/n m", r"\text{round}(n)", "(n", r"\int n", "n)"]
)
def test_what_has_no_value_is_refused(latex: str) -> None:
    with pytest.raises(UnreadableLatexError):
        evaluate_latex(latex, {"n": 4.0})
