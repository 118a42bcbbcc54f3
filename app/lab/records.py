"""What a run's row keeps as JSON, read and written in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True)
class RunFailure:
    """Why a run failed: a named cause and a sentence, the rank and step where that is known, and the last `lines` of
    rank `lines_rank` (of torchrun itself where that is None)."""

    cause: str
    message: str
    rank: int | None = None
    step: int | None = None
    lines: tuple[str, ...] = ()
    lines_rank: int | None = None

    def to_json(self) -> dict[str, JsonValue]:
        return asdict(self) | {"lines": list(self.lines)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> RunFailure:
        """From a row's JSON: an older one may lack fields."""
        return cls(
            str(record.get("cause", "failed")),
            str(record.get("message", "The run failed")),
            record.get("rank"),
            record.get("step"),
            tuple(record.get("lines", ())),
            record.get("lines_rank"),
        )


@dataclass(frozen=True)
class Prediction:
    """What was predicted of a quantity: as it was typed, in base units, and within which factor it was said to hold."""

    text: str
    value: float
    within: float | None

    def to_json(self) -> dict[str, JsonValue]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Prediction:
        """From a row's JSON: an older one may lack how sure it was."""
        return cls(record["text"], record["value"], record.get("within"))
