"""Pairs: what belongs to each left side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from markupsafe import Markup
from pydantic import AfterValidator
from pydantic import Field as SchemaField

from app.content.kinds.asking import LETTERS, Asked, Choice, Listed, Verdict
from app.content.kinds.kind import CheckedKind, Field, Show
from app.content.schemas import Strict, Text, all_different
from app.grading.grade import Grade
from app.grading.questions import PairsQuestion, Right, shuffled

if TYPE_CHECKING:
    from app.content.card_schemas import CardHead
    from app.content.cards import Card


class Pair(Strict):
    """Two things that belong together."""

    left: Text
    right: Text


@dataclass(frozen=True)
class ShownPair:
    """A pair, rendered."""

    left: Markup
    right: Markup


def _can_be_told_apart(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    all_different([pair.left for pair in pairs], "left side")
    all_different([pair.right for pair in pairs], "right side")
    return pairs


Pairs = Annotated[tuple[Pair, ...], SchemaField(min_length=3, max_length=8), AfterValidator(_can_be_told_apart)]


class Match(CheckedKind):
    name, seconds, place = "match", 60, 8
    field = Field("pairs", Pairs, ())

    def make(self, head: CardHead, show: Show) -> tuple[ShownPair, ...]:
        return tuple(
            ShownPair(show.inline(pair.left, "pairs", index, "left"), show.inline(pair.right, "pairs", index, "right"))
            for index, pair in enumerate(self._source(head))
        )

    def ask(self, card: Card, seed: int) -> Asked:
        pairs = _pairs(card)
        texts = [pair.right for pair in pairs]
        shown = shuffled(card.name_at(seed), texts, never=texts)
        rights = tuple(Right(letter, text) for letter, text in zip(LETTERS, shown, strict=False))
        lefts = tuple(pair.left for pair in pairs)
        question = PairsQuestion(lefts, rights, tuple(rights[shown.index(text)].id for text in texts))
        choices = tuple(Choice(each.id, each.text) for each in rights)
        return Asked(card, seed, self, question, card.sections["Question"], choices, lefts)

    def verdict(self, asked: Asked, answer: str, grade: Grade) -> Verdict:
        question = cast(PairsQuestion, asked.question)
        texts = {each.id: each.text for each in question.rights}
        given = tuple(texts[each] for each in question.given(answer) or ())
        remarks = tuple(
            (pair.left, Markup("goes with {}.").format(pair.right))
            for pair, text in zip(_pairs(asked.card), given, strict=True)
            if text != pair.right
        )
        message = Markup("{}").format(grade.message)
        return Verdict(grade.status, message, remarks=remarks, given=given, credit=grade.credit)

    def listed(self, card: Card, seed: int) -> Listed:
        asked = self.ask(card, seed)
        lettered = tuple(Markup("{}) {}").format(choice.key, choice.text) for choice in asked.choices)
        right = tuple(Markup("{}: {}").format(pair.left, pair.right) for pair in _pairs(card))
        return Listed((asked.lefts, lettered), right)

    def texts(self, head: CardHead) -> Sequence[str]:
        return [pair.left for pair in self._source(head)]

    def _source(self, head: CardHead) -> tuple[Pair, ...]:
        return cast(tuple[Pair, ...], self.asked_of(head))


def _pairs(card: Card) -> tuple[ShownPair, ...]:
    return cast(tuple[ShownPair, ...], card.asks)


KIND = Match()
