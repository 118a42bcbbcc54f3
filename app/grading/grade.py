"""What became of one answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["correct", "wrong", "invalid"]


@dataclass(frozen=True)
class Grade:
    """What became of one answer. `credit` is 0..1; an invalid answer has none and counts for nothing.

    `value` is a number's, in base units. `misconception` names the likely cause, `title` says it, and `cure` is the
    id of the card to read. `did` says what was done, as a sentence about its candidate goes on, and `learn` what to do
    instead, as one is told to; both are empty where nobody wrote them.
    """

    status: Status
    credit: float
    message: str
    value: float | None = None
    misconception: str | None = None
    title: str | None = None
    cure: str | None = None
    did: str = ""
    learn: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Grade:
        """What `to_json` stored."""
        return cls(**stored)


def invalid(message: str) -> Grade:
    """An answer that cannot be read."""
    return Grade("invalid", 0.0, message)
