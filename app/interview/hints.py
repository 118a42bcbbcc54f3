"""Hints to a number in a sitting: opened one by one, each once, and what they leave of the points. Pure.

An opened hint is kept as an answer of its own, `<part>.hint.<n>`, in the words it had then: its key makes opening it
a second time change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from app.content.live import Expressions
from app.content.markdown import render_inline
from app.grading.hints import share_left
from app.interview.parts import Part, Values, known_to, scope_of, unlinked


def hint_id(part: str, number: int) -> str:
    """Where the opened hint `number`, from 1, of a part is kept."""
    return f"{part}.hint.{number}"


def hinted_part(part: Part) -> str | None:
    """The part whose hints count for `part`: its own, or those of the number that is asked again."""
    if part.is_follow_up or part.role not in ("asked", "again") or not part.question.hints:
        return None
    return part.question.id


def opened(part: Part, saved: Collection[str]) -> int:
    """How many hints that count for `part` were opened, by the ids of what was saved."""
    about = hinted_part(part)
    return sum(hint_id(about, n) in saved for n in range(1, len(part.question.hints) + 1)) if about else 0


def points_left(part: Part, saved: Collection[str]) -> float:
    """What of a part's points its opened hints leave."""
    return part.points * share_left(opened(part, saved))


def said_hints(part: Part, answers: Mapping[str, str]) -> tuple[str, ...]:
    """The opened hints of a number, in the words they had then."""
    if part.role != "asked":
        return ()
    about = hinted_part(part)
    ids = [hint_id(about, n) for n in range(1, len(part.question.hints) + 1)] if about else []
    return tuple(answers[each] for each in ids if each in answers)


def hint(part: Part, number: int, values: Values, answers: Mapping[str, str]) -> str:
    """Hint `number`, from 1, of a part in plain words. Raises ExpressionError."""
    known = known_to(part, values, answers) or scope_of(part.question, values)
    return render_inline(part.question.hints[number - 1], Expressions(unlinked(known))).striptags()


def hints_in_words(hints: tuple[str, ...]) -> str:
    """“ with a hint”, as it stands behind a name; nothing where none was opened."""
    return {0: "", 1: " with a hint"}.get(len(hints), f" with {len(hints)} hints")
