"""The path of decisions as a page: what it is for, read from the address, and the plan it ends in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.core.errors import SpecError
from app.planner.fields import FIELDS, fields_of
from app.planner.service import grouped
from app.theory.hardware import GPUS, Gpu
from app.theory.planner import EstimateRequest
from app.theory.planner.deciding import Asked, Decision, decide
from app.theory.presets import PRESETS, Preset

NAMES = ("model", "gpu", "ranks", "sequence", "global_batch")
STEP_TOKENS = 2**22  # of a global batch that is not given: four million, as large runs take


@dataclass(frozen=True)
class Path:
    """What the page shows. `typed` and `errors` are by field; `plan` and `search` are addresses in the planner."""

    typed: Mapping[str, str]
    errors: Mapping[str, str]
    families: Mapping[str, Sequence[Preset]]
    makers: Mapping[str, Sequence[Gpu]]
    title: str
    decision: Decision
    plan: str
    search: str


def path(form: Mapping[str, str]) -> Path:
    """The decisions for a form. What cannot be read is replaced, and says so at its place."""
    typed = {name: form.get(name, FIELDS[name].start).strip() for name in NAMES}
    errors: dict[str, str] = {}
    values = {name: _read(name, typed[name], errors) for name in NAMES}
    preset, gpu, ranks = PRESETS[values["model"]], GPUS[values["gpu"]], values["ranks"]
    sequence = values["sequence"] or preset.sequence
    batch = values["global_batch"] or max(ranks, STEP_TOKENS // sequence // ranks * ranks)
    per_node = min(gpu.scale_up_gpus, ranks)
    asked = Asked(preset.name, gpu.name, ranks, per_node, sequence, batch)
    found = decide(asked)
    query = _query(found.request, values, sequence, batch) if found.request else ""
    title = f"{preset.title} on {ranks:,} × {gpu.title}, {batch:,} sequences of {sequence:,} tokens"
    families = grouped(PRESETS.values(), lambda each: each.family)
    makers = grouped(GPUS.values(), lambda each: each.maker)
    plan = f"/planner?{query}" if query else ""
    search = f"/planner?{query}&find=1#p-find" if query else ""
    return Path(typed, errors, families, makers, title, found, plan, search)


def _read(name: str, text: str, errors: dict[str, str]) -> Any:
    field = FIELDS[name]
    if not text and field.absent:
        return None
    try:
        value = field.read(name, text)
        if name == "model" and value not in PRESETS:
            raise KeyError(value)
    except SpecError as error:
        (violation,) = error.violations
        errors[name] = f"{violation.message} Accepted: {violation.accepted}."
    except KeyError:
        errors[name] = "A size alone has no layers to divide: choose a model."
    else:
        return value
    return field.read(name, field.start) if field.start else None


def _query(request: EstimateRequest, values: Mapping[str, Any], sequence: int, batch: int) -> str:
    asked = {name: str(values[name]) for name in ("model", "gpu", "ranks")}
    return urlencode({**asked, "sequence": str(sequence), "global_batch": str(batch), **fields_of(request)})
