"""How worked examples are written and checked: a formula, its inputs, a unit, and the figure as it is printed."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import evaluate

MS, DAYS, PERCENT = 1e-3, 86400.0, 0.01
MB, GB = 1e6, 1e9
A100, H100 = 312e12, 989e12  # dense bf16 FLOP/s, NVIDIA data sheets

Inputs = dict[str, Any]
OPENING = None  # for inputs: the point the formula's page opens at, as the formula has it
# the formula's name, its inputs, how many SI base units the figure is in, and the figure as printed
Example = tuple[str, Inputs | None, float, str]


def printed(value: float, like: str) -> str:
    """`value` with as many decimals as `like` has, rounded as people round."""
    step = Decimal(1).scaleb(-len(like.partition(".")[2]))
    return str(Decimal(repr(value)).quantize(step, ROUND_HALF_UP))


def value_of(name: str, inputs: Inputs | None) -> float:
    formula = FORMULAS.by_name[name]
    return evaluate(formula, formula.example if inputs is OPENING else inputs).value


def worked(example: Example) -> tuple[str, str]:
    """The figure an example's formula gives, written as the expected one is, and the expected one."""
    name, inputs, unit, shown = example
    return printed(value_of(name, inputs) / unit, shown), shown
