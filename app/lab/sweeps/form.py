"""The form of a new sweep: what it starts with, and what was typed into it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from app.core.errors import DomainError, Violation
from app.lab.forms import called, get, path_called, value_meant
from app.lab.sweeps.knobs import DATA, STRATEGY, Knob, Value, check_knobs

_EXAMPLE_TRAINING = {"sequence": 128, "micro_batch": 2, "steps": 6}
EXAMPLE = {
    "model": "gpt-mini",
    "training": _EXAMPLE_TRAINING,
    "parallel": {"data": 1},
    "device": "cpu",
}


@dataclass(frozen=True)
class SweepForm:
    """What was typed, with what is wrong by field."""

    name: str = ""
    spec: str = ""
    field_1: str = ""
    values_1: str = ""
    field_2: str = ""
    values_2: str = ""

    @classmethod
    def of(cls, typed: Mapping[str, str]) -> SweepForm:
        return cls(**{name: typed.get(name, "") for name in cls.__dataclass_fields__})


def form_like(like: str | None) -> SweepForm:
    """A form filled in: with a sweep that gives a law of `app.lab.fitting` its points, else with the example."""
    spec, batch = json.dumps(EXAMPLE, indent=2), called("training.micro_batch")
    if like == "activations":
        sequences = "64, 128, 256"
        return SweepForm(
            "What grows with the square",
            spec,
            called("training.sequence"),
            sequences,
            called("training.attention"),
            "flash, full",
        )
    if like == "recomputation":
        return SweepForm(
            "What recomputation costs",
            json.dumps({**EXAMPLE, "training": {**_EXAMPLE_TRAINING, "steps": 30}}, indent=2),
            batch,
            "1, 2, 4, 8, 16",
            called("training.recompute"),
            "none, full",
        )
    return SweepForm(spec=spec, field_1=batch, values_1="1, 2, 4, 8, 16")


def read_form(form: SweepForm) -> tuple[object, list[Knob]]:
    """The spec and the knobs that were typed. Raises DomainError with every mistake, by field."""
    wrong: list[Violation] = []
    try:
        spec: object = json.loads(form.spec)
    except (ValueError, RecursionError) as error:
        spec = None
        wrong.append(Violation("spec", form.spec[:80], f"This is not JSON: {error}.", "a RunSpec as JSON"))
    knobs = []
    for number, (field, values) in enumerate(((form.field_1, form.values_1), (form.field_2, form.values_2)), start=1):
        if number == 2 and not field.strip() and not values.strip():
            continue
        if not field.strip():
            wrong.append(Violation(f"field_{number}", "", "A knob turns a field.", "such as Micro-batch or Layers"))
        elif not values.strip():
            wrong.append(Violation(f"values_{number}", "", "A knob turns to some values.", "such as 1, 2, 4"))
        else:
            path = path_called(field)
            knobs.append(Knob(path, tuple(_values(path, values))))
    if spec is None and len(wrong) == 1:
        wrong += check_knobs({}, knobs)
    if wrong:
        raise DomainError("No run of it was started.", wrong)
    return base_of(spec, {knob.field for knob in knobs}), knobs


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
