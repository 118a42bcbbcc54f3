"""Steps to put in order; those that read the same may change places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

from markupsafe import Markup
from pydantic import Field as SchemaField

from app.content.kinds.asking import LETTERS, Asked, Choice, Listed, Verdict
from app.content.kinds.kind import CheckedKind, Field, Show
from app.content.schemas import Text
from app.grading.grade import Grade
from app.grading.questions import OrderItem, OrderQuestion, shuffled

if TYPE_CHECKING:
    from app.content.card_schemas import CardHead
    from app.content.cards import Card

Steps = Annotated[tuple[Text, ...], SchemaField(min_length=3, max_length=8)]


class Order(CheckedKind):
    name, seconds, place = "order", 60, 9
    field = Field("steps", Steps, ())

    def make(self, head: CardHead, show: Show) -> tuple[Markup, ...]:
        return tuple(show.inline(step, "steps", index) for index, step in enumerate(self._source(head)))

    def ask(self, card: Card, seed: int) -> Asked:
        steps = _steps(card)
        shown = shuffled(card.name_at(seed), steps, never=steps)
        left = list(enumerate(steps))
        items = []
        for letter, text in zip(LETTERS, shown, strict=False):
            place = next(each for each in left if each[1] == text)
            left.remove(place)
            items.append(OrderItem(letter, text, float(place[0])))
        question = OrderQuestion(tuple(items), noun="step")
        choices = tuple(Choice(item.id, item.text) for item in items)
        return Asked(card, seed, self, question, card.sections["Question"], choices)

    def verdict(self, asked: Asked, answer: str, grade: Grade) -> Verdict:
        question = cast(OrderQuestion, asked.question)
        given = tuple(item.text for item in question.placed(answer) or ())
        if grade.status == "correct":
            return Verdict("correct", given=given, credit=grade.credit)
        right = Markup("<ol>{}</ol>").format(Markup().join(map(Markup("<li>{}</li>").format, _steps(asked.card))))
        return Verdict("wrong", Markup("{}").format(grade.message), right=right, given=given, credit=grade.credit)

    def listed(self, card: Card, seed: int) -> Listed:
        offered = tuple(choice.text for choice in self.ask(card, seed).choices)
        return Listed((offered,), _steps(card), in_order=True)

    def texts(self, head: CardHead) -> Sequence[str]:
        return self._source(head)

    def _source(self, head: CardHead) -> tuple[str, ...]:
        return cast(tuple[str, ...], self.asked_of(head))


def _steps(card: Card) -> tuple[Markup, ...]:
    return cast(tuple[Markup, ...], card.asks)


KIND = Order()
