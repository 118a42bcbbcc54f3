"""What becomes of a quantity as another changes: it grows, falls or stays, said of a thing or of what stands before
"which"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.grading.rubrics.lexicon import FUNCTION_STEMS, stem

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
# Between a number and "which": a letter, a unit, "times S".
_OF_NUMBERS = _stems("time byte gb bytes")
_MORE = _stems("more larger higher")
# Behind "32 times": what it is compared with.
_THAN = _stems("what as more larger higher that")
MOST_TIMES = 2.0  # what stays about the same may be twice another of its values
_TOTALS = _stems("total all together whole overall sum")
_OF_EACH = _stems("per rank gpu")
FAR = 12  # words from the first change to the second
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
    """What a sentence tells of what stands before "which", before ", and it" or ", and this traffic", and before "so
    the more ranks, the more ...", "so doubling the ranks doubles ..." or "so with 64 it is 32 times what it is with 2".
    """
    for at, word in enumerate(stems):
        is_joined = at > 0 and stems[at - 1] in _JOINTS
        if word in _RELATIVES or (word in _PRONOUNS and is_joined):
            course = _next_course(stems, denied, at) or (
                _next_course(stems, denied, at + 1) if word == "this" else None
            )
        else:
            course = _in_proportion(stems, at) if is_joined else None
        of = _before(stems, at) if course else None
        if course is not None and of is not None:
            yield Change(course, of, stems[of][0].isdigit())


def _in_proportion(stems: Sequence[str], at: int) -> Course | None:
    """What is told by one change twice, more of one with more of the other, or the same verb of both; or by how many
    times it is. Of all ranks together it is told of another thing than of each."""
    after = stems[at : at + FAR]
    if not _TOTALS.isdisjoint(after):
        return None
    more = [place for place, each in enumerate(after) if each in _MORE and after[place - 1 : place] == ["the"]]
    verb = next((each for each in after[:2] if _course(each, denied=False) == "grows"), None)
    is_more = bool(more[1:]) and more[0] <= REACH
    is_twice = verb is not None and after.count(verb) > 1
    return "grows" if is_more or is_twice or _is_many_times(after) else None


def _is_many_times(stems: Sequence[str]) -> bool:
    """Whether something is said to be several times what it is elsewhere."""
    compared = zip(stems, stems[1:], stems[2:], strict=False)
    numbers = [number.replace(",", "") for number, times, than in compared if times == "time" and than in _THAN]
    return any(each.replace(".", "", 1).isdecimal() and float(each) > MOST_TIMES for each in numbers)


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
        if stems[place].isalpha() and stems[place] not in FUNCTION_STEMS | _OF_EACH and not stems[place].endswith("li"):
            return None  # another thing is spoken of: "whose latency grows", "which layers double"
    return None


def _before(stems: Sequence[str], at: int) -> int | None:
    """Where the number or word stands that "which" at `at` speaks of: the last one before it."""
    for place in range(at - 1, max(-1, at - 1 - BACK), -1):
        word = stems[place]
        if word[0].isdigit():
            return place
        if word.isalpha() and len(word) > 1 and word not in FUNCTION_STEMS and word not in _OF_NUMBERS:
            return place
    return None
