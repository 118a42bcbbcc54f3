"""Values of the form that go together: what does not go is replaced by what is nearest to it and does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import log, prod
from typing import Any

from app.core.errors import SpecError, Violation
from app.planner.fields import BY_PATH, FIELDS, OWN, SHAPE, SIZED, is_asked
from app.planner.labels import worded
from app.theory.planner import PlanParallel, parse_estimate_request
from app.theory.planner.own_models import own_model
from app.theory.planner.rules import batch_rule
from app.theory.presets import PRESETS
from labs.spec import Model

MOST_ROUNDS = 8  # of putting something that goes in the place of what does not
AXES = ("tensor", "pipeline", "context")  # what the GPUs must share out to
OWN_SEQUENCE = 4096  # tokens, of a model of one's own


@dataclass(frozen=True)
class Replaced:
    """What is wrong with a field, and what is shown in its place."""

    violation: Violation
    shown: str

    @property
    def text(self) -> str:
        return worded(f"{self.violation.message} Accepted: {self.violation.accepted}. Showing {self.shown}.")


def reconciled(values: dict[str, object], wrong: dict[str, Replaced]) -> dict[str, object]:
    """Values that make a plan: first axes the model allows, then as many GPUs as they need, then what is left."""
    alone = {"expert": 1, "global_batch": None, "shard": None}
    if values["pipeline"] == 1:  # nothing to schedule: the page does not show these then
        values = {**values, "schedule": _neutral("schedule"), "virtual_stages": 1}
    if _go_together(values):
        return values
    axes = _until_right(lambda kept: request_of({**kept, **alone}, 1, kept["zero"]), values, wrong)
    axes = _whole_ranks(axes, wrong)
    return _until_right(_whole, axes, wrong)


def _whole(values: dict[str, Any]) -> dict[str, Any]:
    """The request of values whose axes divide the GPUs."""
    return request_of(values, values["ranks"] // product(values), values["zero"])


def _go_together(values: dict[str, Any]) -> bool:
    """Whether nothing is to be mended, as mostly."""
    if values["ranks"] % product(values):
        return False
    try:
        parse_estimate_request(_whole(values))
    except SpecError:
        return False
    return True


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
    known, accepted, is_field = wrong.get(name), violation.accepted, BY_PATH.get(violation.field) == name
    if name in AXES and is_field and (listed := _listed(name, accepted, values)):
        accepted = ", ".join(f"{each:,}" for each in listed)
    if name in replaced:
        values[name] = _neutral(name)
    else:
        values[name] = _accepted(name, violation.accepted if is_field else "", values)
    replaced.add(name)
    shown = values[name] if values[name] is not None else FIELDS[name].absent
    text = f"{shown:,}" if isinstance(shown, int) else str(shown)
    wrong[name] = Replaced(known.violation if known else replace(violation, field=name, accepted=accepted), text)


def _accepted(name: str, accepted: str, values: Mapping[str, Any]) -> object:
    """What goes, of a list what is nearest to what was typed: if possible, so that the GPUs share out as well."""
    if name == "global_batch":
        return _fewer_sequences(values)
    typed, listed = values[name], _listed(name, accepted, values)
    if listed and isinstance(typed, int):
        return min(listed, key=lambda each: (abs(log(each / typed)) if each else 0.0, each))
    return listed[0] if listed else _neutral(name)


def _listed(name: str, accepted: str, values: Mapping[str, Any]) -> list[int]:
    """The values that are accepted, of an axis those that the GPUs share out to, if there are any."""
    first, _, last = accepted.partition(" to ")
    if name in AXES and first.isdecimal() and last.isdecimal():
        listed = list(range(int(first), int(last) + 1))
        return [each for each in listed if values["ranks"] % product({**values, name: each}) == 0]
    texts = [each.replace(",", "") for each in accepted.removesuffix(" or more").split(", ")]
    listed = [int(each) for each in texts if each.isdecimal()]
    if name in AXES:
        listed = [each for each in listed if values["ranks"] % product({**values, name: each}) == 0] or listed
    return listed


def _fewer_sequences(values: Mapping[str, Any]) -> int:
    """The largest global batch up to the one typed that shares out to ranks, micro-batches and stages."""
    least, unit = batch_rule_of(values)
    return max(least, int(values["global_batch"]) // unit * unit)


def batch_rule_of(values: Mapping[str, Any]) -> tuple[int, int]:
    """(the least, what it is a multiple of) of the global batch in sequences."""
    degrees = {name: int(values[name]) for name in ("pipeline", "virtual_stages")}
    data = max(1, int(values["ranks"]) // product(values))
    parallel = PlanParallel().model_copy(update={**degrees, "data": data, "schedule": values["schedule"]})
    return batch_rule(int(values["micro_batch"]), parallel)


def _whole_ranks(values: dict[str, Any], wrong: dict[str, Replaced]) -> dict[str, Any]:
    """The GPUs must share out to the other axes; data parallelism is what is left."""
    others, ranks = product(values), values["ranks"]
    if ranks % others == 0:
        return values
    low = max(others, ranks // others * others)
    high = max(low, ranks // others * others) + others
    accepted = f"a multiple of {others:,}, such as {low:,} or {high:,}"
    message = f"{ranks:,} GPUs are no multiple of tensor × pipeline × context = {others:,}."
    wrong.setdefault("ranks", Replaced(Violation("ranks", ranks, message, accepted), f"{low:,}"))
    return {**values, "ranks": low}


def _neutral(name: str) -> object:
    field = FIELDS[name]
    text = field.neutral or field.start
    return field.read(name, text) if text else None


def product(values: Mapping[str, Any]) -> int:
    """Ranks that are not data-parallel: tensor × pipeline × context."""
    return prod(int(values[axis]) for axis in AXES)


def request_of(values: Mapping[str, Any], data: int, zero: int) -> dict[str, Any]:
    """The EstimateRequest of values that were read, at a ZeRO stage."""
    if values["model"] == OWN:
        return {
            "model": {"parameters": values["parameters"]},
            "training": {"state_layout": values["layout"]} if values["layout"] else {},
            "parallel": {"data": data, "zero": zero},
            "cluster": {"gpu": values["gpu"]} | ({"memory_bytes": values["memory"]} if values["memory"] else {}),
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


def sequence_of(values: Mapping[str, Any]) -> int:
    """Tokens of a sequence: as typed, or the model's own."""
    preset = PRESETS.get(values["model"])
    return int(values["sequence"] or (preset.sequence if preset else OWN_SEQUENCE))
