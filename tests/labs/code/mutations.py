"""Mutants of a lab's reference: each operator, number, comparison, call and statement changed once.

`python -m tests.labs.code.mutations [CL01 ...]` has each judged and prints those that were not caught.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterable, Iterator

from app.content.catalogue import catalogue
from app.content.code_labs import CodeLab
from labs.code.grading import judge
from labs.code.sandbox import Pool
from labs.spec.code import Submission

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_COLLECTIVES = {
    "all_reduce": "barrier",
    "all_gather_single": "reduce_scatter_single",
    "reduce_scatter_single": "all_gather_single",
    "send": "recv",
    "recv": "send",
    "isend": "irecv",
    "irecv": "isend",
}
_REDUCTIONS = {"SUM": "MAX", "AVG": "SUM", "MAX": "SUM", "MIN": "MAX"}
DEADLINE_SECONDS = 3.0
# Lines that may be changed and stay right: their mutants are other solutions, not mistakes.
HARMLESS = {
    "CL01": {"if rank % 2 == 0:": "somebody must listen while others speak; who is free"},
    "CL02": {"while reach < n:": "in one more round there is nobody left to send to"},
    "CL14": {"own = torch.empty_like(parts[0])": "the parts are all as long"},
    "CL13": {"index = index.where(is_mine, 0)": "any place will do for a target that is masked"},
    "CL12": dict.fromkeys(
        ("gradient = gradient.clone()", "x = x.clone()"), "nobody else holds what is reduced in place"
    ),
}


def mutants(lab: CodeLab) -> Iterator[tuple[str, str]]:
    """What was changed where in a lab's reference, and the program."""
    tree, lines = ast.parse(lab.reference), lab.reference.splitlines()
    harmless = {number for number, line in enumerate(lines, 1) if line.strip() in HARMLESS.get(lab.id, ())}
    for index, node in enumerate(ast.walk(tree)):
        if getattr(node, "lineno", None) in harmless:
            continue
        for what, change in _changes(node, harmless):
            mutant = copy.deepcopy(tree)
            target = list(ast.walk(mutant))[index]
            change(target)
            ast.fix_missing_locations(mutant)
            yield f"line {getattr(node, 'lineno', '?')}: {what}", ast.unparse(mutant)


def _changes(node: ast.AST, harmless: set[int]) -> Iterator[tuple[str, object]]:
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OTHER:
        yield f"{type(node.op).__name__} changed", lambda each: setattr(each, "op", _OTHER[type(each.op)]())
    if isinstance(node, ast.BoolOp):
        yield f"{type(node.op).__name__} changed", lambda each: setattr(each, "op", _OTHER[type(each.op)]())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER:
        yield "comparison changed", lambda each: each.ops.__setitem__(0, _OTHER[type(each.ops[0])]())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield f"{node.value} + 1", lambda each: setattr(each, "value", each.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"not {node.value}", lambda each: setattr(each, "value", not each.value)
    if isinstance(node, ast.Attribute) and node.attr in {**_COLLECTIVES, **_REDUCTIONS}:
        other = {**_COLLECTIVES, **_REDUCTIONS}[node.attr]
        yield f"{node.attr} for {other}", lambda each: setattr(each, "attr", other)
    if isinstance(node, ast.If):
        yield "condition turned", lambda each: setattr(each, "test", ast.UnaryOp(ast.Not(), each.test))
    for name in ("body", "orelse"):
        statements = getattr(node, name, None)
        if isinstance(statements, list) and not isinstance(node, ast.Module | ast.ClassDef):
            for place, statement in enumerate(statements):
                kept = _is_words(statement) or isinstance(statement, ast.FunctionDef | ast.Pass)
                if not kept and statement.lineno not in harmless:
                    said = ast.unparse(statement).splitlines()[0][:50]
                    yield f"without `{said}`", _without(name, place)


def _without(name: str, place: int) -> object:
    return lambda each: getattr(each, name).__setitem__(place, ast.Pass())


def _is_words(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def survivors(lab: CodeLab, pool: Pool) -> tuple[list[str], int]:
    """The mutants that pass, and how many there were."""
    every = list(mutants(lab))
    passed = [what for what, code in every if _passes(lab, code, pool)]
    return passed, len(every)


def _passes(lab: CodeLab, code: str, pool: Pool) -> bool:
    return judge(Submission(lab=lab.id, code=code), pool, lambda _: None, DEADLINE_SECONDS).passed


def main(labs: Iterable[str]) -> int:
    pool, passed, count, wanted = Pool(), 0, 0, set(labs)
    try:
        for lab in catalogue().labs.values():
            found, made = survivors(lab, pool) if not wanted or lab.id in wanted else ([], 0)
            passed, count = passed + len(found), count + made
            sys.stdout.write("".join(f"{lab.id} not caught: {what}\n" for what in found))
    finally:
        pool.end()
    sys.stdout.write(f"{count - passed} of {count} mutants caught: {1 - passed / max(1, count):.1%}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
