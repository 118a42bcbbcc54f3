"""From form fields to a RunSpec's JSON, and from violations back to the fields they belong to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.core.errors import DomainError, Violation
from app.words import capital, listed
from labs.spec import LAB_MODELS, RunSpec


@dataclass(frozen=True)
class FormField:
    """A field of the free form: where it goes in the RunSpec, and the heading it stands under."""

    name: str
    path: str
    label: str
    help: str
    choices: tuple[tuple[str, str], ...] = ()
    text: str = ""
    group: str = ""
    error: str | None = None
    has_focus: bool = False


_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+")
_SMALL = LAB_MODELS["gpt-small"]

_STRATEGIES = (
    ("0", "DDP, everything on every rank"),
    ("1", "ZeRO-1, optimizer state sharded"),
    ("2", "ZeRO-2, gradients sharded as well"),
    ("3", "FSDP, everything sharded"),
)
_SCHEDULES = (
    ("gpipe", "GPipe"),
    ("1f1b", "1F1B"),
    ("interleaved", "Interleaved 1F1B"),
    ("looped-bfs", "Looped BFS"),
    ("zero-bubble", "Zero bubble"),
    ("zbv", "ZB-V"),
    ("dualpipev", "DualPipe-V"),
)
_CHECKPOINT_MODES = (("sync", "Training waits for it"), ("async", "Training goes on"))
_RESTARTS = (("0", "Never: the run ends"), ("1", "Once"), ("2", "Twice"), ("3", "Three times"))
_DEVICES = (("auto", "GPUs if there are enough"), ("cpu", "CPU, gloo"), ("cuda", "CUDA, NCCL"))

_SPLIT, _TRAINED, _WHERE = "How it is split", "What is trained", "Where it runs, and when a rank dies"

FREE_FORM = (
    FormField("zero", "parallel.zero", "Strategy", "", _STRATEGIES, "3", _SPLIT),
    FormField("data", "parallel.data", "Data ranks", "All ranks together: at most 8.", (), "2", _SPLIT),
    FormField("pipeline", "parallel.pipeline", "Pipeline ranks", "1 is no pipeline.", (), "1", _SPLIT),
    FormField("schedule", "parallel.schedule", "Schedule", "Of the pipeline.", _SCHEDULES, "1f1b", _SPLIT),
    FormField("virtual_stages", "parallel.virtual_stages", "Stages a rank", "More where interleaved.", (), "1", _SPLIT),
    FormField("layers", "model.layers", "Layers", "", (), str(_SMALL.layers), _TRAINED),
    FormField("hidden", "model.hidden", "Width", "A multiple of the heads.", (), str(_SMALL.hidden), _TRAINED),
    FormField("heads", "model.heads", "Heads", "", (), str(_SMALL.heads), _TRAINED),
    FormField("sequence", "training.sequence", "Sequence", "Bytes of text, 2 to 1,024.", (), "128", _TRAINED),
    FormField("micro_batch", "training.micro_batch", "Micro-batch", "Sequences at once, 1 to 64.", (), "2", _TRAINED),
    FormField("micro_batches", "training.micro_batches", "Micro-steps", "A step, 1 to 64.", (), "1", _TRAINED),
    FormField("steps", "training.steps", "Steps", "At most 500.", (), "40", _TRAINED),
    FormField("device", "device", "Device", "The CPU takes what finds no GPUs.", _DEVICES, "auto", _WHERE),
    FormField("hosts", "hosts", "Hosts", "More than 1 need a cluster.", (), "1", _WHERE),
    FormField(
        "checkpoint_every", "training.checkpoint_every", "Checkpoint every", "Steps; empty is never.", group=_WHERE
    ),
    FormField(
        "checkpoint_mode", "training.checkpoint_mode", "While it is written", "", _CHECKPOINT_MODES, "sync", _WHERE
    ),
    FormField("restarts", "restarts", "Started again", "When a rank has died.", _RESTARTS, "0", _WHERE),
)
# What one may say before a run of one's own: until it has ended, theory and measurement stay hidden then.
SAID_FIRST = (
    FormField(
        "value.model_state_bytes",
        "prediction.model_state_bytes",
        "Model state per rank",
        "With its unit, such as 1 GB.",
    ),
    FormField(
        "value.payload_bytes_per_step",
        "prediction.payload_bytes_per_step",
        "Payload per rank and step",
        "Such as 500 kB: what it hands to collectives, not what a ring sends of it.",
    ),
    FormField("value.step_seconds", "prediction.step_seconds", "Duration of a step", "Such as 2 s."),
)


# Fields that are turned often and that the form does not ask for.
MORE_KNOBS = (
    "training.recompute",
    "training.attention",
    "training.bucket_bytes",
    "training.precision",
    "parallel.tensor",
)
_MAY_BE_EMPTY = {"training.checkpoint_every"}  # is `null` in the spec then
_BY_PATH = {field.path: field for field in FREE_FORM}


def called(path: str) -> str:
    """What the form calls a field of the spec; what it does not ask for, by the last part of its path, in words."""
    return _BY_PATH[path].label if path in _BY_PATH else capital(path.rpartition(".")[2].replace("_", " "))


def path_called(text: str) -> str:
    """The path that is meant by a field's label or by the last part of its path; anything else is taken for a path."""
    asked = text.strip()
    by_word = {field.path.rpartition(".")[2]: field.path for field in FREE_FORM}
    by_word |= {field.label.casefold(): field.path for field in FREE_FORM}
    by_word |= {each.rpartition(".")[2]: each for each in MORE_KNOBS}
    as_path = asked.casefold().replace("-", "_").replace(" ", "_")
    return by_word.get(as_path, by_word.get(asked.casefold(), asked))


def value_called(path: str, value: object) -> str:
    """A value as the form of own runs calls it, in short; what the form does not ask for, as it stands."""
    choice = choice_called(path, value)
    return str(value) if choice is None else choice.split(",")[0]


def value_meant(path: str, word: str) -> int | str:
    """The value that a word stands for, as the form calls the choices of that field: DDP, FSDP; else the word."""
    asked = word.strip()
    choices = _BY_PATH[path].choices if path in _BY_PATH else ()
    by_name = {name.split(",")[0].casefold(): value for value, name in choices}
    return _number(by_name.get(asked.casefold(), asked))


def _names_of(path: str) -> list[str]:
    """What the choices of a field are called in short, where they stand for numbers; none where it has no such."""
    choices = _BY_PATH[path].choices if path in _BY_PATH else ()
    return [name.split(",")[0] for value, name in choices if _WHOLE.fullmatch(value)]


def choice_called(path: str, value: object) -> str | None:
    """What the form calls that choice of a field; None where it has no such choice."""
    return dict(_BY_PATH[path].choices).get(str(value)) if path in _BY_PATH else None


def spec_of_form(typed: Mapping[str, str]) -> dict[str, Any]:
    """The RunSpec data a filled-in form asks for; what is no number stays text and is refused by name.

    A pipeline keeps what FSDP has gathered.
    """
    spec: dict[str, Any] = {"model": {"vocab": _SMALL.vocab}, "training": {}, "parallel": {}}
    for field in FREE_FORM:
        text = typed.get(field.name, field.text)
        put(spec, field.path, None if field.path in _MAY_BE_EMPTY and not text.strip() else _number(text))
    if spec["parallel"]["pipeline"] != 1 and spec["parallel"]["zero"] == 3:
        spec["training"]["reshard_after_forward"] = False
    return spec


_LABELS = {field.path.rpartition(".")[2]: field.label.lower() for field in FREE_FORM}
# Where a word can only be the field: one with an underscore, a factor, what is given or accepted a value.
_NAMES = re.compile(
    r"(?<= × )(?:{names})\b|\b(?:{names})(?= (?:=|×) )|\b(?:micro_batch(?:es)?|virtual_stages)\b".format(
        names="|".join(sorted(_LABELS, key=len, reverse=True))
    )
)


_BETWEEN = re.compile(r", | or ")  # what is accepted, where it is a list


def settings_of_run(spec: Mapping[str, object]) -> dict[str, str]:
    """What to type to run it again: the form's fields, and `spec` as JSON where the form has no field for something."""
    found = {field.name: get(spec, field.path, field.text) for field in FREE_FORM}
    typed = {name: "" if value is None else str(value) for name, value in found.items()}
    try:
        if RunSpec.model_validate(spec_of_form(typed)) == RunSpec.model_validate(spec):
            return typed
    except ValueError:
        pass
    return {**typed, "spec": json.dumps(spec, indent=2)}


def prediction_of_form(typed: Mapping[str, str]) -> dict[str, object] | None:
    """What was said first, as the interface takes it; None where all is blank."""
    texts = {field.name.partition(".")[2]: typed.get(field.name, "").strip() for field in SAID_FIRST}
    return {name: {"value": text, "within": None} for name, text in texts.items() if text} or None


def spec_of_text(text: str) -> object:
    """The RunSpec data somebody wrote down as JSON. Raises DomainError where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DomainError(
            "Not started: this is not JSON.", [Violation("spec", text[:80], f"{error}.", "a RunSpec as JSON")]
        ) from None


def form_after(typed: Mapping[str, str], violations: list[Violation], has_gpus: bool) -> list[FormField]:
    """The form as it was sent with what was said first, each violation at its field, the first with the focus. Where
    there is no GPU, the choice of one says so."""
    errors = {field_of(each): said(each) for each in reversed(violations)}
    shown = [
        replace(field, text=typed.get(field.name, field.text), error=errors.get(field.path))
        for field in (*FREE_FORM, *SAID_FIRST)
    ]
    if not has_gpus:
        here = (("auto", "CPU: no GPU is here"), *_DEVICES[1:])
        shown = [replace(field, choices=here, help="") if field.name == "device" else field for field in shown]
    first = next((index for index, field in enumerate(shown) if field.error), None)
    return [replace(field, has_focus=index == first) for index, field in enumerate(shown)]


def field_of(violation: Violation) -> str:
    """The field of the form it belongs to: of a prediction any part of a quantity."""
    parts = violation.field.split(".")
    return ".".join(parts[:2]) if parts[0] == "prediction" else violation.field


def as_labelled(message: str) -> str:
    """A message of the spec with the form's names: "width = 100" for "hidden = 100"."""
    return _NAMES.sub(lambda name: _LABELS[name[0]], message)


def said(violation: Violation) -> str:
    """A violation in the form's words: its labels for fields, and for what is accepted where that is a choice of it."""
    choices = [choice_called(violation.field, each) for each in _BETWEEN.split(violation.accepted)]
    accepted = "; ".join(f"“{each}”" for each in choices) if all(choices) else as_labelled(violation.accepted)
    message = "Nothing is filled in." if violation.value == "" else as_labelled(violation.message)
    if isinstance(violation.value, str) and (names := _names_of(violation.field)):  # a word that is none of them
        accepted, message = listed(names, "or"), message.replace("not a number that fits", "none of the choices")
    if "such as" in message:  # it says what would be accepted
        return message
    return f"{message} Accepted: {accepted}."


def violations_elsewhere(violations: list[Violation]) -> list[Violation]:
    """Violations that belong to no field of the form."""
    paths = {field.path for field in (*FREE_FORM, *SAID_FIRST)}
    return [violation for violation in violations if field_of(violation) not in paths]


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted path."""
    *heads, last = path.split(".")
    for head in heads:
        data = data.setdefault(head, {})
    data[last] = value


def get(data: Mapping[str, object], path: str, default: object) -> object:
    """What stands at a dotted path."""
    found: object = data
    for step in path.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return default
        found = found[step]
    return found


def _number(text: str) -> int | str:
    """A whole number, with or without commas between thousands; anything else stays as it was typed."""
    plain = text.strip()
    if _THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    return int(plain) if _WHOLE.fullmatch(plain) else text
