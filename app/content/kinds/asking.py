"""A checked card at a seed, and what the machine says of an answer to it. Pure: the same seed asks the same for ever.

An answer is one text, as the review log keeps it; how it is read is the question's business (`app.grading.questions`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from app.grading.grade import Status
from app.grading.questions import ChoiceQuestion, NumberQuestion, Question

if TYPE_CHECKING:
    from app.content.cards import Card
    from app.content.kinds.kind import CheckedKind

LETTERS = "abcdefgh"
_NOTHING = Markup()


@dataclass(frozen=True)
class Verdict:
    """What the machine says of an answer: of the whole in `message`, of its parts in `remarks`.

    `given` is what was chosen, as it is shown: the right sides in the order of the left ones, or the steps.
    `credit` is what the same answer is worth in a problem or an interview; a card is right or comes again.
    """

    status: Status
    message: Markup = _NOTHING
    title: str = ""
    cure: str | None = None
    right: Markup = _NOTHING
    remarks: tuple[tuple[Markup, Markup], ...] = ()
    given: tuple[Markup, ...] = ()
    credit: float = 0.0


@dataclass(frozen=True)
class Choice:
    """Something to choose: what an answer calls it, and what the page shows."""

    key: str
    text: Markup


@dataclass(frozen=True)
class Listed:
    """What a card offers, as lists, and what is right; `in_order` where its order is the point."""

    offered: tuple[tuple[Markup, ...], ...] = ()
    right: tuple[Markup, ...] = ()
    in_order: bool = False


@dataclass(frozen=True)
class Asked:
    """A checked card at a seed, with what a page or a script needs to answer it, and its key kept inside."""

    card: Card
    seed: int
    kind: CheckedKind = field(repr=False)
    question: Question = field(repr=False)
    prompt: Markup
    choices: tuple[Choice, ...] = ()
    lefts: tuple[Markup, ...] = ()

    @property
    def number(self) -> NumberQuestion | None:
        """The number asked for, where one is."""
        return self.question if isinstance(self.question, NumberQuestion) else None

    @property
    def several(self) -> bool:
        """Whether more than one option may be chosen."""
        return isinstance(self.question, ChoiceQuestion) and self.question.several

    @property
    def written_as(self) -> str:
        """How a number is typed, where one is asked for."""
        return self.number.written_as if self.number else ""

    def check(self, answer: str) -> Verdict:
        """What becomes of `answer`; one that cannot be read is invalid and counts nothing."""
        grade = self.question.grade(answer)
        if grade.status == "invalid":
            return Verdict("invalid", Markup("{}").format(grade.message))
        return self.kind.verdict(self, answer, grade)
