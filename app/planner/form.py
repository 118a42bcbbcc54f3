"""A form as it was sent: read field by field, and what cannot be or does not go together replaced and said so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import log, prod
from typing import Any

from app.core.errors import SpecError, Violation
from app.planner.fields import BY_PATH, FIELDS, OWN, REACH, SEARCH, SHAPE, SIZED, is_asked, is_listed
from app.planner.readers import Tokens
from app.theory.hardware import GPUS
from app.theory.planner import parse_estimate_request
from app.theory.planner.own_models import LEAST_PARAMETERS, MOST_PARAMETERS, own_model
from app.theory.presets import PRESETS
from app.units import count_text
from labs.spec import SCHEDULE_RULES, Model

MOST_REACH = 1e18  # seconds or bytes: more is nothing to draw
MOST_ROUNDS = 8  # of putting something that goes in the place of what does not
AXES = ("tensor", "pipeline", "context")  # what the GPUs must share out to
OWN_SEQUENCE = 4096  # tokens, of a model of one's own


@dataclass(frozen=True)
class Unread:
    """A part of an address that no field reads, as one of an older release or one that was typed wrong; `near` is the
    field it may have meant, if any is like it."""

    name: str
    text: str
    near: str


@dataclass(frozen=True)
class Replaced:
    """What is wrong with a field, and what is shown in its place."""

    violation: Violation
    shown: str

    @property
    def text(self) -> str:
        return f"{self.violation.message} Accepted: {self.violation.accepted}. Showing {self.shown}."


@dataclass(frozen=True)
class Form:
    """A form as read: what was typed, what is wrong with it by field, the values that are shown instead, and what of
    the address no field reads. `asked_ranks` are the GPUs there are; a plan takes as many as its axes divide."""

    typed: Mapping[str, str]
    replaced: Mapping[str, Replaced]
    values: Mapping[str, Any]
    asked_ranks: int
    reach: tuple[float, float] = (0.0, 0.0)  # seconds and bytes, see REACH
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
        return 1 if self.is_own else _product(self.values)

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
        return _request(self.values, self.data, self.values["zero"] if zero is None else zero)


def read_form(form: Mapping[str, str]) -> Form:
    """A form from an address. What cannot be read or does not go together is replaced, and says so at its place."""
    typed = {name: form.get(name, field.start).strip() for name, field in FIELDS.items()}
    replaced: dict[str, Replaced] = {}
    values = {name: _read(name, typed, replaced) for name in FIELDS}
    typed |= {name: FIELDS[name].start for name in typed if not is_listed(name, typed[name])}
    asked = int(values["ranks"])
    if values["model"] != OWN:
        if values["model"] == SIZED:
            _check_size(values, replaced)
        if isinstance(values["global_batch"], Tokens):
            values["global_batch"] = _sequences(values)
        values = _reconciled(values, replaced)
    unread = tuple(unread_of(form, (*FIELDS, SEARCH, REACH)))
    return Form(typed, replaced, values, asked, _reach(form.get(REACH, "")), unread)


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
    sequence, stages = sequence_of(values), int(values["pipeline"])
    together = SCHEDULE_RULES[values["schedule"]].micro_batches_come_in(stages, int(values["virtual_stages"]))
    each = int(values["micro_batch"]) * max(1, int(values["ranks"]) // _product(values)) * together
    wanted: Tokens = values["global_batch"]
    return max(1, round(wanted.value / sequence / each)) * each


def sequence_of(values: Mapping[str, Any]) -> int:
    """Tokens of a sequence: as typed, or the model's own."""
    preset = PRESETS.get(values["model"])
    return int(values["sequence"] or (preset.sequence if preset else OWN_SEQUENCE))


def _reach(text: str) -> tuple[float, float]:
    """Seconds and bytes; nothing where they cannot be read, for they only widen a picture."""
    try:
        seconds, held = (float(part) for part in text.split("_"))
    except ValueError:
        return 0.0, 0.0
    return (seconds, held) if 0 < seconds < MOST_REACH and 0 < held < MOST_REACH else (0.0, 0.0)


def unread_of(form: Mapping[str, str], known: tuple[str, ...]) -> Iterator[Unread]:
    """What of an address none of the `known` fields reads."""
    for name, text in form.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
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


def _reconciled(values: dict[str, object], wrong: dict[str, Replaced]) -> dict[str, object]:
    """Values that make a plan: first axes the model allows, then as many GPUs as they need, then what is left."""
    alone = {"expert": 1, "global_batch": None, "shard": None}
    if values["pipeline"] == 1:  # nothing to schedule: the page does not show these then
        values = {**values, "schedule": _neutral("schedule"), "virtual_stages": 1}
    axes = _until_right(lambda kept: _request({**kept, **alone}, 1, kept["zero"]), values, wrong)
    axes = _whole_ranks(axes, wrong)
    return _until_right(lambda kept: _request(kept, kept["ranks"] // _product(kept), kept["zero"]), axes, wrong)


def _until_right(
    request: Callable[[dict[str, Any]], dict[str, Any]], values: dict[str, object], wrong: dict[str, Replaced]
) -> dict[str, object]:
    """Whatever breaks a rule gets what goes with it, one round after another."""
    values, replaced = dict(values), set[str]()
    for _ in range(MOST_ROUNDS):
        try:
            parse_estimate_request(request(values))
        except SpecError as error:
            first = {violation.field: violation for violation in reversed(error.violations)}
            for violation in error.violations:
                if violation is first[violation.field]:  # once replaced, the rest is moot
                    _replace(violation, values, wrong, replaced)
        else:
            return values
    return {name: _neutral(name) for name in FIELDS} | {"model": values["model"]}


def _replace(violation: Violation, values: dict[str, object], wrong: dict[str, Replaced], replaced: set[str]) -> None:
    """Put what is accepted in the place of what broke a rule; if that did not help, of what it broke it with."""
    paths = (violation.field, *violation.involves)
    names = [BY_PATH[path] for path in paths if path in BY_PATH and is_asked(BY_PATH[path], str(values["model"]))]
    name = next((each for each in names if each not in replaced), names[0] if names else "")
    if not name:
        return
    if name in replaced:
        values[name] = _neutral(name)
    else:
        is_field = BY_PATH.get(violation.field) == name
        values[name] = _accepted(name, violation.accepted if is_field else "", values)
    replaced.add(name)
    shown = values[name] if values[name] is not None else FIELDS[name].absent
    text = f"{shown:,}" if isinstance(shown, int) else str(shown)
    known = wrong.get(name)
    wrong[name] = Replaced(known.violation if known else replace(violation, field=name), text)


def _accepted(name: str, accepted: str, values: Mapping[str, Any]) -> object:
    """What goes, of a list what is nearest to what was typed: if possible, so that the GPUs share out as well."""
    if name == "global_batch":
        return _fewer_sequences(values)
    typed = values[name]
    listed = [int(each) for each in accepted.removesuffix(" or more").split(", ") if each.isdecimal()]
    if name in AXES:
        listed = [each for each in listed if values["ranks"] % _product({**values, name: each}) == 0] or listed
    if listed and isinstance(typed, int):
        return min(listed, key=lambda each: (abs(log(each / typed)) if each else 0.0, each))
    return listed[0] if listed else _neutral(name)


def _fewer_sequences(values: Mapping[str, Any]) -> int:
    """The largest global batch up to the one typed that shares out to ranks, micro-batches and stages."""
    stages, rule = int(values["pipeline"]), SCHEDULE_RULES[values["schedule"]]
    each = int(values["micro_batch"]) * (int(values["ranks"]) // _product(values))
    together = each * rule.micro_batches_come_in(stages, int(values["virtual_stages"]))
    least = each * rule.least_micro_batches(stages) if stages > 1 else each
    return max(-(-least // together) * together, int(values["global_batch"]) // together * together)


def _whole_ranks(values: dict[str, Any], wrong: dict[str, Replaced]) -> dict[str, Any]:
    """The GPUs must share out to the other axes; data parallelism is what is left."""
    others, ranks = _product(values), values["ranks"]
    if ranks % others == 0:
        return values
    low = max(others, ranks // others * others)
    accepted = f"a multiple of {others:,}, such as {low:,} or {(ranks // others + 1) * others:,}"
    message = f"{ranks:,} GPUs are no multiple of tensor × pipeline × context = {others:,}."
    wrong.setdefault("ranks", Replaced(Violation("ranks", ranks, message, accepted), f"{low:,}"))
    return {**values, "ranks": low}


def _text(name: str, value: object) -> str:
    """A value as its field would be typed; empty where the field is left to itself."""
    if isinstance(value, bool):
        return FIELDS[name].start
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def _neutral(name: str) -> object:
    field = FIELDS[name]
    text = field.neutral or field.start
    return field.read(name, text) if text else None


def _product(values: Mapping[str, Any]) -> int:
    return prod(int(values[axis]) for axis in AXES)


def _request(values: Mapping[str, Any], data: int, zero: int) -> dict[str, Any]:
    if values["model"] == OWN:
        return {
            "model": {"parameters": values["parameters"]},
            "training": {"state_layout": values["layout"]},
            "parallel": {"data": data, "zero": zero},
            "cluster": {"gpu": values["gpu"]},
        }
    request: dict[str, Any] = {"model": values["model"], "training": {}, "parallel": {"data": data}, "cluster": {}}
    if values["model"] == SIZED:
        request["model"] = model_of(values).model_dump(exclude_defaults=True)
    for name, field in FIELDS.items():
        part, _, key = field.path.partition(".")
        if not part or part == "model" or values[name] is None or _is_by_itself(name, values[name]):
            continue
        if key:
            request[part][key] = values[name]
        else:
            request[part] = values[name]
    request["parallel"]["zero"] = zero
    # learned positions are part of a preset's count, so its own sequence is said
    request["training"].setdefault("sequence", sequence_of(values))
    return request


def _is_by_itself(name: str, value: object) -> bool:
    """Whether a request says the same without it."""
    return (name, value) in (("attention", "flash"), ("attention_kernel", "auto"))


def model_of(values: Mapping[str, Any]) -> Model:
    """The shape that is planned: a published one, or one's own."""
    if values["model"] != SIZED:
        return PRESETS[values["model"]].model
    given = {name: values[name] for name in SHAPE if values[name] is not None}
    return own_model(values["parameters"], values["architecture"], given, sequence_of(values))
