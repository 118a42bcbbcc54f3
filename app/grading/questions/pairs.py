"""Pairs: what belongs to each of several things, chosen among as many right sides."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from app.grading.grade import Grade, invalid
from app.grading.questions.reading import incomplete, read_ids


@dataclass(frozen=True)
class Right:
    """A right side as it is offered: what an answer calls it, and what the page shows."""

    id: str
    text: Markup


@dataclass(frozen=True)
class PairsQuestion:
    """`key` has the id of each left side's own right side, in the order of `lefts`; so has an answer."""

    lefts: tuple[Markup, ...]
    rights: tuple[Right, ...]
    key: tuple[str, ...]

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered."""
        return ", ".join(self.key)

    @property
    def key_text(self) -> str:
        """What is right, as a person reads it."""
        texts = self._texts(self.key)
        return "; ".join(
            f"{left.striptags()}: {text.striptags()}" for left, text in zip(self.lefts, texts, strict=True)
        )

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        given = self.given(text)
        return text if given is None else "; ".join(each.striptags() for each in self._texts(given))

    def given(self, text: str) -> list[str] | None:
        """The right side given to each left one; None where each is not named exactly once."""
        ids = read_ids(text)
        return None if incomplete(ids, [each.id for each in self.rights], "pair") else ids

    def grade(self, text: str) -> Grade:
        """What an answer is worth: the share of the pairs that are right."""
        given = self.given(text)
        if given is None:
            return invalid(incomplete(read_ids(text), [each.id for each in self.rights], "pair") or "")
        wrong = sum(mine != own for mine, own in zip(given, self.key, strict=True))
        if not wrong:
            return Grade("correct", 1.0, "")
        credit = round(1 - wrong / len(self.key), 4)
        return Grade("wrong", credit, f"{wrong} of {len(given)} {'belongs' if wrong == 1 else 'belong'} elsewhere.")

    def _texts(self, ids: list[str] | tuple[str, ...]) -> list[Markup]:
        by_id = {each.id: each.text for each in self.rights}
        return [by_id[each] for each in ids]
