"""Every part of a sitting, graded, and what it comes to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from app.grading.levels import Level, share
from app.interview.deciding import Decision, decide
from app.interview.rows import TO_JUDGE, Row


@dataclass(frozen=True)
class Scorecard:
    """Every part of a sitting, graded."""

    rows: tuple[Row, ...] = ()

    @property
    def points(self) -> float:
        return sum(row.points for row in self.rows)

    @property
    def reached(self) -> float:
        return round(sum(row.reached for row in self.rows), 2)

    @property
    def score(self) -> float:
        """The share of the points reached, 0 to 1."""
        return share(sum(row.reached for row in self.rows), self.points)

    @property
    def to_judge(self) -> list[str]:
        """The parts whose words nobody has heard yet; only a card of an earlier version has any."""
        return [row.id for row in self.rows if row.verdict == TO_JUDGE]

    @property
    def unsure(self) -> list[str]:
        """The parts with points that the grader leaves to the candidate. Until then they count as missed."""
        return [row.id for row in self.rows if any(point.is_open for point in row.rubric)]

    @cached_property
    def decision(self) -> Decision:
        """The level that it comes to, and why."""
        return decide(self.rows, self.score)

    @property
    def level(self) -> Level | None:
        """None while there are words that nobody has heard."""
        return None if self.to_judge else self.decision.level

    def row(self, part_id: str) -> Row:
        return next(row for row in self.rows if row.id == part_id)

    def to_json(self) -> dict[str, object]:
        """As it is stored and exported."""
        return {
            "rows": [asdict(row) for row in self.rows],
            "points": self.points,
            "reached": self.reached,
            "score": self.score,
            "level": self.level,
            "to_judge": self.to_judge,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Scorecard:
        """What `to_json` stored, now or in an earlier version."""
        return cls(tuple(Row.from_json(each) for each in stored["rows"]))
