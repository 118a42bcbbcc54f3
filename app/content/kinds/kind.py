"""What every kind of card is: its timing, its lengths, and what the machine does with an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from markupsafe import Markup

from app.content.markdown import render
from app.grading.grade import Grade

if TYPE_CHECKING:
    from app.content.card_schemas import CardHead
    from app.content.cards import Card
    from app.content.kinds.asking import Asked, Listed, Verdict

T = TypeVar("T")

# A finding in a field, or in a section, named as `# Answer`, and its reason.
CardFinding = tuple[tuple[str | int, ...], str]


class Show(Protocol):
    """Renders parts of a card's file; what does not compute is collected with its line."""

    def inline(self, text: str, *location: str | int) -> Markup: ...
    def part(self, *location: str | int, make: Callable[[], T]) -> T | None: ...


@dataclass(frozen=True)
class Field:
    """The field of the front matter that only cards of this kind have."""

    name: str
    annotation: object
    default: object


@dataclass(frozen=True)
class Own:
    """What a learner's own card of this kind is called in the editor, and what it has to have."""

    label: str
    needs_answer: bool = False
    has_blanks: bool = False
    has_options: bool = False


class CardKind:
    """A kind whose answers the learner judges. `seconds` are expected to answer it; more words are too long to read."""

    name: str
    seconds: int
    place: int = 0  # among the kinds, as a person meets them
    question_words: int = 90
    answer_words: int = 140
    own: Own | None = None
    is_typed: bool = False  # whether an answer is typed, and so worth repeating beside the right one

    def render_question(self, text: str) -> Markup:
        """The section Question as it is shown."""
        return render(text)

    def findings(self, card: Card) -> Iterator[CardFinding]:
        """What is wrong with a card, beyond its schema."""
        yield from ()


class CheckedKind(CardKind):
    """A kind that the machine checks."""

    field: Field

    def asked_of(self, head: CardHead) -> object:
        """What a card asks, as its front matter says it; something empty where it does not say."""
        return getattr(head, self.field.name, None)

    def make(self, head: CardHead, show: Show) -> object:
        """What a card asks, rendered: `card.asks`."""
        raise NotImplementedError

    def ask(self, card: Card, seed: int) -> Asked:
        """What a card asks at a seed. Raises ExpressionError when its content does not compute."""
        raise NotImplementedError

    def verdict(self, asked: Asked, answer: str, grade: Grade) -> Verdict:
        """What is said of an answer that could be read."""
        raise NotImplementedError

    def listed(self, card: Card, seed: int) -> Listed:
        """What a card offers, and what is right, for a program that shows cards without asking."""
        raise NotImplementedError

    def texts(self, head: CardHead) -> Sequence[str]:
        """What is written in the fields of this kind: figures in it are given."""
        return ()
