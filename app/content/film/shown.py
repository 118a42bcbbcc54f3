"""What a page shows as film: a strip of all ranks, and one rank's reel."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from markupsafe import Markup

from app.content.diagrams.svg import number
from app.core.charts import Scale
from app.units import LADDERS
from labs.spec.events import Component

COMPONENTS: tuple[Component, ...] = get_args(Component)


@dataclass(frozen=True)
class Lane:
    """A rank's picture: `late` is where it was in a collective and waited for the last rank, or had sent a message and
    not looked since; `labels` the micro-batches of its passes; both in percent of the step."""

    rank: int
    name: str
    still: str
    svg: Markup
    late: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Moment:
    """A piece as the reel shows it: milliseconds, what is said, which row of the table and of the ledger is its, where
    the same collective is on other ranks (rank, from, width in percent), the outline of what it holds, and what this
    rank has sent by its end."""

    key: str
    kind: str
    name: str
    start: float
    end: float
    says: str
    ledger: str
    on: tuple[tuple[int, str, str], ...]
    bump: str
    sent: str


@dataclass(frozen=True)
class Row:
    """A collective in the table; a pass where no collective was watched."""

    key: str
    name: str
    starts: str
    took: str
    payload: str
    sent: str
    hidden: str


@dataclass(frozen=True)
class Reel:
    """One rank: its moments, what it held from each of `at` (ms) on by component, and the picture of that."""

    rank: int
    name: str
    still: str
    moments: tuple[Moment, ...]
    at: tuple[float, ...]
    held: tuple[tuple[int, ...], ...]
    memory: Markup
    memory_says: str
    theory_percent: str
    theory_says: str
    rows: tuple[Row, ...]
    first: int  # which moment is shown first

    def as_json(self) -> dict[str, Any]:
        """What the script needs of it."""
        return {
            "rank": self.rank,
            "name": self.name,
            "still": self.still,
            "first": self.first,
            "theory": [self.theory_percent, self.theory_says],
            "moments": [vars(each) for each in self.moments],
            "at": self.at,
            "held": self.held,
        }

    @property
    def shown(self) -> Moment:
        return self.moments[self.first]

    @property
    def alive(self) -> Mapping[str, int] | None:
        """Bytes by component where the first moment stands."""
        if not self.at:
            return None
        return dict(zip(COMPONENTS, self.held[max(0, bisect_right(self.at, self.playhead) - 1)], strict=True))

    @property
    def playhead(self) -> float:
        """Milliseconds: where a collective has its result, where anything else begins."""
        shown = self.shown
        return max(shown.start, shown.end - 0.05) if shown.kind == "communication" else shown.start


@dataclass(frozen=True)
class Film:
    """What the page draws: `ideal` is where theory's schedule ends, in percent."""

    number: int
    title: str
    says: str
    milliseconds: float
    lanes: tuple[Lane, ...]
    reel: Reel
    ideal_percent: str
    ideal_says: str
    ticks: tuple[tuple[str, str], ...]
    scale: Scale
    tones: tuple[tuple[str, str], ...]
    has_transfers: bool
    late_says: str  # what the hatched parts of transfers are
    still_says: str = "Compute stands still"

    @property
    def units(self) -> dict[str, Any]:
        """How the page's script writes bytes."""
        return {"write": [[step.unit, step.size, step.least] for step in LADDERS["bytes"]], "read": {}}

    @property
    def decimals(self) -> int:
        """Of milliseconds, as they are written: to four digits, as in the table."""
        return 0 if self.milliseconds >= 1000 else 1 if self.milliseconds >= 50 else 2

    @property
    def playhead_percent(self) -> str:
        return number(100 * self.reel.playhead / self.milliseconds)
