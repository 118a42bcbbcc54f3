"""Mutation spot-check: what fast tests of a package notice when its code is changed in one place.

`python -m tests.bench mutants [package …]` takes a seeded sample of changes (an operator, a comparison, a condition, a
number, a return value), and runs that package's fast tests against each in a process of its own, forked from one that
has the heavy libraries loaded and nothing of ours. What fails or never ends has noticed; what passes is printed, and
is either a gap in the tests or named in `EQUIVALENT` with the reason why nobody could notice.

Not changed: texts, annotations, decorators, `strict` of a zip (a guard against our own mistakes), and the limits of a
formula's inputs, which are declarations that test_formula_registry holds to "finite inside", not claims on training.
"""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).parents[2]  # nothing of ours may be loaded here: each fork loads it with its change
SAMPLE, SEED = 120, 20261122
HEAVY = ("hypothesis", "numpy", "pydantic", "fastapi.testclient", "sqlalchemy", "fsrs", "yaml", "nh3")
DECLARED = {"minimum", "maximum", "strict"}
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Package:
    """Where changes are made, and the tests that are to notice: the quickest first, for a run ends at the first."""

    sources: Callable[[], list[Path]]
    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutant:
    """One change: `place` counts the places of a file that can be changed, in the order of `places`."""

    path: str
    place: int
    line: int
    change: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.change}"


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

# What no test can notice, with the reason. Keys are names of mutants without the line.
EQUIVALENT: dict[str, str] = {}


def places(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Line, description and deed of every change that can be made to `tree`."""
    for node in _walked(tree):
        match node:
            case ast.BinOp(op=op) if type(op) in SWAPPED and not _is_text(node.left) and not _is_text(node.right):
                yield node.lineno, *_swap(node, op)
            case ast.BoolOp(op=op):
                yield node.lineno, *_swap(node, op)
            case ast.Compare(ops=ops):
                for index, op in enumerate(ops):
                    yield node.lineno, *_swap_comparison(node, index, op)
            case ast.UnaryOp(op=ast.USub()):
                yield node.lineno, "no minus", partial(setattr, node, "op", ast.UAdd())
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                twice = ast.copy_location(ast.UnaryOp(ast.Not(), operand), operand)
                yield node.lineno, "no not", partial(setattr, node, "operand", twice)
            case ast.Constant(value=bool() | int() | float() as value):
                other: Any = not value if isinstance(value, bool) else value + 1
                yield node.lineno, f"{value!r} → {other!r}", partial(setattr, node, "value", other)
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                nothing = ast.copy_location(ast.Constant(None), value)
                yield node.lineno, "return None", partial(setattr, node, "value", nothing)


def _swap(node: ast.BinOp | ast.BoolOp, op: ast.AST) -> tuple[str, Callable[[], None]]:
    other = SWAPPED[type(op)]
    return f"{type(op).__name__} → {other.__name__}", partial(setattr, node, "op", other())


def _swap_comparison(node: ast.Compare, index: int, op: ast.AST) -> tuple[str, Callable[[], None]]:
    other = SWAPPED[type(op)]
    return f"{type(op).__name__} → {other.__name__}", partial(node.ops.__setitem__, index, other())


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those of annotations, decorators and declared limits."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or (isinstance(child, ast.keyword) and child.arg in DECLARED):
                continue
            yield child
            yield from _walked(child)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mutants(package: Package) -> list[Mutant]:
    """Every change that can be made."""
    return [
        Mutant(str(path.relative_to(ROOT)), place, line, change)
        for path in package.sources()
        for place, (line, change, _) in enumerate(places(ast.parse(path.read_text())))
    ]


class _Changed(SourceFileLoader):
    """Loads one module with its change."""

    def __init__(self, fullname: str, path: str, place: int) -> None:
        super().__init__(fullname, path)
        self.place = place

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_text())
        list(places(tree))[self.place][2]()
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


class _Finder:
    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.found = mutant, False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith("app.") else None
        if spec is None or spec.origin != str(ROOT / self.mutant.path):
            return None
        spec.loader = _Changed(fullname, spec.origin, self.mutant.place)
        return spec


def run_tests(package: Package, mutant: Mutant | None, limit_seconds: float) -> str:
    """What the tests of `package` do with the change: "passed", "failed", or "late" where the time was over."""
    child = os.fork()
    if child == 0:
        _be_tested(package, mutant)
    ends = time.monotonic() + limit_seconds
    while time.monotonic() < ends:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "late"


def _be_tested(package: Package, mutant: Mutant | None) -> NoReturn:
    """The forked process: silent, and gone with what pytest found."""
    code = 3
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        if mutant is not None:
            sys.meta_path.insert(0, _Finder(mutant))
        left_out = [f"--deselect={test}" for test in package.left_out]
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *left_out, *package.tests]))
    finally:
        os._exit(code)


def check(name: str) -> dict[str, Any]:
    """The sample of a package against its tests. Raises RuntimeError where they fail without any change."""
    package = PACKAGES[name]
    everything = mutants(package)
    drawn = random.Random(f"{SEED} {name}").sample(everything, min(SAMPLE, len(everything)))
    began = time.monotonic()
    if run_tests(package, None, 300) != "passed":
        raise RuntimeError(f"The tests of {name} fail as they are: {' '.join(package.tests)}")
    limit = 20 + 4 * (time.monotonic() - began)
    survived, equivalent, late = [], [], 0
    for mutant in drawn:
        outcome = run_tests(package, mutant, limit)
        late += outcome == "late"
        if outcome == "passed":
            known = f"{mutant.path} {mutant.change}" in EQUIVALENT
            (equivalent if known else survived).append(mutant)
            sys.stdout.write(f"    survived{' (equivalent)' if known else ''}: {mutant.name}\n")
            sys.stdout.flush()
    killed = len(drawn) - len(survived) - len(equivalent)
    return {
        "places": len(everything),
        "drawn": len(drawn),
        "killed": killed,
        "late": late,
        "equivalent": [asdict(each) for each in equivalent],
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
    os.nice(10)
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
