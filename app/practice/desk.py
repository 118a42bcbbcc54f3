"""A variant as it stands for somebody, and what answers to it are worth. Pure: the service stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from app.content import problem_draws
from app.content.problem_schemas import Problem
from app.core.errors import DomainError, NotFound, Violation
from app.grading.grade import Grade
from app.grading.hints import share_left
from app.grading.questions import NumberQuestion
from app.practice import variants
from app.practice.parts import Part
from app.reveal.meter import Meter
from app.reveal.number import SaidNumber, said_number, slip_of
from app.units import digits
from app.words import listed, lowered

LONGEST_ANSWER = 500
_SHORT_PROMPT = 60  # characters of a prompt that a title can begin with


@dataclass(frozen=True)
class PartState:
    """A part of a variant and what became of the answer to it, if anything."""

    part: Part
    text: str
    grade: Grade | None

    @property
    def settled(self) -> bool:
        """Whether nothing more can be answered; a part without points is not graded here."""
        return not self.part.points or (self.grade is not None and self.grade.status != "invalid")

    @property
    def is_right(self) -> bool:
        return self.grade is not None and self.grade.status == "correct"

    @property
    def said(self) -> str:
        return self.part.said(self.text)

    @cached_property
    def _number(self) -> SaidNumber | None:
        question = self.part.question
        if self.grade is None or not isinstance(question, NumberQuestion):
            return None
        return said_number(question, self.text, self.grade)

    @property
    def meter(self) -> Meter | None:
        """A wrong number beside the right one; None where there is none to draw."""
        return self._number.meter(f"Part {self.part.id}") if self._number else None

    @property
    def finding(self) -> str:
        """What went wrong, as a title says it: by its name, else by how far a number is off; else empty."""
        named = slip_of(self._number, self.grade) if self.grade else ""
        off = self.meter.row if self.meter and not named else None
        if off is None or off.off_by is None or not off.predicted or not off.measured:
            return named
        return f"{digits(off.off_by, 3)} × too {'large' if off.predicted > off.measured else 'small'}"


@dataclass(frozen=True)
class Desk:
    """A variant as it stands for a learner."""

    variant: variants.Variant
    parts: tuple[PartState, ...]
    hints_opened: int
    score: float | None
    settled_at: datetime | None
    is_issued: bool = True
    is_revised: bool = False
    in_todays_words: bool = False

    @property
    def is_settled(self) -> bool:
        return self.settled_at is not None or (not self.is_issued and self.score is not None)

    @property
    def graded(self) -> tuple[PartState, ...]:
        """The parts that count."""
        return tuple(state for state in self.parts if state.part.points)

    @property
    def open_parts(self) -> int:
        return 0 if self.is_settled else sum(not state.settled for state in self.parts)

    @property
    def right(self) -> int:
        return sum(state.is_right for state in self.parts)

    @property
    def wrong(self) -> tuple[PartState, ...]:
        """The parts that were answered wrong."""
        return tuple(state for state in self.graded if state.settled and state.grade and not state.is_right)

    @property
    def headline(self) -> str:
        """What came out, as a title says it: the first thing that went wrong, by its name; else how much was right. The
        problem's title until a part is judged."""
        judged = [state for state in self.graded if state.settled and state.grade]
        if not judged and not self.is_settled:
            return self.variant.problem.title
        if self.is_settled and self.right == len(self.graded):
            return "All right" if len(self.graded) > 1 else "Right"
        found = next((state for state in judged if state.finding), None)
        if found is not None:
            prompt = str(found.part.prompt)
            is_named = len(self.graded) > 1 and len(prompt) <= _SHORT_PROMPT
            return f"{prompt}: {lowered(found.finding)}" if is_named else found.finding
        if not judged:
            return "Left unanswered"
        if self.right == len(judged):
            return f"{'Right' if len(judged) == 1 else 'All right'} so far"
        wrong = [state.part.id for state in judged if not state.is_right]
        right = f"; {self.right} right" if self.right else ""
        return (
            f"{'Part' if len(wrong) == 1 else 'Parts'} {listed(wrong)} went wrong{right}"
            if len(self.graded) > 1
            else "Another answer is right"
        )

    @property
    def level(self) -> str | None:
        """Which level the variant is of and its title, where the problem has levels."""
        levels = self.variant.problem.levels
        level = problem_draws.level_of(self.variant.problem, self.variant.seed)
        return f"{level + 1} of {len(levels)}, {levels[level].title}" if levels else None


def grade_alone(problem: Problem, seed: int, answers: Mapping[str, str]) -> Desk:
    """Grade `answers` to a seed that was not issued: nothing is stored, nothing counts. Raises DomainError."""
    check_seed(seed)
    variant = variants.make_variant(problem, seed)
    check_answers(answers, {part.id: part for part in variant.parts})
    grades = grade_in_order(variant.parts, answers, {})
    states = tuple(PartState(part, answers.get(part.id, ""), grades.get(part.id)) for part in variant.parts)
    score = score_of(states) if all(state.settled for state in states) else None
    return Desk(variant, states, 0, score, None, is_issued=False)


def grade_in_order(parts: Sequence[Part], answers: Mapping[str, str], before: Mapping[str, Grade]) -> dict[str, Grade]:
    """Grades of the answers that are not blank. A part sees the learner's own values of the parts before it."""
    own = {part: grade.value for part, grade in before.items() if grade.value is not None}
    found: dict[str, Grade] = {}
    for part in parts:
        text = answers.get(part.id, "")
        if not part.points or not text.strip():
            continue
        found[part.id] = grade = part.grade(text, own)
        if grade.status != "invalid" and grade.value is not None:
            own[part.id] = grade.value
    return found


def is_unaided(score: float, hints_opened: int) -> bool:
    """Whether everything was right and no hint was open."""
    return score == 1 and not hints_opened


def is_solved(score: float, hints_opened: int) -> bool:
    """Whether everything was right, whatever was left of it by the hints that were open."""
    return score >= round(share_left(hints_opened), 4)


def score_of(states: tuple[PartState, ...]) -> float:
    """The share of the points reached; a problem always has some."""
    points = sum(state.part.points for state in states)
    return round(sum(state.grade.credit * state.part.points for state in states if state.grade) / points, 4)


def check_seed(seed: int) -> None:
    """Raises NotFound for a seed that is no variant's."""
    if not 0 <= seed <= problem_draws.LARGEST_SEED:
        raise NotFound(f"Seed {seed} is out of range. Accepted: 0 to {problem_draws.LARGEST_SEED:,}.")


def check_answers(answers: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    wrong = []
    for part, text in answers.items():
        if part not in known:
            wrong.append(Violation(f"answers.{part}", part, "There is no such part.", ", ".join(known)))
        elif len(text) > LONGEST_ANSWER:
            message = f"{len(text)} characters are too many."
            wrong.append(Violation(f"answers.{part}", "…", message, f"up to {LONGEST_ANSWER}"))
    if wrong:
        raise DomainError("The answers cannot be graded; nothing was counted.", wrong)
