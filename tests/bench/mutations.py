"""Every change that mutation testing makes to a module, one at a time.

Not changed: texts, annotations, decorators, `strict` of a zip (a guard against our own mistakes), and the limits of a
formula's inputs, which are declarations that test_formula_registry holds to "finite inside", not claims on training.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

DECLARED = {"minimum", "maximum", "strict"}
LARGE = 1e6  # from here on a number is doubled: one more would be within rounding
LONGEST_SHOWN = 70
MODULE = ""  # the function of what is not in one
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
class Place:
    """One change: where it is, by line and by the qualified name of the function, what it is, and doing it."""

    line: int
    function: str
    change: str
    do: Callable[[], None]


def places(tree: ast.Module) -> Iterator[Place]:
    """Every change that can be made to `tree`, always in the same order."""
    for node, parent, function in _walked(tree, MODULE, MODULE):
        for change, do in _changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            around = parent if isinstance(node, ast.Constant) and isinstance(parent, ast.expr | ast.keyword) else node
            yield Place(node.lineno, function, f"{_shown(around)}: {change}", do)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPPED and not _is_text(node.left) and not _is_text(node.right):
            yield _swap(node, op)
        case ast.BoolOp(op=op):
            yield _swap(node, op)
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                yield _swap_comparison(node, index, op)
        case ast.UnaryOp(op=ast.USub()):
            yield "no minus", partial(setattr, node, "op", ast.UAdd())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            twice = ast.copy_location(ast.UnaryOp(ast.Not(), operand), operand)
            yield "no not", partial(setattr, node, "operand", twice)
        case ast.Constant(value=bool() | int() | float() as value):
            other: Any = not value if isinstance(value, bool) else value * 2 if value >= LARGE else value + 1
            yield f"{value!r} → {other!r}", partial(setattr, node, "value", other)
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            nothing = ast.copy_location(ast.Constant(None), value)
            yield "return None", partial(setattr, node, "value", nothing)


def _swap(node: ast.BinOp | ast.BoolOp, op: ast.AST) -> tuple[str, Callable[[], None]]:
    other = SWAPPED[type(op)]
    return f"{type(op).__name__} → {other.__name__}", partial(setattr, node, "op", other())


def _swap_comparison(node: ast.Compare, index: int, op: ast.AST) -> tuple[str, Callable[[], None]]:
    other = SWAPPED[type(op)]
    return f"{type(op).__name__} → {other.__name__}", partial(node.ops.__setitem__, index, other())


def _walked(node: ast.AST, function: str, prefix: str) -> Iterator[tuple[ast.AST, ast.AST, str]]:
    """Every node with what it is part of and its function, but those of annotations, decorators and declared limits."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or (isinstance(child, ast.keyword) and child.arg in DECLARED):
                continue
            yield child, node, function
            inner, inside = function, prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner, inside = prefix + child.name, f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.ClassDef):
                inside = f"{prefix}{child.name}."
            yield from _walked(child, inner, inside)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
