"""Reading requests from untrusted data, with every mistake reported at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from labs.spec.programs import PROGRAMS
from labs.spec.run import LAB_MODELS
from labs.spec.vocabulary import Model
from labs.violations import SpecError, Violation

STAND_IN = LAB_MODELS["gpt-small"]  # for a model that cannot be read, so that the rest is still checked

_SAYS = {
    "missing": ("This is missing.", "a value"),
    "extra_forbidden": ("There is no such field.", "only the documented fields"),
    "union_tag_not_found": ("A training run has no options.", "leave it out"),
}

R = TypeVar("R", bound=BaseModel)


def parse(kind: type[R], data: object, check: Callable[[R], list[Violation]], known: Sequence[Violation] = ()) -> R:
    """Read `data` as `kind`, then `check` it across fields; raise one SpecError with everything that is wrong.

    Fields that do not validate are dropped and the rest is checked with defaults in their place,
    so that a bad batch size does not hide heads that do not divide. `known` are violations found before.
    """
    if not isinstance(data, Mapping):
        raise SpecError([Violation("", data, "This is not a JSON object.", "an object")])
    violations = list(known)
    bad: set[str] = {violation.field for violation in known}
    remaining: object = data
    for _ in range(3):  # dropping a bad value can uncover a missing one, never more than that
        try:
            value = kind.model_validate(remaining)
        except ValidationError as error:
            details = list(_details(error))
            violations += [violation_of(detail) for detail in details if not _is_under(detail["loc"], bad)]
            bad |= {".".join(map(str, detail["loc"])) for detail in details}
            remaining = _without(remaining, [detail["loc"] for detail in details])
            continue
        standing = (
            v for v in check(value) if not any(_is_under(tuple(f.split(".")), bad) for f in (v.field, *v.involves))
        )
        violations += standing
        break
    if violations:
        raise SpecError(violations)
    return value


def violation_of(detail: Mapping[str, Any]) -> Violation:
    """One pydantic error as field, value, message and what is accepted."""
    field = ".".join(map(str, detail["loc"])) or "request"
    given, kind, context = detail.get("input"), detail["type"], detail.get("ctx", {})
    shown = "nothing" if kind == "missing" else repr(given) if not isinstance(given, int | float) else f"{given:,}"
    if kind == "json_invalid":
        at = detail["loc"][-1] if detail["loc"] else "?"
        return Violation("request", None, f"This is not JSON: {context.get('error', 'unreadable')} at {at}.", "JSON")
    if kind == "too_long":
        message, most = f"{context['actual_length']:,} entries are too many.", context["max_length"]
        return Violation(field, f"{context['actual_length']:,} entries", message, f"at most {most}")
    if kind in _SAYS:
        message, accepted = _SAYS[kind]
        return Violation(field, None if kind == "missing" else given, message, accepted)
    limits = {
        "greater_than_equal": "{ge} or more",
        "greater_than": "more than {gt}",
        "less_than_equal": "at most {le}",
        "less_than": "less than {lt}",
    }
    if kind in limits:
        accepted = limits[kind].format(**{k: f"{v:,}" for k, v in context.items() if isinstance(v, int | float)})
        return Violation(field, given, f"{shown} is out of range.", accepted)
    if kind == "literal_error":
        return Violation(field, given, f"{shown} is not known here.", str(context["expected"]))
    if kind.startswith(("int", "float", "finite")):
        message, accepted = f"{shown} is not a number that fits.", "a whole number" if "int" in kind else "a number"
    elif kind.startswith("bool"):
        message, accepted = f"{shown} is neither true nor false.", "true or false"
    else:
        message, accepted = f"{shown}: {detail['msg']}.", "see the documentation of this field"
    return Violation(field, given, message, accepted)


def _details(error: ValidationError) -> Iterator[dict[str, Any]]:
    """pydantic's errors; not that a list is too short because the entries it had were refused."""
    found: list[dict[str, Any]] = [{**detail, "loc": _without_tag(detail["loc"])} for detail in error.errors()]
    places = {detail["loc"][: i + 1] for detail in found for i in range(len(detail["loc"]) - 1)}
    return (detail for detail in found if not (detail["type"] == "too_short" and detail["loc"] in places))


def _without_tag(location: tuple[object, ...]) -> tuple[object, ...]:
    """The program's name, by which its options are told apart, is no field."""
    if location[:1] == ("options",) and location[1:2] and location[1] in PROGRAMS:
        return "options", *location[2:]
    return location


def _is_under(location: tuple[object, ...], bad: set[str]) -> bool:
    path = ".".join(map(str, location))
    return any(path == b or path.startswith(b + ".") for b in bad)


def _without(data: Any, locations: list[tuple[Any, ...]]) -> Any:
    """`data` less the values at `locations`, with a stand-in where the field has no default."""
    copy = {k: (dict(v) if isinstance(v, Mapping) else v) for k, v in data.items()}
    for location in locations:
        if not location:  # the mapping as a whole, such as a key that is no text
            return {"model": STAND_IN.model_dump()}
        if len(location) == 1 or not isinstance(copy.get(location[0]), dict):
            copy.pop(location[0], None)
            if location[0] == "model":
                copy["model"] = STAND_IN.model_dump()
        else:
            inner = copy[location[0]]
            inner.pop(location[1], None)
            if location[0] == "model" and location[1] in Model.model_fields:
                inner[location[1]] = STAND_IN.model_dump()[location[1]]
    return copy
