"""Units stand in one table: no module has an hour, a day or a binary prefix of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import app as package

APP = Path(package.__file__).parent
SECONDS = {3600, 86400, 604800, 31557600}


def _units_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value in SECONDS:
            yield ast.unparse(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, power = (part.value if isinstance(part, ast.Constant) else None for part in (node.left, node.right))
            if (base, power) in {(2, 20), (2, 30), (1024, 2), (1024, 3)}:
                yield ast.unparse(node)


def test_only_the_table_of_units_says_what_a_unit_is() -> None:
    modules = {path.relative_to(APP).as_posix(): path for path in APP.rglob("*.py")}
    found = {name: sorted(_units_in(ast.parse(path.read_text()))) for name, path in modules.items()}
    assert {name for name, units in found.items() if units} == {"units.py"}, found


@pytest.mark.parametrize("line", ["x = 3600.0", "24 * 3600", "2**30", "2.0**30", "1024**3"])
def test_a_unit_is_noticed_however_it_is_written(line: str) -> None:
    assert list(_units_in(ast.parse(line)))
