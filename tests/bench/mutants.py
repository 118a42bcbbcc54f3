"""Mutation spot-check: what fast tests of a package notice when its code is changed in one place.

`python -m tests.bench mutants [package …]` takes a seeded sample of changes (an operator, a comparison, a condition, a
number, a return value), and runs tests against each in a process of its own, forked from one that has the heavy
libraries loaded and nothing of ours: the quickest of those that call the changed function first, and where they pass
every fast test of the package. What fails or never ends has noticed; what passes is printed, and is either a gap in
the tests or named in `EQUIVALENT` with the reason why nobody could notice.
"""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

import pytest

from tests.bench.mutations import places

ROOT = Path(__file__).parents[2]  # nothing of ours may be loaded here: each fork loads it with its change
SAMPLE, SEED = 150, 20261122
MOST_FIRST = 25  # tests of a function that are tried before all
HEAVY = ("hypothesis", "numpy", "pydantic", "fastapi.testclient", "sqlalchemy", "fsrs", "yaml", "nh3")


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
    function: str
    change: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.function or 'module'}: {self.change}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays when lines move."""
        return self.path, self.function, self.change


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

# What no test can notice, by file, function and change, with the reason.
EQUIVALENT: dict[tuple[str, str, str], str] = {}


def mutants(package: Package) -> list[Mutant]:
    """Every change that can be made."""
    return [
        Mutant(str(path.relative_to(ROOT)), number, place.line, place.function, place.change)
        for path in package.sources()
        for number, place in enumerate(places(ast.parse(path.read_text())))
    ]


class _Changed(SourceFileLoader):
    """Loads one module with its change."""

    def __init__(self, fullname: str, path: str, place: int) -> None:
        super().__init__(fullname, path)
        self.place = place

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_text())
        list(places(tree))[self.place].do()
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


class _Recorder:
    """A plugin of pytest that notes which functions of `sources` each test calls, and how long it takes."""

    def __init__(self, sources: Collection[str]) -> None:
        self.sources = frozenset(sources)
        self.called: set[tuple[str, str]] = set()
        self.tests: dict[str, list[Any]] = {}  # seconds, functions

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.called, began = set(), time.monotonic()
        sys.setprofile(self._note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            self.tests[item.nodeid] = [time.monotonic() - began, sorted(self.called)]

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename in self.sources:
            self.called.add((frame.f_code.co_filename, _without_anonymous(frame.f_code.co_qualname)))


def _without_anonymous(name: str) -> str:
    """The function that a lambda or a comprehension stands in, as `mutations` names it."""
    parts = name.split(".")
    while parts and parts[-1].startswith("<"):
        parts.pop()
    return ".".join(parts)


def tests_by_function(package: Package) -> dict[tuple[str, str], list[str]]:
    """Which tests call a function, the quickest first. Raises RuntimeError where one fails as the code is."""
    sources = [str(path) for path in package.sources()]
    with tempfile.TemporaryDirectory(prefix="rz-mutants-") as folder:
        record = Path(folder) / "calls.json"
        if run_tests(package, None, 900, package.tests, (sources, record)) != 0:
            raise RuntimeError(f"The tests fail as they are: {' '.join(package.tests)}")
        tests: dict[str, tuple[float, list[list[str]]]] = json.loads(record.read_text())
    found: dict[tuple[str, str], list[str]] = {}
    for test, (_, called) in sorted(tests.items(), key=lambda each: each[1][0]):
        for path, function in called:
            found.setdefault((str(Path(path).relative_to(ROOT)), function), []).append(test)
    return found


def run_tests(
    package: Package,
    mutant: Mutant | None,
    limit_seconds: float,
    tests: Sequence[str],
    recording: tuple[list[str], Path] | None = None,
) -> int | None:
    """pytest's exit status with the change made, None where the time was over. `recording`: of which files to note the
    calls, and where to."""
    child = os.fork()
    if child == 0:
        _be_tested(package, mutant, tests, recording)
    ends = time.monotonic() + limit_seconds
    while time.monotonic() < ends:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _be_tested(
    package: Package, mutant: Mutant | None, tests: Sequence[str], recording: tuple[list[str], Path] | None
) -> NoReturn:
    """The forked process: silent, and gone with what pytest found."""
    code = 3
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        if mutant is not None:
            sys.meta_path.insert(0, _Finder(mutant))
        recorder = _Recorder(recording[0]) if recording else None
        left_out = [f"--deselect={test}" for test in package.left_out]
        options = ["-x", "-q", "-p", "no:cacheprovider", *left_out, *tests]
        code = int(pytest.main(options, plugins=[recorder] if recorder else []))
        if recorder and recording:
            recording[1].write_text(json.dumps(recorder.tests))
    finally:
        os._exit(code)


def _notice(package: Package, mutant: Mutant, first: Sequence[str], limit_seconds: float) -> str:
    """What the tests do with the change: "passed", "failed", or "late" where the time was over."""
    if first:
        status = run_tests(package, mutant, limit_seconds, first)
        if status in (None, 1):
            return "late" if status is None else "failed"
    status = run_tests(package, mutant, limit_seconds, package.tests)
    return "late" if status is None else "failed" if status else "passed"


def check(name: str) -> dict[str, Any]:
    """The sample of a package against its tests. Raises RuntimeError where they fail without any change."""
    package = PACKAGES[name]
    everything = mutants(package)
    drawn = random.Random(f"{SEED} {name}").sample(everything, min(SAMPLE, len(everything)))
    began = time.monotonic()
    calls = tests_by_function(package)
    limit = 20 + 4 * (time.monotonic() - began)
    survived, equivalent, late = [], [], 0
    for mutant in drawn:
        outcome = _notice(package, mutant, calls.get((mutant.path, mutant.function), [])[:MOST_FIRST], limit)
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
