"""Running tests with one change made to a module: in a fork that loads it changed, or that has its function's code put
in place.

The second takes a fraction of the first, for everything is loaded already; it cannot change what runs when a module is
loaded, and what a cache holds may hide a change from it. So what it fails is noticed, and what it passes is run again
in a process that has loaded nothing of ours. Only tests that can notice are run: those that call the function; for what
is in no function those that name the formula it declares, or call anything in the file.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NoReturn

import pytest

from tests.bench.mutations import places

ROOT = Path(__file__).parents[2]  # nothing of ours may be loaded here: each fork loads it with its change
HEAVY_FIXTURES = frozenset({"content", "database", "client", "postgres", "sqlite"})
MOST_FIRST = 120  # tests of a function or a file that are tried: the quickest
PROFILED_SECONDS = 0.3  # of each test: what it calls later it mostly called before
LOCALS = ".<locals>"


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
    declares: str = ""  # the name of the formula it stands in, where it is in no function

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.function or 'module'}: {self.change}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays when lines move."""
        return self.path, self.function, self.change


class _Changed(SourceFileLoader):
    """Loads one module with its change."""

    def __init__(self, fullname: str, path: str, place: int) -> None:
        super().__init__(fullname, path)
        self.place = place

    def get_code(self, fullname: str) -> CodeType:
        return _compiled(self.path, self.place)


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


def _compiled(path: str, place: int) -> CodeType:
    tree = ast.parse(Path(path).read_text())
    list(places(tree))[place].do()
    return compile(ast.fix_missing_locations(tree), path, "exec")


def _put_in_place(mutant: Mutant) -> bool:
    """Give the changed function its new code; False where the change is in no function that is there."""
    path, outermost = str(ROOT / mutant.path), mutant.function.split(LOCALS)[0]
    codes = {code.co_qualname: code for code in _codes(_compiled(path, mutant.place))}
    found = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType)
        and each.__code__.co_filename == path
        and each.__code__.co_qualname == outermost
    ]
    for function in found:
        function.__code__ = codes[outermost]
    return bool(found)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of every function and class in `code`."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


class _Recorder:
    """A plugin of pytest that notes which functions of `sources` each test calls, and how long it takes."""

    def __init__(self, sources: Collection[str]) -> None:
        self.sources = frozenset(sources)
        self.called: set[tuple[str, str]] = set()
        self.until = 0.0
        self.tests: dict[str, list[Any]] = {}  # whether it needs a database or the catalogue, seconds, functions

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.called, began = set(), time.monotonic()
        self.until = began + PROFILED_SECONDS
        sys.setprofile(self._note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            is_heavy = not HEAVY_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
            self.tests[item.nodeid] = [is_heavy, time.monotonic() - began, sorted(self.called)]

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename in self.sources:
            self.called.add((frame.f_code.co_filename, _without_anonymous(frame.f_code.co_qualname)))
        if time.monotonic() > self.until:
            sys.setprofile(None)


def _without_anonymous(name: str) -> str:
    """The function that a lambda or a comprehension stands in, as `mutations` names it."""
    parts = name.split(".")
    while parts and parts[-1].startswith("<"):
        parts.pop()
    return ".".join(parts)


class Runner:
    """The tests of a package: which of them call a function, and what they do with a change."""

    def __init__(self, package: Package) -> None:
        self.package = package
        began = time.monotonic()
        self.tests = self._record()
        self.limit_seconds = 20 + 4 * (time.monotonic() - began)
        self._warm = _Warm(package)
        if self._warm.ask(None, list(self.tests)[:MOST_FIRST], self.limit_seconds) != 0:
            raise RuntimeError("The tests fail where everything is loaded already.")

    def notice(self, mutant: Mutant) -> str:
        """What the tests do with the change: "passed", "failed", or "late" where the time was over."""
        first = self._calling(lambda call: call == (mutant.path, mutant.function))
        if first and self._warm.ask(mutant, first, 120) == 1:
            return "failed"
        again = [*self._naming(mutant.declares), *first] or self._calling(lambda call: call[0] == mutant.path)
        status = _run(lambda: _test_cold(self.package, mutant, again), self.limit_seconds)
        return "late" if status is None else "failed" if status else "passed"

    def _calling(self, wanted: Callable[[tuple[str, str]], bool]) -> list[str]:
        """The quickest tests with a call that is wanted."""
        return [test for test, calls in self.tests.items() if any(map(wanted, calls))][:MOST_FIRST]

    def _naming(self, formula: str) -> list[str]:
        """The tests whose example or parameter is this formula; none without one."""
        if not formula:
            return []
        named = re.compile(rf"\[(.+-)?{formula}[]-]")
        return [test for test in self.tests if named.search(test)]

    def _record(self) -> dict[str, list[tuple[str, str]]]:
        """The functions each test calls, the quickest first. Raises RuntimeError where one fails as the code is."""
        with tempfile.TemporaryDirectory(prefix="rz-mutants-") as folder:
            record = Path(folder) / "calls.json"
            if _run(lambda: _record_calls(self.package, record), 1800) != 0:
                raise RuntimeError(f"The tests fail as they are: {' '.join(self.package.tests)}")
            tests: dict[str, tuple[bool, float, list[list[str]]]] = json.loads(record.read_text())
        return {
            test: [(str(Path(path).relative_to(ROOT)), function) for path, function in called]
            for test, (_, _, called) in sorted(tests.items(), key=lambda each: each[1][:2])
        }


class _Warm:
    """A process that has loaded the tests, and forks for each change. It ends when nobody writes to it any more."""

    def __init__(self, package: Package) -> None:
        (self._asked, asking), (answering, self._answered) = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(asking)
            os.close(answering)
            _be_warm(package, self._asked, self._answered)
        os.close(self._asked)
        os.close(self._answered)
        self._to, self._from = os.fdopen(asking, "w"), os.fdopen(answering)

    def ask(self, mutant: Mutant | None, tests: Sequence[str], limit_seconds: float) -> int | None:
        """pytest's exit status, None where the time was over or the change cannot be put in place."""
        self._to.write(json.dumps([None if mutant is None else asdict(mutant), tests, limit_seconds]) + "\n")
        self._to.flush()
        status: int | None = json.loads(self._from.readline())
        return status


def _be_warm(package: Package, asked: int, answered: int) -> NoReturn:
    try:
        _be_silent()
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *package.tests])
        sys.modules["tests.support.shipped"].shipped()  # once, for every fork
        with os.fdopen(asked) as questions, os.fdopen(answered, "w") as answers:
            for line in questions:
                told, tests, limit_seconds = json.loads(line)
                mutant = None if told is None else Mutant(**told)
                status = _run(lambda mutant=mutant, tests=tests: _test_warm(package, mutant, tests), limit_seconds)
                answers.write(json.dumps(status) + "\n")
                answers.flush()
    finally:
        os._exit(0)


def _run(work: Callable[[], int], limit_seconds: float) -> int | None:
    """What `work` returns in a fork that is silent, None where the time was over."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            _be_silent()
            code = work()
        finally:
            os._exit(code)
    ends = time.monotonic() + limit_seconds
    while time.monotonic() < ends:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _be_silent() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def _record_calls(package: Package, record: Path) -> int:
    recorder = _Recorder([str(path) for path in package.sources()])
    status = _test(package, package.tests, [recorder])
    record.write_text(json.dumps(recorder.tests))
    return status


def _test_cold(package: Package, mutant: Mutant, tests: Sequence[str]) -> int:
    sys.meta_path.insert(0, _Finder(mutant))
    return _test(package, tests or package.tests)


def _test_warm(package: Package, mutant: Mutant | None, tests: Sequence[str]) -> int:
    """As pytest's status; 3 where the change cannot be put in place."""
    if mutant is not None and not _put_in_place(mutant):
        return 3
    return _test(package, tests or package.tests)


def _test(package: Package, tests: Sequence[str], plugins: Sequence[object] = ()) -> int:
    left_out = [f"--deselect={test}" for test in package.left_out]
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *left_out, *tests], plugins=list(plugins)))
