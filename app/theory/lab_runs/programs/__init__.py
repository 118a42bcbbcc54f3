"""What theory expects of the programs that are not a training run: points of their figures, and their quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.theory.lab_runs.programs import autograd, collectives, ddp, failures, formats, scaling, schedule, speed
from app.theory.lab_runs.programs.parts import Expected, Point
from labs.spec import CollectivesOptions, Options

__all__ = ["Expected", "Point", "expected_of_program", "parts_of_quantity"]

# A program that is not here depends on the machine alone: there is nothing to expect of it beforehand.
_EXPECTED: Mapping[str, Callable[[Any, int], Expected]] = {
    "autograd": autograd.expect,
    "collectives": collectives.expect,
    "ddp": ddp.expect,
    "failures": failures.expect,
    "formats": formats.expect,
    "scaling": scaling.expect,
    "schedule": schedule.expect,
    "speed": speed.expect,
}


def expected_of_program(options: Options, ranks: int) -> Expected:
    """Points and quantities of a program with `options` on so many ranks, by the names the program gives them."""
    expect = _EXPECTED.get(options.program)
    return expect(options, ranks) if expect else Expected()


def parts_of_quantity(options: Options, ranks: int, quantity: str) -> Mapping[str, float]:
    """The terms a program's quantity adds up from, by name; empty where it is no sum."""
    return collectives.parts_of(options, ranks, quantity) if isinstance(options, CollectivesOptions) else {}
