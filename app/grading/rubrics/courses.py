"""What becomes of a quantity as another changes: it grows, falls or stays, said of a thing or of what stands before
"which"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.grading.rubrics.lexicon import stem
from app.grading.rubrics.words import FUNCTION_WORDS

Course = Literal["grows", "falls", "stays"]


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


_COURSES: dict[Course, frozenset[str]] = {
    "grows": _stems("grow increase rise double triple quadruple explode proportional"),
    "falls": _stems("fall decrease shrink halve decline diminish vanish"),
    "stays": _stems("constant unchanged independent regardless irrespective invariant tend approach saturate bounded"),
}
_RELATIVES = frozenset({"which", "that"})
_PRONOUNS = frozenset({"it", "this"})
_JOINTS = frozenset({"and", "so", ","})
_SMALL = frozenset(map(stem, FUNCTION_WORDS))
# Between a number and "which": a letter, a unit, "times S".
_OF_NUMBERS = _stems("time byte gb bytes")
REACH = 3  # words between "which" and what becomes of it
BACK = 10  # tokens from "which" to what it speaks of


@dataclass(frozen=True)
class Change:
    """What is told of the thing at token `of`, which is a number or formula or else a word."""

    course: Course
    of: int
    is_number: bool


def course_of(stems: Sequence[str], denied: Sequence[bool]) -> Course | None:
    """The one course that a text tells of; None where it tells of none or of several."""
    found = {each for word, no in zip(stems, denied, strict=True) if (each := _course(word, no)) is not None}
    return found.pop() if len(found) == 1 else None


def changes_in(stems: Sequence[str], denied: Sequence[bool]) -> Iterator[Change]:
    """What a sentence tells of what stands before "which", or before ", and it"."""
    for at, word in enumerate(stems):
        goes_on = word in _RELATIVES or (word in _PRONOUNS and at > 0 and stems[at - 1] in _JOINTS)
        course = _next_course(stems, denied, at) if goes_on else None
        of = _before(stems, at) if course else None
        if course is not None and of is not None:
            yield Change(course, of, stems[of][0].isdigit())


def _course(word: str, denied: bool) -> Course | None:
    course = next((each for each, words in _COURSES.items() if word in words), None)
    if not denied:
        return course
    return "stays" if course in ("grows", "falls") else None


def _next_course(stems: Sequence[str], denied: Sequence[bool], at: int) -> Course | None:
    for place in range(at + 1, min(at + 2 + REACH, len(stems))):
        course = _course(stems[place], denied[place])
        if course is not None:
            return course
        if stems[place].isalpha() and stems[place] not in _SMALL and not stems[place].endswith("li"):
            return None  # another thing is spoken of: "whose latency grows", "which layers double"
    return None


def _before(stems: Sequence[str], at: int) -> int | None:
    """Where the number or word stands that "which" at `at` speaks of: the last one before it."""
    for place in range(at - 1, max(-1, at - 1 - BACK), -1):
        word = stems[place]
        if word[0].isdigit():
            return place
        if word.isalpha() and len(word) > 1 and word not in _SMALL and word not in _OF_NUMBERS:
            return place
    return None
