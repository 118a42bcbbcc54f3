"""The graders, one module a lab; each is found by its `GRADER`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from labs.code.grader import Grader


@cache
def graders() -> dict[str, Grader]:
    """By the lab's id."""
    modules = (importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__))
    found: list[Grader] = [module.GRADER for module in modules]
    return {each.lab: each for each in sorted(found, key=lambda each: each.lab)}
