"""The planner's form: what each field means in an EstimateRequest, and what stands in for what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

from app.core.errors import SpecError, Violation
from app.grading.quantities import Unreadable, read_quantity
from app.theory.hardware import GPUS
from app.theory.planner import EstimateRequest, Measured, Profile, parse_estimate_request
from app.theory.planner.fields import Module
from app.theory.planner.space import GATHERS, KEEPS
from app.theory.presets import PRESETS
from app.units import count_text
from labs.spec import SCHEDULE_RULES, Precision, Recompute, Schedule, StateLayout, parse

OWN = "own"
SEARCH = "find"  # of an address besides the form's fields: which search is to be shown
REACH = "reach"  # and "seconds_bytes" that its picture must hold besides: a plan one came from stays within the axes
Reader = Callable[[str, str], Any]
MOST_REACH = 1e18  # seconds or bytes: more is nothing to draw
MOST_ROUNDS = 8  # of putting something that goes in the place of what does not


@dataclass(frozen=True)
class Field:
    """A field of the form. `path` is its place in a request; `start` is what the form opens with.

    `neutral` takes the place of a value that can be read, but does not go with the others; `absent` says in words what
    an empty field stands for.
    """

    read: Reader
    start: str
    path: str = ""
    neutral: str = ""
    absent: str = ""


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

    def request(self, zero: int | None = None) -> dict[str, Any]:
        """The EstimateRequest of the form, at its own ZeRO stage or another one."""
        return _request(self.values, self.data, self.values["zero"] if zero is None else zero)


def read_form(form: Mapping[str, str]) -> Form:
    """A form from an address. What cannot be read or does not go together is replaced, and says so at its place."""
    typed = {name: form.get(name, field.start).strip() for name, field in FIELDS.items()}
    replaced: dict[str, Replaced] = {}
    values = {name: _read(name, typed, replaced) for name in FIELDS}
    typed |= {name: FIELDS[name].start for name in typed if not _is_listed(name, typed[name])}
    asked = int(values["ranks"])
    if values["model"] != OWN:
        values = _reconciled(values, replaced)
    unread = tuple(_unread(name, form[name]) for name in form if name not in FIELDS and name not in (SEARCH, REACH))
    return Form(typed, replaced, values, asked, _reach(form.get(REACH, "")), unread)


def _is_listed(name: str, text: str) -> bool:
    """Whether the form can show what was typed: a list that lacks it would show, and send on, its first."""
    field = FIELDS[name]
    if not isinstance(field.read, _Choice):
        return True
    return text in field.read.known or (not text and bool(field.absent))


def _reach(text: str) -> tuple[float, float]:
    """Seconds and bytes; nothing where they cannot be read, for they only widen a picture."""
    try:
        seconds, held = (float(part) for part in text.split("_"))
    except ValueError:
        return 0.0, 0.0
    return (seconds, held) if 0 < seconds < MOST_REACH and 0 < held < MOST_REACH else (0.0, 0.0)


def _unread(name: str, text: str) -> Unread:
    near = get_close_matches(name, FIELDS, 1)
    return Unread(name, text, near[0] if near else "")


def _read(name: str, typed: Mapping[str, str], wrong: dict[str, Replaced]) -> Any:
    field = FIELDS[name]
    if not typed[name] and field.absent:
        return None
    try:
        return field.read(name, typed[name])
    except SpecError as error:
        (violation,) = error.violations
        if name in _OF_BOTH or (name == "parameters") == (typed["model"] == OWN):
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
    names = [_BY_PATH[path] for path in (violation.field, *violation.involves) if path in _BY_PATH]
    name = next((each for each in names if each not in replaced), names[0] if names else "")
    if not name:
        return
    if name not in replaced:
        is_field = _BY_PATH.get(violation.field) == name
        values[name] = _accepted(name, violation.accepted if is_field else "", values)
    replaced.add(name)
    shown = values[name] if values[name] is not None else FIELDS[name].absent
    text = f"{shown:,}" if isinstance(shown, int) else str(shown)
    wrong.setdefault(name, Replaced(replace(violation, field=name), text))


def _accepted(name: str, accepted: str, values: Mapping[str, object]) -> object:
    if name == "global_batch":
        return _fewer_sequences(values)
    least = accepted.removesuffix(" or more")
    return int(least) if least.isdecimal() else _neutral(name)


def _fewer_sequences(values: Mapping[str, Any]) -> int:
    """The largest global batch up to the one typed that shares out to ranks, micro-batches and stages."""
    stages = int(values["pipeline"])
    each = int(values["micro_batch"]) * (int(values["ranks"]) // _product(values))
    least = each * max(stages, SCHEDULE_RULES[values["schedule"]].least_micro_batches(stages) if stages > 1 else 1)
    return max(least, int(values["global_batch"]) // (each * stages) * each * stages)


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


def _neutral(name: str) -> object:
    field = FIELDS[name]
    text = field.neutral or field.start
    return field.read(name, text) if text else None


def _product(values: Mapping[str, Any]) -> int:
    return int(values["tensor"] * values["pipeline"] * values["context"])


def _request(values: Mapping[str, Any], data: int, zero: int) -> dict[str, Any]:
    if values["model"] == OWN:
        return {
            "model": {"parameters": values["parameters"]},
            "training": {"state_layout": values["layout"]},
            "parallel": {"data": data, "zero": zero},
            "cluster": {"gpu": values["gpu"]},
        }
    request: dict[str, Any] = {"model": values["model"], "training": {}, "parallel": {"data": data}, "cluster": {}}
    for name, field in FIELDS.items():
        part, _, key = field.path.partition(".")
        if not part or values[name] is None:
            continue
        if key:
            request[part][key] = values[name]
        else:
            request[part] = values[name]
    request["parallel"]["zero"] = zero
    # learned positions are part of a preset's count, so its own sequence is said
    request["training"].setdefault("sequence", PRESETS[values["model"]].sequence)
    return request


@dataclass(frozen=True)
class _Choice:
    """One of a list, which the form shows as such."""

    known: tuple[str, ...]
    means: Callable[[str], Any] = str

    def __call__(self, name: str, text: str) -> Any:
        if text not in self.known:
            raise SpecError([Violation(name, text, f"“{text}” is not known.", ", ".join(self.known))])
        return self.means(text)


def _choice(*known: str) -> _Choice:
    return _Choice(known)


def _number(low: float, high: float, dimension: str = "count", is_whole: bool = True) -> Reader:
    def read(name: str, text: str) -> Any:
        accepted = f"{count_text(low)} to {count_text(high)}" if dimension == "count" else "such as 50 GB/s"
        try:
            value = read_quantity(text, dimension).value
        except Unreadable as error:
            raise SpecError([Violation(name, text, str(error), accepted)]) from None
        if not low <= value <= high or (is_whole and value != int(value)):
            raise SpecError([Violation(name, text, f"“{text}” is out of range.", accepted)])
        return int(value) if is_whole else value

    return read


def _gathers(text: str) -> bool:
    """What FSDP calls reshard_after_forward: weights let go of are gathered again."""
    return text == GATHERS


def _modules(name: str, text: str) -> list[str]:
    """Modules of a layer, joined by + as a search writes them."""
    known = _choice(*get_args(Module))
    return [known(name, each.strip()) for each in text.split("+")]


def _measured(name: str, text: str) -> dict[str, Any]:
    """What `rankzero measure` prints."""
    accepted = "what rankzero measure prints"
    try:
        data = json.loads(text)
        return parse(Measured, data, lambda _: []).model_dump(exclude_none=True)
    except (ValueError, RecursionError) as error:
        why = "; ".join(map(str, error.violations)) if isinstance(error, SpecError) else "This is no JSON."
        raise SpecError([Violation(name, text, why, accepted)]) from None


def _flag(_name: str, text: str) -> bool:
    return text not in ("", "off")


FIELDS: Mapping[str, Field] = {
    "model": Field(_choice(*PRESETS, OWN), "llama-3-8b"),
    "parameters": Field(_number(1, 1e15, is_whole=False), "7B"),
    "layout": Field(_choice(*get_args(StateLayout)), "zero-16", "training.state_layout"),
    "sequence": Field(_number(1, 1e8), "", "training.sequence", absent="the model's own"),
    "global_batch": Field(_number(1, 1e7), "", "training.global_batch", absent="as many as keep the stages busy"),
    "micro_batch": Field(_number(1, 1e5), "1", "training.micro_batch"),
    "precision": Field(_choice(*get_args(Precision)), "bf16-mixed", "training.precision"),
    "recompute": Field(_choice(*get_args(Recompute)), "full", "training.recompute"),
    "recompute_modules": Field(_modules, "", "training.recompute_modules", absent="what its implementation repeats"),
    "profile": Field(_choice(*get_args(Profile)), "", "profile", absent="as the ZeRO stage suggests"),
    "ranks": Field(_number(1, 1e6), "8"),
    "zero": Field(_Choice(("0", "1", "2", "3"), int), "3", "parallel.zero"),
    "shard": Field(_number(1, 1e6), "", "parallel.shard", absent="all replicas"),
    "reshard": Field(_Choice((GATHERS, KEEPS), _gathers), "", "parallel.reshard_after_forward", absent="as usual"),
    "tensor": Field(_number(1, 1e5), "1", "parallel.tensor"),
    "sequence_parallel": Field(_flag, "off", "parallel.sequence_parallel"),
    "pipeline": Field(_number(1, 1e5), "1", "parallel.pipeline"),
    "schedule": Field(_choice(*get_args(Schedule)), "1f1b", "parallel.schedule"),
    "virtual_stages": Field(_number(1, 1e4), "1", "parallel.virtual_stages"),
    "context": Field(_number(1, 1e5), "1", "parallel.context"),
    "expert": Field(_number(1, 1e5), "1", "parallel.expert"),
    "expert_nodes": Field(_number(1, 1e3), "", "parallel.expert_nodes", absent="any number"),
    "gpu": Field(_choice(*GPUS), "h100-80gb", "cluster.gpu"),
    "gpus_per_node": Field(_number(1, 1e6), "", "cluster.gpus_per_node", absent="what its link joins"),
    "inter_node": Field(
        _number(1, 1e15, "bytes_per_second", is_whole=False),
        "",
        "cluster.inter_node_bytes_per_second",
        absent="what is usual beside this GPU",
    ),
    "measured": Field(_measured, "", "cluster.measured", absent="the data sheet"),
}
DEFAULTS: Mapping[str, str] = {name: field.start for name, field in FIELDS.items()}
_OF_BOTH = ("model", "layout", "ranks", "zero", "gpu")  # a model of which only the size is known asks for little
_BY_PATH = {field.path: name for name, field in FIELDS.items() if field.path}


def fields_of(request: EstimateRequest) -> dict[str, str]:
    """How a request divides the work and what it keeps for backward, as the form's fields say it. One that is left as
    it is by itself is empty."""
    parallel, training = request.parallel, request.training
    names = ("tensor", "pipeline", "virtual_stages", "schedule", "context", "expert", "zero")
    reshard = {None: "", True: GATHERS, False: KEEPS}[parallel.reshard_after_forward]
    return {name: str(getattr(parallel, name)) for name in names} | {
        "shard": str(parallel.shard or ""),
        "reshard": reshard,
        "expert_nodes": str(parallel.expert_nodes or ""),
        "profile": request.profile or "",
        "micro_batch": str(training.micro_batch),
        "recompute": training.recompute,
        "recompute_modules": "+".join(training.recompute_modules or ()),
        "sequence_parallel": "on" if parallel.sequence_parallel else "off",
    }
