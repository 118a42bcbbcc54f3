"""Errors a person can act on: a code, what was wrong where, and what would be accepted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from labs.violations import SpecError, Violation

__all__ = ["ContentProblem", "DomainError", "NotFound", "SpecError", "Stale", "Violation"]


class DomainError(Exception):
    """Something the caller asked for cannot be done. One handler turns it into a page or problem details."""

    status = 422
    code = "invalid"

    def __init__(self, message: str, violations: list[Violation] | None = None) -> None:
        self.message = message
        self.violations = violations or []
        super().__init__(message)


class NotFound(DomainError):
    """There is no such thing."""

    status = 404
    code = "not-found"


class Stale(DomainError):
    """The thing changed since the caller saw it, so nothing was changed now."""

    status = 409
    code = "stale"


@dataclass(frozen=True)
class ContentProblem:
    """One mistake in a content file, as `file:line field: reason`."""

    file: str
    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.field}: {self.reason}"


class ShownViolation(TypedDict):
    """A violation as problem details have it."""

    field: object
    value: object
    message: str
    accepted: object


class ProblemDetails(TypedDict):
    """An error as RFC 9457 writes it, under `application/problem+json`."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[ShownViolation]]


def problem_details(error: DomainError | SpecError) -> ProblemDetails:
    """RFC 9457 problem details, with every violation by field, in what JSON can carry."""
    status, code = (error.status, error.code) if isinstance(error, DomainError) else (422, "invalid")
    detail = error.message if isinstance(error, DomainError) else "The request cannot be taken as it is."
    return {
        "type": f"urn:rankzero:{code}",
        "title": code.replace("-", " "),
        "status": status,
        "detail": detail,
        "errors": [
            {"field": _sendable(v.field), "value": _sendable(v.value), "message": v.message, "accepted": v.accepted}
            for v in error.violations
        ],
    }


def _sendable(value: object) -> object:
    """`value`, or how Python writes it where JSON has no word for it: NaN, half a surrogate pair, an object."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return ascii(value)
    return value


_VIOLATION_SCHEMA = {
    "type": "object",
    "properties": {"field": {"type": "string"}, "value": {}, "message": {"type": "string"}, "accepted": {}},
    "required": ["field", "message"],
}
_PROBLEM_SCHEMA = {
    "title": "ProblemDetails",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": _VIOLATION_SCHEMA},
    },
    "required": ["type", "title", "status", "detail"],
}
_PROBLEM = {"content": {"application/problem+json": {"schema": _PROBLEM_SCHEMA}}}

# What every call may answer besides its result, for the API's description.
PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "What was wrong, by field, and what would be accepted", **_PROBLEM},
    "503": {"description": "The database does not answer; nothing was saved", **_PROBLEM},
}


@contextmanager
def refused_as_json() -> Iterator[None]:
    """A command's bad input as problem-details JSON on standard error, and exit code 2."""
    try:
        yield
    except (DomainError, SpecError) as error:
        sys.stderr.write(json.dumps(problem_details(error), indent=2) + "\n")
        raise SystemExit(2) from None
