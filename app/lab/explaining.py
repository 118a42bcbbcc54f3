"""What an experiment's texts may name: the run's own spec, what theory says of it, what it measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from app.lab.forms import put
from app.lab.naming import title
from app.lab.predict import theory_record
from app.lab.quantities import quantities_of
from labs.spec import RunSpec, parse_run_spec


def run_values(spec: RunSpec, theory: Mapping[str, Any]) -> dict[str, Any]:
    """What is known before a run: `model`, `training`, `parallel`, `options` and `link` as its spec has them, `ranks`,
    `theory` by quantity, and `elsewhere(field=…, value=…)`, which is theory with one field of the spec another, or with
    several: `elsewhere(fields={…})`."""
    return {
        "run": title(spec),
        "model": spec.model,
        "training": spec.training,
        "parallel": spec.parallel,
        "options": spec.options,
        "link": spec.link,
        "ranks": spec.parallel.world_size,
        "theory": SimpleNamespace(**theory),
        "elsewhere": _elsewhere(spec),
    }


def explanation_values(spec: RunSpec, theory: Mapping[str, object], result: Mapping[str, object]) -> dict[str, object]:
    """The same and `measured`, by quantity: None where a run could not find it."""
    measured = {name: result.get(name) for name in quantities_of(spec)}
    return {**run_values(spec, theory), "measured": SimpleNamespace(**measured)}


def _elsewhere(spec: RunSpec) -> Callable[..., SimpleNamespace]:
    def theory_with(
        field: str = "", value: object = None, fields: Mapping[str, object] | None = None
    ) -> SimpleNamespace:
        data = spec.model_dump(mode="json")
        for name, each in (fields or {field: value}).items():
            put(data, name, each)
        return SimpleNamespace(**theory_record(parse_run_spec(data)))

    return theory_with
