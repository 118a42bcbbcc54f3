"""Points inside a formula's input ranges: over all magnitudes, at the limits, and among sizes that fit together."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from app.theory.formulas.registry import Evaluation, Formula, Input, evaluate
from labs.spec import SpecError, Violation


def points(formula: Formula, count: int) -> Iterator[dict[str, Any]]:
    """`count` points, the same on every run: half of them anywhere, half of them small powers of two."""
    source = random.Random(formula.name)
    for number in range(count):
        draw = _anywhere if number % 2 else _everyday
        yield {each.name: draw(source, each) for each in formula.inputs}


def outcome(formula: Formula, given: dict[str, Any]) -> Evaluation | list[Violation]:
    """The formula at a point, or why its inputs clash there."""
    try:
        return evaluate(formula, given)
    except SpecError as error:
        return list(error.violations)


def evaluations(formula: Formula, count: int) -> Iterator[Evaluation]:
    """The formula at `count` points whose inputs agree with each other."""
    found = 0
    for given in points(formula, 200 * count):
        evaluation = outcome(formula, given)
        if isinstance(evaluation, Evaluation):
            yield evaluation
            found += 1
        if found == count:
            return
    raise AssertionError(f"{formula.name}: only {found} of {200 * count} points agree")


def _anywhere(source: random.Random, each: Input) -> Any:
    if each.choices:
        return source.choice(each.choices)
    low = max(each.minimum, each.maximum * 1e-30)
    value = min(max(low * (each.maximum / low) ** source.random(), each.minimum), each.maximum)
    return source.choice([int(value) if each.integer else value, each.minimum, each.maximum])


def _everyday(source: random.Random, each: Input) -> Any:
    """What people set: 1, 2, 8, 4,096; the default as often; a share of one."""
    if each.choices:
        return source.choice(each.choices)
    if each.default is not None and source.random() < 0.5:
        return each.default
    if each.integer:
        value = 2 ** source.randint(0, 12)
    elif each.maximum <= 1:
        value = source.uniform(each.minimum, each.maximum)
    else:
        value = 10 ** source.uniform(-2, math.log10(each.maximum) / 2)
    return min(max(value, each.minimum), each.maximum)
