"""What a sitting's wrong answers come to: the same lesson gathered over its questions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.interview.rows import CORRECTED, NO_ANSWER, NOT_ASKED, Row

LEAST_LOST = 0.05  # of points that are worth a word
PUT_RIGHT_SHARE = 0.5  # what a slip weighs that was put right at once
REPEATED_SHARE = 2.0  # what one weighs that was made more than once


@dataclass(frozen=True)
class Lesson:
    """One thing to learn, from the rows that it went wrong in, in their order. `learn` is as one is told to do it."""

    learn: str
    rows: tuple[Row, ...]

    @property
    def did(self) -> str:
        """What was done, as a sentence about the candidate goes on; empty where nobody wrote it."""
        return next((row.did for row in self.rows if row.did), "")

    @property
    def cure(self) -> str | None:
        """The card to read."""
        return next((row.cure for row in self.rows if row.cure), None)

    @property
    def lost(self) -> float:
        """The points that it cost."""
        return sum(row.lost for row in self.rows)

    @property
    def times(self) -> int:
        """In how many questions it went wrong, a question and its follow-up together."""
        return len({row.question for row in self.rows})

    @property
    def was_put_right(self) -> bool:
        """Whether it was put right wherever it was questioned."""
        return all(row.verdict == CORRECTED for row in self.rows)

    @property
    def came_again(self) -> bool:
        """Whether it was put right, and made again afterwards in another question."""
        late = [place for place, row in enumerate(self.rows) if row.verdict == CORRECTED]
        return bool(late) and any(row.question != self.rows[late[0]].question for row in self.rows[late[0] + 1 :])

    @property
    def weight(self) -> float:
        """How much it matters to learn it: what was put right at once less, what came more than once more."""
        kept = sum(row.lost * (PUT_RIGHT_SHARE if row.verdict == CORRECTED else 1.0) for row in self.rows)
        return kept * (REPEATED_SHARE if self.times > 1 else 1.0)


def lessons(rows: Sequence[Row]) -> list[Lesson]:
    """The lessons of what was answered and not right, the weightiest first. What is in words has points for that."""
    by_lesson: dict[str, list[Row]] = {}
    for row in rows:
        if went_wrong(row):
            by_lesson.setdefault(row.learn, []).append(row)
    untold = by_lesson.pop("", [])
    found = [Lesson(learn, tuple(wrong)) for learn, wrong in by_lesson.items()]
    return sorted([*found, *(Lesson("", (row,)) for row in untold)], key=lambda each: -each.weight)


def went_wrong(row: Row) -> bool:
    """Whether an answer not in words was given and was not right."""
    if row.kind in ("text", "coding") or row.is_harder or row.verdict in ("right", NO_ANSWER, NOT_ASKED):
        return False
    return row.lost >= LEAST_LOST
