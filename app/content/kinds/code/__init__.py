"""A program to read: what does it print? A test runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.content.kinds.kind import CardFinding, CardKind

if TYPE_CHECKING:
    from app.content.cards import Card

RUN, OUTPUT = "python run", "text output"


class Code(CardKind):
    name, seconds, place = "code", 60, 6

    def findings(self, card: Card) -> Iterator[CardFinding]:
        if len(card.fenced("Question", RUN)) != 1:
            yield ("# Question",), f"a code card shows one block ```{RUN}"
        if not card.source.sections["Answer"].startswith(f"```{OUTPUT}\n"):
            yield ("# Answer",), f"the answer of a code card begins with a block ```{OUTPUT}"


KIND = Code()
