"""The form of a new sweep: what it starts with, and what was typed into it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.core.errors import Violation
from app.lab.forms import called, choice_called, get, path_called, value_called, value_meant
from app.lab.sweeps.knobs import DATA, STRATEGY, Knob, Value

EXAMPLE = {
    "model": "gpt-mini",
    "training": {"sequence": 128, "micro_batch": 2, "steps": 6},
    "parallel": {"data": 1},
    "device": "cpu",
}
_BATCH = called("training.micro_batch")
# By a name of their own, what is typed for sweeps that answer a question; two of them give laws of `app.lab.fitting`
# their points.
READY: Mapping[str, Mapping[str, str]] = {
    "activations": {
        "name": "What grows with the square",
        "field_1": called("training.sequence"),
        "values_1": "64, 128, 256",
        "field_2": called("training.attention"),
        "values_2": "flash, full",
    },
    "recomputation": {
        "name": "What recomputation costs",
        "steps": "30",
        "field_1": _BATCH,
        "values_1": "1, 2, 4, 8, 16",
        "field_2": called("training.recompute"),
        "values_2": "none, full",
    },
    "strategies": {
        "name": "What sharding costs",
        "steps": "20",
        "field_1": _BATCH,
        "values_1": "1, 2, 4, 8, 16",
        "field_2": called("parallel.zero"),
        "values_2": "DDP, FSDP",
    },
}


@dataclass(frozen=True)
class SweepForm:
    """What was typed."""

    name: str = ""
    spec: str = ""
    field_1: str = ""
    values_1: str = ""
    field_2: str = ""
    values_2: str = ""
    steps: str = ""

    @classmethod
    def of(cls, typed: Mapping[str, str]) -> SweepForm:
        return cls(**{name: typed.get(name, "") for name in cls.__dataclass_fields__})


def form_like(like: str | None) -> SweepForm:
    """A form filled in: with one of those that are `READY`, else with the example."""
    start = form_of(EXAMPLE)
    typed = READY.get(like or "", {"field_1": _BATCH, "values_1": "1, 2, 4, 8, 16"})
    return SweepForm.of({**vars(start), **typed})


def form_of(spec: Mapping[str, Any]) -> SweepForm:
    """A form that starts from a run: its steps have a field of their own."""
    training = spec.get("training")
    if spec.get("program", "train") != "train" or not isinstance(training, Mapping) or "steps" not in training:
        return SweepForm(spec=json.dumps(spec, indent=2))
    rest = {name: value for name, value in training.items() if name != "steps"}
    return SweepForm(spec=json.dumps({**spec, "training": rest}, indent=2), steps=str(training["steps"]))


def turned_again(form: SweepForm, knobs: Iterable[Knob]) -> SweepForm:
    """The form with the knobs of a sweep that was made before."""
    typed = {"field_1": "", "values_1": "", "field_2": "", "values_2": ""}
    for number, knob in enumerate(knobs, 1):
        values = ", ".join(_typed(knob.field, each) for each in knob.values)
        typed |= {f"field_{number}": called(knob.field), f"values_{number}": values}
    return replace(form, **typed)


def _typed(path: str, value: Value) -> str:
    """As it would be typed: a choice by its name."""
    if choice_called(path, value) is not None:
        return value_called(path, value)
    return value if isinstance(value, str) else json.dumps(value)


def read_form(form: SweepForm) -> tuple[object, list[Knob], list[Violation]]:
    """The spec and the knobs that were typed, and what cannot be read of them: no spec then, or its steps."""
    typed = ((form.field_1, form.values_1), (form.field_2, form.values_2))
    knobs = [
        Knob(path_called(field), tuple(_values(path_called(field), values)) if values.strip() else ())
        for number, (field, values) in enumerate(typed)
        if number == 0 or field.strip() or values.strip()
    ]
    try:
        spec: object = json.loads(form.spec)
    except (ValueError, RecursionError) as error:
        return None, knobs, [Violation("spec", form.spec[:80], f"This is not JSON: {error}.", "a RunSpec as JSON")]
    spec, wrong = _with_steps(spec, form.steps.strip())
    return base_of(spec, {knob.field for knob in knobs}), knobs, wrong


def _with_steps(spec: object, steps: str) -> tuple[object, list[Violation]]:
    """The spec with the steps that stand in their own field, unless it says others itself."""
    training = spec.get("training") if isinstance(spec, Mapping) else None
    if not steps or not isinstance(spec, Mapping) or not isinstance(training or {}, Mapping):
        return spec, []
    meant = value_meant("training.steps", steps)
    there = get(spec, "training.steps", meant)
    if there != meant:
        message = f"The JSON below says {there} steps."
        return spec, [Violation("training.steps", steps, message, "the same here, or none in one of the two")]
    return {**spec, "training": {**(training or {}), "steps": meant}}, []


def base_of(spec: object, turned: Collection[str]) -> object:
    """The spec that these fields are turned in. Strategies differ in what goes between data ranks: one becomes two."""
    if STRATEGY not in turned or DATA in turned or not isinstance(spec, Mapping) or get(spec, DATA, 1) != 1:
        return spec
    parallel = spec.get("parallel") or {}
    return {**spec, "parallel": {**parallel, "data": 2}} if isinstance(parallel, Mapping) else spec


def _values(path: str, text: str) -> Iterator[Value]:
    """JSON between commas; what is no JSON is a word, of the form's where it has such a choice."""
    try:
        found = json.loads(f"[{text}]")
        if isinstance(found, list):
            yield from found
            return
    except (ValueError, RecursionError):
        pass
    for part in text.split(","):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            yield value_meant(path, part)
