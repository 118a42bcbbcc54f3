"""What a process loads at its start: each room more is waited for at every start of the product, and in every test that
makes one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ROOMS = (
    *("app.content", "app.decks", "app.exchange.service", "app.first", "app.grading", "app.planner", "app.practice"),
    *("app.progress", "app.reference", "app.reveal", "app.rubrics", "app.search", "app.study.api", "app.theory"),
    *("app.today", "app.models", "app.main", "app.lab.service", "app.interview.service"),
)
HEAVY = ("alembic", "fastapi", "starlette", "jinja2", "markdown_it", "numpy", "snowballstemmer", "torch", "celery.bin")
CORE = ("sqlalchemy", "pydantic", "redis", "celery", "structlog", "yaml", "labs.spec")

# In this order, each in the process that has loaded those before it.
STEPS = {
    "the command line": ("app.cli", (*CORE, *ROOMS, *HEAVY)),
    "start": ("app.operate.start", (*ROOMS, *HEAVY, "app.lab", "celery", "labs.spec", "yaml")),
    "the clock": ("worker.__main__", (*ROOMS, *HEAVY, "labs.spec")),
    "a device worker": ("worker.tasks", (*ROOMS, *HEAVY)),
    "the control worker": ("worker.control", (*ROOMS, *HEAVY)),
}
LOAD = """
import importlib, json, sys
found = []
for module in sys.argv[1:]:
    importlib.import_module(module)
    found.append(list(sys.modules))
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """By step, what is loaded after it."""
    command = [sys.executable, "-c", LOAD, *(module for module, _ in STEPS.values())]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return dict(zip(STEPS, map(set, json.loads(done.stdout)), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_start_loads_nothing_that_it_does_not_use(loaded: dict[str, set[str]], step: str) -> None:
    module, unused = STEPS[step]
    assert module in loaded[step]
    assert [each for each in unused if each in loaded[step]] == []


def test_the_modules_that_are_not_to_be_loaded_have_these_names() -> None:
    """A room under another name would be loaded unnoticed."""
    from importlib.util import find_spec

    assert [each for each in (*ROOMS, *HEAVY, *CORE) if find_spec(each) is None] == []
