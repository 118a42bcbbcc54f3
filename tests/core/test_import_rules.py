"""The rules on who may know whom cover what is not written yet: a package without a place in them is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from app.core.settings import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def packages(folder: str) -> set[str]:
    return {
        f"{folder.replace('/', '.')}.{path.parent.name}"
        for path in (ROOT / folder).glob("*/__init__.py")
        if len(list(path.parent.rglob("*.py"))) > 2
    }


def test_every_room_has_an_order_that_names_all_its_modules() -> None:
    ordered = {each for contract in CONTRACTS if contract.get("exhaustive") for each in contract["containers"]}
    assert packages("app") | packages("app/theory") <= ordered
    assert "app" in ordered


def test_every_room_has_a_door() -> None:
    behind = {
        each for contract in CONTRACTS if contract["type"] == "protected" for each in contract["protected_modules"]
    }
    everybodys = {"app.core", "app.content", "app.grading", "app.reveal", "app.theory"}  # each module is a door
    rooms = packages("app") - everybodys
    assert {f"{room}.*" for room in rooms} - behind == set()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code alone, to be added to."""
    folder = tmp_path_factory.mktemp("house")
    for package in ("app", "labs", "worker"):
        shutil.copytree(ROOT / package, folder / package, ignore=lambda at, names: _no_code(Path(at), names))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _no_code(at: Path, names: list[str]) -> list[str]:
    return [name for name in names if not (at / name).is_dir() and not name.endswith(".py")]


def rules(folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports_command as run; run()"]
    done = subprocess.run(
        [*command, "--no-logo", "--no-cache"], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, " ".join(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("added", "text", "named"),
    [
        ("app/tutoring/__init__.py", "", "tutoring"),
        ("app/theory/quantum/__init__.py", "", "quantum"),
        ("app/theory/planner/oracle.py", "", "oracle"),
        ("app/planner/wizard.py", "", "wizard"),
        ("app/study/pages/peeking.py", "from app.practice import queries\n", "app.practice.queries"),
        ("worker/peeking.py", "from app.search import service\n", "app.search.service"),
    ],
)
def test_what_is_new_needs_its_place(copied: Path, added: str, text: str, named: str) -> None:
    new = copied / added
    new.parent.mkdir(exist_ok=True)
    new.write_text(text)
    try:
        code, said = rules(copied)
        assert code == 1
        assert named in said
    finally:
        new.unlink()
        if new.name == "__init__.py":
            shutil.rmtree(new.parent)


@pytest.mark.slow
def test_as_it_stands_the_copy_keeps_the_rules(copied: Path) -> None:
    assert rules(copied)[0] == 0
