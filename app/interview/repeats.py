"""The same mistake a second time in one sitting: the interviewer says so, in other words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import takewhile

from app.content.live import Expressions
from app.interview.parts import Answers, Part, Reaction, Reactions, Values, built_on, known_to
from app.interview.prompts import doubted
from app.interview.questions import question_of


def repeated(
    reaction: Reaction, part: Part, parts: Collection[Part], values: Values, answers: Answers, reactions: Reactions
) -> Reaction:
    """`reaction` to the wrong answer to `part`, with the earlier question whose mistake it is again."""
    about, own = replace(part, reaction=reaction), built_on(answers, reactions)
    asked = [each for each in takewhile(lambda each: each.id != part.id, parts) if each.role == "again"]
    mistakes = set(_mistakes(about, known_to(part, values, own) or {}))
    for each in asked:
        known = known_to(each, values, own)
        if known is not None and not mistakes.isdisjoint(_mistakes(each, known)):
            status = question_of(each, known).grade(answers.get(each.id, "")).status
            return replace(reaction, same_as=each.question.title, was_put_right=status == "correct")
    return reaction


def _mistakes(part: Part, known: Values) -> Iterator[tuple[str, str]]:
    """What the mistake that is asked about in `part` is known by: the title of its slip, and the words of its doubt
    where they are its own. That a number was given before is no mistake by itself."""
    if part.reaction is None or part.reaction.picked:
        return
    slip = next((each for each in part.source.slips if each.id == part.reaction.slip), None)
    if slip is not None and slip.ask:
        yield "slip", slip.title
    if not _is_unknown(part):
        yield "doubt", doubted(part, part.reaction, Expressions(known))


def _is_unknown(part: Part) -> bool:
    """Whether no slip explains a wrong number."""
    slip = part.reaction.slip if part.reaction else None
    return part.kind == "number" and not any(each.id == slip and each.ask for each in part.source.slips)
