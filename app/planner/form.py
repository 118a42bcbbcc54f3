"""A form as it was sent: read field by field, and what cannot be or does not go together replaced and said so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from app.core.errors import SpecError, Violation
from app.planner.fields import FIELDS, OWN, SEARCH, SIZED, is_asked, is_listed
from app.planner.labels import MEANT
from app.planner.mending import Replaced, batch_rule_of, model_of, product, reconciled, request_of, sequence_of
from app.planner.readers import Tokens
from app.theory.hardware import GPUS
from app.theory.planner.own_models import LEAST_PARAMETERS, MOST_PARAMETERS
from app.units import count_text
from labs.spec import Model


@dataclass(frozen=True)
class Unread:
    """A part of an address that no field reads, as one of an older release or one that was typed wrong; `near` is the
    field it may have meant, if any is like it."""

    name: str
    text: str
    near: str


@dataclass(frozen=True)
class Form:
    """A form as read: what was typed, what is wrong with it by field, the values that are shown instead, and what of
    the address no field reads. `asked_ranks` are the GPUs there are; a plan takes as many as its axes divide."""

    typed: Mapping[str, str]
    replaced: Mapping[str, Replaced]
    values: Mapping[str, Any]
    asked_ranks: int
    batch_asked: int | Tokens | None  # as typed, before it was counted in sequences or replaced
    unread: tuple[Unread, ...] = ()

    @property
    def errors(self) -> dict[str, str]:
        """What stands at each field that is wrong."""
        return {name: each.text for name, each in self.replaced.items()}

    @property
    def mended(self) -> dict[str, str]:
        """The fields that go together: what is shown in place of what is wrong."""
        shown = {name: self.values[name] for name in self.replaced}
        return {name: _text(name, value) for name, value in shown.items()}

    @property
    def is_own(self) -> bool:
        return bool(self.values["model"] == OWN)

    @property
    def data(self) -> int:
        """Data-parallel ranks: what the other axes leave of the GPUs."""
        return int(self.values["ranks"]) // self._others

    @property
    def gpus_per_node(self) -> int:
        """As typed, or as many as the GPU's scale-up link joins; no more than the plan takes."""
        return min(self._joined, int(self.values["ranks"]))

    @property
    def asked_per_node(self) -> int:
        """The same of all GPUs there are."""
        return min(self._joined, self.asked_ranks)

    @property
    def _joined(self) -> int:
        return int(self.values["gpus_per_node"] or GPUS[self.values["gpu"]].scale_up_gpus)

    @property
    def divisor(self) -> int:
        """What the number of GPUs must be a multiple of: tensor × pipeline × context."""
        return self._others

    @property
    def _others(self) -> int:
        return 1 if self.is_own else product(self.values)

    @property
    def is_sized(self) -> bool:
        """Whether the model is one's own and its shape derived from its size."""
        return bool(self.values["model"] == SIZED)

    @property
    def shape(self) -> Model | None:
        """The shape of the model; None of a size alone."""
        return None if self.is_own else model_of(self.values)

    def request(self, zero: int | None = None) -> dict[str, Any]:
        """The EstimateRequest of the form, at its own ZeRO stage or another one."""
        return request_of(self.values, self.data, self.values["zero"] if zero is None else zero)


def read_form(form: Mapping[str, str]) -> Form:
    """A form from an address. What cannot be read or does not go together is replaced, and says so at its place."""
    typed = {name: form.get(name, field.start).strip() for name, field in FIELDS.items()}
    replaced: dict[str, Replaced] = {}
    values = {name: _read(name, typed, replaced) for name in FIELDS}
    typed |= {name: FIELDS[name].start for name in typed if not is_listed(name, typed[name])}
    asked, batch = int(values["ranks"]), values["global_batch"]
    if values["model"] != OWN:
        if values["model"] == SIZED:
            _check_size(values, replaced)
        if isinstance(values["global_batch"], Tokens):
            values["global_batch"] = _sequences(values)
        values = reconciled(values, replaced)
    unread = tuple(unread_of(form, (*FIELDS, SEARCH)))
    return Form(typed, replaced, values, asked, batch, unread)


def _check_size(values: dict[str, Any], wrong: dict[str, Replaced]) -> None:
    """A shape is derived for what could be one."""
    if not LEAST_PARAMETERS <= values["parameters"] <= MOST_PARAMETERS:
        accepted = f"{count_text(LEAST_PARAMETERS)} to {count_text(MOST_PARAMETERS)}"
        message = f"No shape is derived for {count_text(values['parameters'])} parameters."
        field = FIELDS["parameters"]
        wrong["parameters"] = Replaced(Violation("parameters", values["parameters"], message, accepted), field.start)
        values["parameters"] = field.read("parameters", field.start)


def _sequences(values: Mapping[str, Any]) -> int:
    """A batch said in tokens as the nearest number of sequences that the plan shares out."""
    wanted: Tokens = values["global_batch"]
    return wanted.sequences(sequence_of(values), *batch_rule_of(values))


def unread_of(form: Mapping[str, str], known: tuple[str, ...]) -> Iterator[Unread]:
    """What of an address none of the `known` fields reads."""
    for name, text in form.items():
        if name not in known:
            meant = MEANT.get(name.lower().replace("-", "_"))
            near = [meant] if meant in known else get_close_matches(name, known, 1)
            yield Unread(name, text, near[0] if near else "")


def _read(name: str, typed: Mapping[str, str], wrong: dict[str, Replaced]) -> Any:
    field = FIELDS[name]
    if not typed[name] and field.absent:
        return None
    try:
        return field.read(name, typed[name])
    except SpecError as error:
        (violation,) = error.violations
        if is_asked(name, typed["model"]):
            wrong[name] = Replaced(replace(violation, field=name), field.start or field.absent)
        return field.read(name, field.start) if field.start else None


def _text(name: str, value: object) -> str:
    """A value as its field would be typed; empty where the field is left to itself."""
    if isinstance(value, bool):
        return FIELDS[name].start
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)
