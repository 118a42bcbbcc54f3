"""What an earlier run asks for that the form of own runs has no field for. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.lab import forms
from app.lab.naming import describe, title
from labs.spec import Fault, RunSpec

_MOST_NAMED = 6


@dataclass(frozen=True)
class Beyond:
    """A run in words, what of it only JSON says, and the run that the fields say instead; `href` is where it is set up
    without its faults, empty where it has none."""

    words: str
    says: str
    instead: str
    href: str


def beyond_form(run_id: int, typed: Mapping[str, str]) -> Beyond | None:
    """Of a run that is to be run again, as `forms.settings_of_run` filled it in; None where the form holds it."""
    if "spec" not in typed:
        return None
    spec = RunSpec.model_validate_json(typed["spec"])
    names = list(_differences(spec, typed))
    is_planned = bool(names) and all(isinstance(each, Fault) for each in names)
    said = [said_of_fault(each) if isinstance(each, Fault) else each for each in names]
    more = f" and {len(said) - _MOST_NAMED} more" if len(said) > _MOST_NAMED else ""
    return Beyond(
        words=f"{title(spec)}: {describe(spec)}",
        says=", ".join(said[:_MOST_NAMED]) + more,
        instead=f"without the fault{'s' if len(spec.faults) > 1 else ''}" if is_planned else "as these fields say",
        href=f"/lab?again={run_id}&change=faults:none#ff" if spec.faults else "",
    )


def _differences(spec: RunSpec, typed: Mapping[str, str]) -> Iterator[Fault | str]:
    """Faults, and then the fields that are otherwise than the form's run has them."""
    yield from spec.faults
    if spec.options is not None:
        yield "its program with its options"
        return
    try:
        form = RunSpec.model_validate(forms.spec_of_form(typed))
    except ValueError:
        form = RunSpec.model_validate(forms.spec_of_form({}))
    its, the_forms = _flat(spec), _flat(form)
    for path, value in its.items():
        if path != "faults" and value != the_forms.get(path):
            name = path.replace(".", " ") if path.startswith("compression") else forms.called(path).lower()
            yield f"{name} {_said(path, value)}"


def said_of_fault(fault: Fault) -> str:
    """What a fault does, in words."""
    if fault.kind == "nan":
        return f"make a weight of rank {fault.rank} NaN at step {fault.step}"
    return f"{fault.kind} rank {fault.rank} at step {fault.step}"


def _flat(spec: RunSpec) -> dict[str, object]:
    """Values by path, of the sections that both runs of training have."""
    flat: dict[str, object] = {}
    for name, value in spec.model_dump(mode="json").items():
        if name in ("model", "training", "parallel", "compression") and isinstance(value, dict):
            flat |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            flat[name] = value
    return flat


def _said(path: str, value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "on", False: "off", None: "none"}[value]
    return json.dumps(value) if isinstance(value, dict | list) else forms.value_called(path, value)
