"""A field of a spec that a sweep turns, and its values: what one can be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from app.core.errors import Violation
from app.lab.forms import get
from app.words import counted, listed
from labs.spec import RunSpec

MOST_RUNS = 16
SOME_FIELDS = (  # of the first knob, and of the second
    "such as Micro-batch, Layers or Data ranks, or a path of the spec as training.attention",
    "such as Strategy, Recompute or Attention, or a path of the spec as training.attention",
)
SOME_VALUES = ("such as 1, 2, 4", "such as 1, 2, 4, or words as DDP, FSDP")
STRATEGY, DATA = "parallel.zero", "parallel.data"

Value = int | float | str | bool | list[Any]


@dataclass(frozen=True)
class Knob:
    """A field of the spec, and what it is turned to."""

    field: str
    values: tuple[Value, ...]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Knob:
        return cls(record["field"], tuple(record["values"]))


def is_number(value: object) -> bool:
    """Whether a value can stand on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_knobs(spec: object, knobs: Sequence[Knob]) -> Iterator[Violation]:
    """What is wrong with the knobs themselves, whatever runs they come to."""
    if not isinstance(spec, Mapping):
        yield Violation("spec", str(spec)[:80], "A RunSpec is an object.", '{"model": "gpt-mini", …}')
        return
    for number, knob in enumerate(knobs, start=1):
        if not is_field(spec, knob.field):
            message = f"{knob.field[:60]!r} is no field of a run." if knob.field else "A knob turns a field."
            yield Violation(f"field_{number}", knob.field[:60], message, SOME_FIELDS[number > 1])
        if not knob.values:
            yield Violation(f"values_{number}", "", "A knob turns to some values.", SOME_VALUES[number > 1])
        if len({json.dumps(value) for value in knob.values}) < len(knob.values):
            yield Violation(f"values_{number}", list(knob.values), "A value is there twice.", "each value once")
    if len(knobs) == 2 and knobs[0].field == knobs[1].field != "":
        yield Violation("field_2", knobs[1].field, "Both knobs turn the same field.", "another field, or none")
    if words := [value for value in knobs[0].values if not is_number(value)] if knobs else []:
        are = "are no numbers" if len(words) > 1 else "is no number"
        message = f"{listed([repr(each)[:60] for each in words])} {are}, and the first knob goes along the axis."
        yield Violation("values_1", words, message, f"{SOME_VALUES[False]}; words for the second knob")
    if not 1 <= len(knobs) <= 2:
        yield Violation("field_1", len(knobs), "A sweep turns one or two fields.", "1 or 2 knobs")
    runs = prod(len(knob.values) for knob in knobs)
    if all(knob.values for knob in knobs) and not 2 <= runs <= MOST_RUNS:
        yield Violation("values_1", runs, f"{counted(runs, 'run')} would be made.", f"2 to {MOST_RUNS} runs in all")


def is_field(spec: Mapping[str, Any], field: str) -> bool:
    """Whether a run has such a field: known of any training, or of this program's options."""
    program = spec.get("program", "train")
    try:
        blank = RunSpec.model_validate({"program": program, "model": _SHAPE}).model_dump()
    except ValueError:
        return True  # the program itself is refused, by its name
    return get(blank, field, _MISSING) is not _MISSING and not isinstance(get(blank, field, None), Mapping)


_MISSING = object()
_SHAPE = {"layers": 1, "hidden": 8, "heads": 1, "vocab": 256}
