"""Mutation spot-check: what fast tests of a package notice when its code is changed in one place.

`python -m tests.bench mutants [package …]` takes a seeded sample of changes (an operator, a comparison, a condition, a
number, a return value), and runs the tests of the package that can notice it in a process of its own
(`mutant_runs.py`). What fails or never ends has noticed; what passes is printed, and is either a gap in the tests or
named in `EQUIVALENT` with the reason why nobody could notice.
"""

from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.bench.mutant_runs import ROOT, Mutant, Package, Runner
from tests.bench.mutations import places

SAMPLE, SEED = 150, 20261122
HEAVY = ("hypothesis", "numpy", "pydantic", "fastapi.testclient", "sqlalchemy", "fsrs", "yaml", "nh3")


def _of(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def _formulas() -> list[Path]:
    """The registered entries, and the modules whose functions they bind."""
    code = (
        "import sys; from app.theory.formulas import FORMULAS;"
        "print(*{sys.modules[f.function.__module__].__file__ for f in FORMULAS.by_name.values()}, sep='\\n')"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted({*_of("app/theory/formulas"), *map(Path, found.stdout.split())})


PACKAGES = {
    "formulas": Package(
        _formulas,
        (
            *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/theory").glob("test_worked_*.py")),
            "tests/theory/test_state_layouts.py",
            "tests/theory/test_formula_properties.py",
            "tests/theory/test_displayed_formulas.py",
            "tests/theory/test_formula_registry.py",
        ),
        # sixteen seconds of simulation
        (
            "tests/theory/test_formula_registry.py::test_any_point_gives_a_finite_number_or_names_the_inputs_that_clash[exposed_transfers]",
        ),
    ),
    "fsrs": Package(
        lambda: _of("app/study/fsrs"),
        ("tests/study/test_losses.py", "tests/study/test_scheduling.py", "tests/study/test_memory_model.py"),
    ),
    "questions": Package(
        lambda: _of("app/grading/questions"),
        (
            "tests/grading/test_question_values.py",
            "tests/grading/test_one_question.py",
            "tests/practice/test_part_kinds.py",
        ),
    ),
}

# What no test can notice, by file, function and change, with the reason.
_QUESTIONS = "app/grading/questions"
_LOSSES, _SCHEDULING = "app/study/fsrs/losses.py", "app/study/fsrs/scheduling.py"
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (f"{_QUESTIONS}/number.py", "", "repr=False: False → True"): "only how a question prints in a failing test",
    (f"{_QUESTIONS}/shuffling.py", "", "20: 20 → 21"): "twenty shuffles of two items all miss once in a million",
    (f"{_QUESTIONS}/configuration.py", "ConfigurationQuestion._verdict", "ratio <= 1 + 1e-09: LtE → Lt"): (
        "the margin is for rounding; no ratio of two sums of seconds is exactly 1 + 1e-9"
    ),
    (_SCHEDULING, "choose_day", "0: 0 → 1"): "no day is less than one away: `fuzz_range` starts there",
    (_SCHEDULING, "_choices", "0: 0 → 1"): "no day is less than one away: `fuzz_range` starts there",
    (_SCHEDULING, "rate", "card_id=0: 0 → 1"): "the id of a card that nobody sees",
    (_LOSSES, "losses", "enable_fuzzing=False: False → True"): "fuzz moves a due date, which no loss looks at",
    (_LOSSES, "losses", "card_id=0: 0 → 1"): "the id of a card that nobody sees",
    (_LOSSES, "", "datetime(1, 1, 1, tzinfo=UTC): 1 → 2"): "only differences of days count, whatever the first is",
    (_LOSSES, "_at", "day - 1: 1 → 2"): "only differences of days count, whatever the first is",
    (_LOSSES, "_at", "day - 1: Sub → Add"): "only differences of days count, whatever the first is",
}


def mutants(package: Package) -> list[Mutant]:
    """Every change that can be made."""
    found = []
    for path in package.sources():
        tree = ast.parse(path.read_text())
        declared = _declared(tree)
        found += [
            Mutant(
                str(path.relative_to(ROOT)),
                number,
                place.line,
                place.function,
                place.change,
                "" if place.function else declared.get(place.line, ""),
            )
            for number, place in enumerate(places(tree))
        ]
    return found


def _declared(tree: ast.Module) -> dict[int, str]:
    """By line, the name of the formula that is declared there: the second argument of `Formula`."""
    return {
        line: node.args[1].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Formula"
        if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def check(name: str) -> dict[str, Any]:
    """The sample of a package against its tests. Raises RuntimeError where they fail without any change."""
    package = PACKAGES[name]
    everything = mutants(package)
    drawn = random.Random(f"{SEED} {name}").sample(everything, min(SAMPLE, len(everything)))
    began = time.monotonic()
    runner = Runner(package)
    survived, equivalent, late = [], [], 0
    for mutant in drawn:
        outcome = runner.notice(mutant)
        late += outcome == "late"
        if outcome == "passed":
            reason = EQUIVALENT.get(mutant.key)
            (survived if reason is None else equivalent).append(mutant)
            sys.stdout.write(f"    survived{' (equivalent)' if reason else ''}: {mutant.name}\n")
            sys.stdout.flush()
    killed = len(drawn) - len(survived) - len(equivalent)
    return {
        "places": len(everything),
        "drawn": len(drawn),
        "killed": killed,
        "late": late,
        "equivalent": [{**asdict(each), "reason": EQUIVALENT[each.key]} for each in equivalent],
        "survived": [asdict(each) for each in survived],
        "share": killed / (len(drawn) - len(equivalent)),
        "seconds": round(time.monotonic() - began, 1),
    }


def main(wanted: list[str]) -> int:
    unknown = [name for name in wanted if name not in PACKAGES]
    if unknown:
        sys.stderr.write(f"There is no package {unknown[0]} here. Accepted: {', '.join(PACKAGES)}.\n")
        return 2
    os.chdir(ROOT)
    for library in HEAVY:
        import_module(library)
    folder = ROOT / "var" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    for name in wanted or PACKAGES:
        sys.stdout.write(f"{name}\n")
        found = check(name)
        (folder / f"mutants-{name}.json").write_text(json.dumps(found, indent=2) + "\n")
        sys.stdout.write(
            f"  {found['killed']} of {found['drawn'] - len(found['equivalent'])} noticed ({found['share']:.1%}), "
            f"{len(found['equivalent'])} more are equivalent; {found['places']} places, {found['seconds']} s\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
