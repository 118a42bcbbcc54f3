"""A text with one blank or two, written [[text]]."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from markupsafe import Markup

from app.content.kinds.kind import CardFinding, CardKind, Own
from app.content.markdown import render_cloze

if TYPE_CHECKING:
    from app.content.cards import Card

MOST_BLANKS = 2

_BLANK = re.compile(r"\[\[.+?\]\]")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


class Cloze(CardKind):
    name, seconds, place = "cloze", 20, 2
    own = Own("Blanks in a text", has_blanks=True)

    def render_question(self, text: str) -> Markup:
        return render_cloze(text)

    def findings(self, card: Card) -> Iterator[CardFinding]:
        blanks = len(_BLANK.findall(_FENCED.sub("", card.source.sections["Question"])))
        if not 1 <= blanks <= MOST_BLANKS:
            yield ("# Question",), f"a cloze has one blank or two, written [[text]]; here are {blanks}"


KIND = Cloze()
