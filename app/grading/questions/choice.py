"""A choice: one option, or all that are right, where each wrong tick takes back what a right one gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from app.grading.grade import Grade, invalid
from app.grading.questions.reading import read_ids

Standing = Literal["right", "wrong", "missed", "rightly left out"]


@dataclass(frozen=True)
class Option:
    """An option as it is shown, with what to say to somebody who was wrong about it, and of them (`did`)."""

    id: str
    text: Markup
    correct: bool
    message: str = ""
    cure: str | None = None
    did: str = ""


@dataclass(frozen=True)
class ChoiceQuestion:
    """`options` in the order they are shown; `several` may be ticked, else one is chosen."""

    options: tuple[Option, ...]
    several: bool = False

    @property
    def right(self) -> tuple[Option, ...]:
        return tuple(option for option in self.options if option.correct)

    @property
    def key(self) -> list[str]:
        return [option.id for option in self.right]

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered."""
        return ", ".join(self.key)

    @property
    def key_text(self) -> str:
        """What is right, as a person reads it."""
        return said_of(self.right)

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        chosen = self.chosen(text)
        return text if chosen is None else said_of(chosen)

    def chosen(self, text: str) -> list[Option] | None:
        """The options named, by id or by their whole text; None when something else is named."""
        by_id = {option.id.lower(): option for option in self.options}
        whole = {option.text.striptags().lower(): option for option in self.options}
        if text.strip().lower() in whole:
            return [whole[text.strip().lower()]]
        ids = read_ids(text)
        if any(each not in by_id for each in ids):
            return None
        return [by_id[each] for each in dict.fromkeys(ids)]

    def misjudged(self, chosen: Sequence[Option]) -> list[Option]:
        """The options that were ticked and are wrong, or left out and are right."""
        return [option for option in self.options if option.correct != (option in chosen)]

    def grade(self, text: str) -> Grade:
        """What an answer is worth."""
        chosen = self.chosen(text)
        how = f"Choose {'one or more' if self.several else 'one'} of {', '.join(each.id for each in self.options)}."
        if chosen is None:
            return invalid(f"That is none of the options. {how}")
        if not chosen:
            return invalid(how)
        if not self.several and len(chosen) > 1:
            return invalid(f"One option is asked for, and several were given. {how}")
        misjudged = self.misjudged(chosen)
        if not misjudged:
            return Grade("correct", 1.0, _joined(chosen))
        told = misjudged if self.several else chosen
        ticked = next((option for option in misjudged if not option.correct), misjudged[0])
        hits, wrong = sum(option.correct for option in chosen), sum(not option.correct for option in chosen)
        credit = round(max(0.0, (hits - wrong) / max(1, len(self.right))), 4)
        cure = next((option.cure for option in told if option.cure), None)
        did = "" if self.several else ticked.did
        return Grade("wrong", credit, _joined(told), None, ticked.id, None, cure, did)

    def standing(self, option: Option, text: str) -> Standing:
        """How an option stands after the answer `text`."""
        if option in (self.chosen(text) or ()):
            return "right" if option.correct else "wrong"
        return "missed" if option.correct else "rightly left out"


def said_of(options: Sequence[Option]) -> str:
    """Options as a person reads them."""
    return "; ".join(option.text.striptags() for option in options)


def _joined(options: Sequence[Option]) -> str:
    return " ".join(option.message for option in options if option.message)
