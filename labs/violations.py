"""What is wrong with a request, said so that it can be mended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong with a request: where, what was given, what would be accepted."""

    field: str
    value: object
    message: str
    accepted: str
    involves: tuple[str, ...] = ()  # other fields it was judged by; when one of them is wrong itself, this is moot

    def __str__(self) -> str:
        return f"{self.field}: {self.message} Accepted: {self.accepted}."


class SpecError(ValueError):
    """A request that cannot be taken, with every violation at once."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        super().__init__("\n".join(str(violation) for violation in violations))
