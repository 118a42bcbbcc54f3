"""What a run did, as the judge saw it: every call, every result, what each rank said of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labs.code.inside.frames import Spec, spec_bytes

MESSAGES = ("send", "recv")
# What looking at it may raise: what a program sends or hands over may be anything.
STRANGE = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass
class Call:
    """One collective or message, as one rank called it."""

    rank: int
    identity: int
    operation: str
    group: tuple[int, ...]
    case: int
    sequence: int  # its number among the rank's calls of this group, from 1; among its messages to or from this peer
    sent: list[Spec]
    expects: list[Spec]
    reduce: str = "sum"
    root: int | None = None  # by its number in the whole
    peer: int | None = None
    tag: int = 0
    input_splits: list[int] = field(default_factory=list)
    output_splits: list[int] = field(default_factory=list)
    line: int | None = None
    function: str | None = None
    posted_at: float = 0.0
    waited_at: float | None = None
    done_at: float | None = None

    @property
    def sent_bytes(self) -> int:
        """What left the rank's process for it."""
        return sum(map(spec_bytes, self.sent))

    @property
    def payload_bytes(self) -> int:
        """The tensor handed to the collective: what is gathered in all, what is reduced and scattered, and so on, as
        the ledger of our runs counts it (`labs.probes.communication`)."""
        if self.operation in ("all_gather", "broadcast"):
            return max(self.sent_bytes, sum(map(spec_bytes, self.expects)))
        return self.sent_bytes

    @property
    def name(self) -> str:
        return f"{self.operation} no. {self.sequence}"


@dataclass(frozen=True)
class Moment:
    """Something a rank said or asked for, at the judge's clock. `after` is how many calls the rank had posted."""

    rank: int
    case: int
    name: str
    at: float
    after: int


@dataclass(frozen=True)
class Note:
    """A rank's memory at a moment that it named: by the kernel's count, and what it says itself it holds it for."""

    rank: int
    case: int
    name: str
    bytes: int | None  # None where the kernel has no count for us: not Linux
    peak_bytes: int | None  # since its note before
    components: Mapping[str, int]


@dataclass(frozen=True)
class RankError:
    """What a rank ended with, in its own words."""

    type: str
    message: str
    line: int | None
    column: int | None
    text: str | None
    refused: bool
    traceback: tuple[str, ...]


@dataclass
class Record:
    """Of one run of `ranks` ranks."""

    ranks: int
    calls: list[Call] = field(default_factory=list)
    marks: list[Moment] = field(default_factory=list)
    gates: list[Moment] = field(default_factory=list)
    results: dict[tuple[int, int, str], Any] = field(default_factory=dict)  # by case, rank and name
    errors: dict[int, RankError] = field(default_factory=dict)
    output: dict[int, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    finished: bool = False

    def of(self, case: int, rank: int | None = None, operations: Sequence[str] = ()) -> Iterator[Call]:
        """The calls of a case, of one rank and of some operations where asked."""
        for call in self.calls:
            if call.case == case and rank in (None, call.rank) and (not operations or call.operation in operations):
                yield call
