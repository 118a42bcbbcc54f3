"""Nothing that others read is called "found", "told", "each" or "stretch": whatever it is has a name of its own.

That is classes, functions, their arguments, fields, attributes, what a module has, and the module itself.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SAY_NOTHING = frozenset(("found", "told", "each", "stretch", "stretches"))
FOLDERS = ("app", "labs", "worker", "migrations")
ROOT = Path(__file__).resolve().parents[1]


def nameless(folder: Path) -> Iterator[str]:
    """Where something is called by such a word."""
    for path in sorted(folder.rglob("*.py")):
        for line, name in ((1, path.stem), *_names(ast.parse(path.read_text("utf-8")))):
            if name.strip("_").lower() in SAY_NOTHING:
                yield f"{path.relative_to(ROOT)}:{line}: {name!r} says nothing of what it is"


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
                yield node.lineno, name
                every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
                yield from ((argument.lineno, argument.arg) for argument in every if argument)
            case ast.ClassDef(name=name, body=body):
                yield node.lineno, name
                yield from _assigned(body)
            case ast.Module(body=body):
                yield from _assigned(body)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            parts = (part for target in targets for part in ast.walk(target))
            yield from ((part.lineno, part.id) for part in parts if isinstance(part, ast.Name))


if __name__ == "__main__":
    sys.exit("\n".join(line for folder in FOLDERS for line in nameless(ROOT / folder)) or None)
