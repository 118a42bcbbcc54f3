"""The support matrix as a page: what a run can do, how exact it is, and the spec that asks for it; and programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labs.spec import MAX_WORLD_SIZE, PROGRAMS, SUPPORT, Options, Row

_FAMILIES = {
    "data": "Data parallelism",
    "tensor": "Tensor and sequence parallelism",
    "context": "Context parallelism",
    "expert": "Expert parallelism",
    "pipeline": "Pipeline parallelism",
    "combined": "Combined",
    "numerics": "Precision, recomputation, optimizers, offload",
    "compression": "Compressed gradients",
}
_MODEL = {"layers": 8, "hidden": 128, "heads": 8, "vocab": 256}


def page() -> dict[str, object]:
    """The rows by family, each with a spec that can be run as it is."""
    families = [(title, [_row(row) for row in SUPPORT if row.family == family]) for family, title in _FAMILIES.items()]
    return {
        "families": [(title, rows) for title, rows in families if rows],
        "count": len(SUPPORT),
        "programs": [_program(kind) for kind in PROGRAMS.values()],
    }


def example(row: Row) -> dict[str, object]:
    """A spec that does what `row` says, on the fewest ranks it is tested with."""
    spec: dict[str, object] = {
        "model": {**_MODEL, **row.model},
        "training": {"sequence": 64, "micro_batch": 1, "steps": 20, **row.training},
        "parallel": dict(row.layouts[0]),
    }
    if row.compression:
        spec["compression"] = dict(row.compression)
    return spec


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


def _layout_text(layout: Mapping[str, object]) -> str:
    """`data 2, tensor 2, with sequence parallelism`."""
    said = (f"{name.replace('_', ' ')} {value}" for name, value in layout.items() if value is not True)
    flags = (f"with {name.replace('_parallel', ' parallelism')}" for name, value in layout.items() if value is True)
    return ", ".join([*said, *flags])


def _row(row: Row) -> dict[str, object]:
    return {
        "row": row,
        "layouts": [_layout_text(layout) for layout in row.layouts],
        "exact": "to the last digits of fp64" if row.is_exact else f"within {row.tolerance:g}, relative",
        "spec": json.dumps(example(row)),
    }
