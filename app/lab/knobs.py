"""An experiment's knobs: which settings there are, which of them go together, and the spec they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.content.schemas import Experiment, Knob, Setting
from app.core.errors import DomainError, Violation
from app.lab.forms import get, put
from labs.spec import SpecError, parse_run_spec

Settings = tuple[Setting, ...]  # one for each knob, in the experiment's order


@dataclass(frozen=True)
class Offer:
    """A value of a knob on the page. `refused` says why it does not go with the other knobs as they are."""

    text: str
    label: str
    chosen: bool
    refused: str | None = None


@dataclass(frozen=True)
class Choice:
    """A knob with its chosen value, and everything it offers."""

    knob: Knob
    value: Setting
    offers: tuple[Offer, ...]


def own_settings(experiment: Experiment) -> Settings:
    """The knobs as the experiment's spec has them, or at their first value."""
    return tuple(_value_of(knob, written(knob, experiment.spec)) for knob in experiment.knobs)


def read_settings(experiment: Experiment, typed: Mapping[str, str]) -> Settings:
    """The knobs as a form or an address has them; one it does not name is as in the experiment's own spec.

    Raises DomainError with every value that is not offered, and SpecError where the values do not go together.
    """
    found, violations = [], []
    for knob, own in zip(experiment.knobs, own_settings(experiment), strict=True):
        asked = typed.get(knob.field)
        values = own if asked is None else next((each for each in knob.values if knob.text_of(each) == asked), None)
        if values is None:
            accepted = ", ".join(map(knob.text_of, knob.values))
            violations.append(Violation(knob.field, asked, f"{knob.label} is not offered at {asked!r}.", accepted))
        else:
            found.append(values)
    if violations:
        raise DomainError("A knob cannot be turned so far.", violations)
    parse_run_spec(spec_with(experiment, tuple(found)))
    return tuple(found)


def offer(experiment: Experiment, settings: Settings) -> list[Choice]:
    """Every knob with what it offers beside the others as they are in `settings`."""
    return [
        Choice(knob, settings[at], tuple(_offer(experiment, settings, at, value) for value in knob.values))
        for at, knob in enumerate(experiment.knobs)
    ]


def spec_with(experiment: Experiment, settings: Sequence[Setting]) -> dict[str, Any]:
    """The experiment's RunSpec data with its knobs so."""
    spec = deepcopy(dict(experiment.spec))
    for knob, value in zip(experiment.knobs, settings, strict=True):
        for field, each in knob.settings_at(value).items():
            put(spec, field, list(each) if isinstance(each, tuple) else each)
    return spec


def settings_of_run(experiment: Experiment, spec: Mapping[str, object]) -> dict[str, str]:
    """How a run had the experiment's knobs, as an address says it."""
    return {knob.field: knob.text_of(written(knob, spec)) for knob in experiment.knobs}


def written(knob: Knob, spec: Mapping[str, object]) -> object:
    """What a spec has where the knob turns; of a named one the value whose fields are all as in the spec, else None."""
    if not knob.is_named:
        return get(spec, knob.field, knob.values[0])
    for value in knob.values:
        fields = knob.settings_at(value)
        if all(knob.text_of(get(spec, field, None)) == knob.text_of(each) for field, each in fields.items()):
            return value
    return None


def possible_settings(experiment: Experiment) -> Iterator[Settings]:
    """Every way to set the knobs that makes a spec a run accepts."""
    for settings in product(*(knob.values for knob in experiment.knobs)):
        if _refusal(experiment, settings) is None:
            yield settings


def reachable_settings(experiment: Experiment) -> set[Settings]:
    """What one gets to from the experiment's own settings by turning one knob at a time."""
    possible, found = set(possible_settings(experiment)), set[Settings]()
    edge = {own_settings(experiment)} & possible
    while edge:
        found |= edge
        edge = {each for each in possible - found if any(_turns(each, other) == 1 for other in edge)}
    return found


def _offer(experiment: Experiment, settings: Settings, at: int, value: Setting) -> Offer:
    knob, chosen = experiment.knobs[at], settings[at] == value
    refused = None if chosen else _refusal(experiment, (*settings[:at], value, *settings[at + 1 :]))
    return Offer(knob.text_of(value), knob.label_of(value), chosen, refused)


def _refusal(experiment: Experiment, settings: Settings) -> str | None:
    """Why a run does not accept the knobs so; None if it does."""
    try:
        parse_run_spec(spec_with(experiment, settings))
    except SpecError as error:
        return " ".join(violation.message for violation in error.violations)
    return None


def _turns(one: Settings, other: Settings) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _value_of(knob: Knob, written: object) -> Setting:
    """The knob's value that `written` is, or its first: the content check says where a spec has none of them."""
    return next((value for value in knob.values if knob.text_of(value) == knob.text_of(written)), knob.values[0])
