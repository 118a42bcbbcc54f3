"""The page of strategies: the support matrix as a grid, one cell of it in words and numbers, and the programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from app.lab import matrix
from app.theory.lab_runs import RunTheory, run_theory
from labs.spec import MAX_WORLD_SIZE, PROGRAMS, SUPPORT, Options, Row, parse_run_spec


def page(axes: str, feature: str, show: str, words: str) -> dict[str, object]:
    """The grid, the chosen cell beside it, which states and axes are looked for, and the programs below."""
    lines = matrix.lines()
    chosen = matrix.find(axes, feature) or next(cell for cell in lines[0].cells if cell)
    cells = [cell for line in lines for cell in line.cells if cell]
    return {
        "lines": lines,
        "groups": [(name, list(of)) for name, of in groupby(matrix.FEATURES, lambda each: each.group)],
        "chosen": chosen,
        "detail": detail(chosen),
        "states": {state: said for state, (_, said) in matrix.STATES.items()},
        "of_state": Counter(cell.state for cell in cells),
        "layouts": sum(len(row.layouts) for row in SUPPORT),
        "show": show if show in matrix.STATES else "all",
        "words": words,
        "programs": [_program(kind) for kind in PROGRAMS.values()],
    }


@dataclass(frozen=True)
class Detail:
    """What is said beside the grid. `theory` is of the rank that holds most, and only of what can be run."""

    cell: matrix.Cell
    tests: tuple[tuple[str, str, str, str], ...]  # title, layouts, how exact, why no more
    spec: str
    theory: RunTheory | None
    collectives: int


def detail(cell: matrix.Cell) -> Detail:
    """What is tested of a cell, what its run holds and sends, or why it is refused."""
    tests = tuple(
        (each.row.title, "; ".join(map(matrix.layout_text, each.layouts)), _exactness(each.row), each.row.why)
        for each in cell.tests
    )
    theory = None if cell.state == "refused" else run_theory(parse_run_spec(cell.spec))
    sent = sum(transfer.count for transfer in theory.transfers) if theory else 0
    return Detail(cell, tests, json.dumps(cell.spec), theory, sent)


def _program(kind: type[Options]) -> dict[str, object]:
    """A program with its defaults, on the fewest ranks it has something to show on."""
    spec: dict[str, object] = {"program": kind.model_fields["program"].default}
    if kind.axis:
        spec["parallel"] = {kind.axis: max(kind.fewest_ranks, 2)}
    ranks = f"{kind.fewest_ranks} to {MAX_WORLD_SIZE}, along {kind.axis}" if kind.axis else "1"
    return {
        "title": kind.title,
        "about": kind.about,
        "ranks": ranks,
        "spec": json.dumps(spec),
        "written": _written({**spec, "options": kind.model_validate({}).model_dump(mode="json", exclude={"program"})}),
    }


def _written(spec: Mapping[str, Any]) -> str:
    """A spec as a person writes it: an option a line, short lists in one."""
    options = ",\n".join(f'    "{name}": {json.dumps(value)}' for name, value in spec["options"].items())
    fields = [f'  "{name}": {json.dumps(value)}' for name, value in spec.items() if name != "options"]
    return "{\n" + ",\n".join([*fields, f'  "options": {{\n{options}\n  }}']) + "\n}"


def _exactness(row: Row) -> str:
    return "to the last digits of fp64" if row.is_exact else f"within {row.tolerance:g}, relative"
