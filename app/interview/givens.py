"""What a candidate asked to be told before computing, and what the interviewer says to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from app.content.interview_schemas import Question
from app.content.live import Expressions
from app.content.markdown import render_inline
from app.grading.questions.choice import Standing
from app.interview.parts import Part, Values, scope_of, unlinked
from app.interview.questions import choice_of


@dataclass(frozen=True)
class GivenReply:
    """One thing that was asked for, or that is needed and was not. `says` is the interviewer's word on it, as HTML.

    `price` is what not asking for it, or asking for what does not matter, costs of the question's points; together
    never more than all of them.
    """

    id: str
    text: str
    says: str
    standing: Standing
    price: float

    @property
    def html(self) -> Markup:
        """What is said, as a page shows it."""
        return Markup(self.says)  # noqa: S704 - rendered from content, or escaped

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> GivenReply:
        """As it was stored."""
        return cls(**stored)


def replies_to(part: Part, values: Values, answer: str) -> tuple[GivenReply, ...]:
    """What the interviewer says to who chose `answer` of the givens of `part`, whose question goes by `values`: what is
    needed is told in any case."""
    if part.kind != "givens":
        return ()
    choice = choice_of(part, values)
    replies = {given.id: given.reply for given in part.question.givens}
    found = []
    for option in choice.options:
        standing, reply = choice.standing(option, answer), replies[option.id]
        if standing == "rightly left out":
            continue
        says = escape(option.message) if reply is None else render_inline(reply, Expressions(unlinked(values)))
        price = 0.0 if standing == "right" else part.points / len(choice.right)
        found.append(GivenReply(option.id, option.text.striptags(), str(says), standing, price))
    return tuple(found)


def replies_before(part: Part, parts: list[Part], values: Values, answers: Mapping[str, str]) -> tuple[GivenReply, ...]:
    """What the candidate was told for the question of `part`."""
    return tuple(
        each
        for earlier in parts
        if _is_for(part, earlier.question) and (answer := answers.get(earlier.id))
        for each in replies_to(earlier, scope_of(earlier.question, values), answer)
    )


def _is_for(part: Part, asked: Question) -> bool:
    return asked.kind == "givens" and asked in part.builds_on
