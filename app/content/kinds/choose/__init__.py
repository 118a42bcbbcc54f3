"""Options to choose from: one is right, or several are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, cast

from markupsafe import Markup
from pydantic import AfterValidator, model_validator
from pydantic import Field as SchemaField

from app.content.kinds.asking import Asked, Choice, Listed, Verdict
from app.content.kinds.kind import CardFinding, CheckedKind, Field, Own, Show
from app.content.schemas import Slug, Strict, Text, all_different
from app.grading.grade import Grade
from app.grading.questions import ChoiceQuestion, Option, shuffled

if TYPE_CHECKING:
    from app.content.card_schemas import CardHead
    from app.content.cards import Card

_LETTERED = re.compile(r"(^|[\s(*])a\)", re.MULTILINE)


class CardOption(Strict):
    """One answer to choose; a wrong one says why it is wrong."""

    id: Slug
    text: Text
    correct: bool = False
    message: Text | None = None

    @model_validator(mode="after")
    def _says_why_it_is_wrong(self) -> CardOption:
        if not self.correct and self.message is None:
            raise ValueError("a wrong option needs a message that says why")
        return self


def _can_be_chosen(options: tuple[CardOption, ...]) -> tuple[CardOption, ...]:
    all_different([option.id for option in options], "id")
    all_different([option.text for option in options], "text")
    if not any(option.correct for option in options):
        raise ValueError("one of them must be correct")
    return options


Options = Annotated[tuple[CardOption, ...], SchemaField(min_length=2, max_length=6), AfterValidator(_can_be_chosen)]


class Choose(CheckedKind):
    name, seconds, place = "choose", 40, 3
    field = Field("options", Options, ())
    own = Own("Options to choose from", has_options=True)

    def make(self, head: CardHead, show: Show) -> tuple[Option, ...]:
        return tuple(
            Option(
                option.id,
                show.inline(option.text, "options", index, "text"),
                option.correct,
                show.inline(option.message or "", "options", index, "message"),
            )
            for index, option in enumerate(self._source(head))
        )

    def ask(self, card: Card, seed: int) -> Asked:
        question = self.as_written(card)
        if not _is_lettered(card):
            question = replace(question, options=tuple(shuffled(card.name_at(seed), question.options)))
        choices = tuple(Choice(each.id, each.text) for each in question.options)
        return Asked(card, seed, self, question, card.sections["Question"], choices)

    def as_written(self, card: Card) -> ChoiceQuestion:
        """The options in the order of the card's file, for a page that shows it without asking."""
        options = cast(tuple[Option, ...], card.asks)
        return ChoiceQuestion(options, several=sum(option.correct for option in options) > 1)

    def verdict(self, asked: Asked, answer: str, grade: Grade) -> Verdict:
        question = cast(ChoiceQuestion, asked.question)
        chosen = question.chosen(answer) or []
        right = Markup("; ").join(option.text for option in question.right)
        if grade.status == "correct":
            return Verdict("correct", _joined(Markup(each.message) for each in chosen), right=right, credit=1.0)  # noqa: S704 - rendered
        wrong = [option for option in chosen if not option.correct]
        remarks = [(option.text, Markup(option.message)) for option in wrong]  # noqa: S704 - rendered
        if not question.several:
            return Verdict("wrong", remarks[0][1], right=right, remarks=tuple(remarks), credit=grade.credit)
        missed = [option for option in question.right if option not in chosen]
        remarks += [(each.text, Markup(each.message) or Markup("This is right as well.")) for each in missed]  # noqa: S704 - rendered
        message = _counted(len(wrong), len(missed))
        return Verdict("wrong", message, right=right, remarks=tuple(remarks), credit=grade.credit)

    def listed(self, card: Card, seed: int) -> Listed:
        question = cast(ChoiceQuestion, self.ask(card, seed).question)
        right = (option.text for option in cast(tuple[Option, ...], card.asks) if option.correct)
        return Listed((tuple(each.text for each in question.options),), tuple(right))

    def texts(self, head: CardHead) -> Sequence[str]:
        return [option.text for option in self._source(head)]

    def findings(self, card: Card) -> Iterator[CardFinding]:
        """The question does not repeat the options: they stand below it, in an order of their own."""
        question = card.source.sections["Question"].casefold()
        for index, option in enumerate(self._source(card.head)):
            if len(option.text.split()) > 1 and option.text.casefold() in question:
                yield ("options", index, "text"), f"the question repeats the option {option.id!r}"

    def _source(self, head: CardHead) -> tuple[CardOption, ...]:
        return cast(tuple[CardOption, ...], self.asked_of(head))


def _is_lettered(card: Card) -> bool:
    """Whether the question itself names its options a), b) and so on: they then keep their order."""
    return bool(_LETTERED.search(card.source.sections["Question"]))


def _counted(wrong: int, missed: int) -> Markup:
    chosen = f"chose {wrong} that {'is' if wrong == 1 else 'are'} wrong" if wrong else ""
    left = f"left out {missed} that {'is' if missed == 1 else 'are'} right" if missed else ""
    return Markup("You {}.").format(" and ".join(filter(None, (chosen, left))))


def _joined(messages: Iterable[Markup]) -> Markup:
    return Markup(" ").join(each for each in messages if each)


KIND = Choose()
