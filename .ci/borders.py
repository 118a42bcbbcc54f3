"""What one room hands another has a type: no function that others call takes or gives a dict of anything.

A room is a folder of `app`; `labs` and `worker` are one each. A function is called by others where a module outside its
room imports it, also through what another module passes on.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("app", "labs", "worker")
UNTYPED = re.compile(r"\b(dict|Mapping)\[str, Any\]")
ROOT = Path(__file__).resolve().parents[1]

# Where what is handed over has no shape of ours.
FREE = {
    "app.content.recipes.composed_of": "what a sitting stored, as the release that stored it wrote it",
    "app.content.recipes.generate": "what a sitting stores, as JSON",
    "app.content.rubric_schemas.make_points": "the values that an expression may name",
    "app.core.idempotency.once": "a reply as JSON, stored and given again as it was",
    "app.lab.takers.most_gpus": "devices as workers of any release describe them",
    "labs.spec.reading.violation_of": "an error as pydantic and FastAPI give it",
}

Modules = dict[str, ast.Module]
Import = tuple[str, str, str]  # the module, the name in it, what it is called here
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _modules() -> Modules:
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {_name(path): ast.parse(path.read_text("utf-8")) for path in paths}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _room(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "app" else parts[0]


def _untyped(modules: Modules) -> dict[str, int]:
    """The line of every function that takes or gives such a dict, by its full name."""
    return {
        f"{module}.{node.name}": node.lineno
        for module, tree in modules.items()
        for node in tree.body
        if isinstance(node, Function)
        and UNTYPED.search(f"{ast.unparse(node.args)} {ast.unparse(node.returns) if node.returns else ''}")
    }


def _calls(tree: ast.Module, imports: list[Import], modules: Modules) -> Iterator[tuple[str, str]]:
    """What a module has of others: the module, and the name in it."""
    whole = {}
    for module, name, alias in imports:
        if f"{module}.{name}" in modules:
            whole[alias] = f"{module}.{name}"
        else:
            yield module, name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
            yield whole[node.value.id], node.attr


def _imports(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name, alias.asname or alias.name) for alias in node.names)


def _defined(module: str, name: str, imports: dict[str, list[Import]], most: int = 4) -> str:
    """The full name of what `module` calls `name`, wherever it has it from."""
    for source, original, alias in imports.get(module, ()):
        if alias == name and source in imports and most:
            return _defined(source, original, imports, most - 1)
    return f"{module}.{name}"


def untyped_borders() -> Iterator[str]:
    """Functions called across rooms that hand over what has no type, and permissions that nothing needs."""
    modules = _modules()
    imports = {module: list(_imports(tree)) for module, tree in modules.items()}
    lines, called = _untyped(modules), {}
    for user, tree in modules.items():
        for module, name in _calls(tree, imports[user], modules):
            function = _defined(module, name, imports)
            if function in lines and _room(function) != _room(user):
                called.setdefault(function, user)
    for function, user in called.items():
        if function not in FREE:
            yield f"{function}:{lines[function]}: takes or gives a dict of anything, and {user} calls it"
    yield from (f".ci/borders.py: {function} needs no permission" for function in FREE if function not in called)


if __name__ == "__main__":
    sys.exit("\n".join(untyped_borders()) or None)
