"""The same answer in words at each level: what of a full one is left as its sentences are left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations

from app.grading.levels import NAMES, Level
from app.grading.rubrics.grader import Rubric, RubricGrade, grade
from app.reveal.words import sentences

MOST_SENTENCES = 6  # of an answer whose parts are all tried

AtLevels = tuple[tuple[Level, str], ...]


def at_levels(rubric: Rubric, full: str, weak: str) -> AtLevels:
    """An answer for each level that can be told, the best first: the `full` one, what is left of it, the `weak` one.

    Sentences are left out by what their points weigh, the lightest first, so that what is missing is what a busy
    candidate would miss; where that skips a level, the heaviest first, and then any of a short answer's sentences. A
    level that none of it comes to has none.
    """
    by_level: dict[Level, str] = {}
    for choose in (min, max):
        _leave_out(rubric, full, choose, by_level)
        if len(by_level) >= len(NAMES) - 1:
            break
    _try_parts(rubric, sentences(full), by_level)
    by_level[grade(rubric, weak).level] = weak
    return tuple((level, by_level[level]) for level in NAMES if level in by_level)


def _leave_out(rubric: Rubric, said: str, choose: Callable[..., str], by_level: dict[Level, str]) -> None:
    """Into `by_level`, for each level that has none, what is left of `said` when it first comes to it."""
    while said:
        heard = grade(rubric, said)
        by_level.setdefault(heard.level, said)
        weights = _weights(rubric, heard, sentences(said))
        if not weights:
            return
        left_out = choose(weights, key=weights.__getitem__)
        said = " ".join(each for each in sentences(said) if each != left_out)


def _try_parts(rubric: Rubric, said: list[str], by_level: dict[Level, str]) -> None:
    """Into `by_level`, for a level in between that has none, the longest part of a short answer that comes to it."""
    for number in range(len(said) - 1, 0, -1) if len(said) <= MOST_SENTENCES else ():
        for part in combinations(said, number):
            if all(level in by_level for level in NAMES[:-1]):
                return
            text = " ".join(part)
            by_level.setdefault(grade(rubric, text).level, text)


def _weights(rubric: Rubric, heard: RubricGrade, said: list[str]) -> dict[str, float]:
    """Of each sentence that says something, the weight of the points that it is the evidence for."""
    found: dict[str, float] = {}
    for point, each in zip(rubric.points, heard.points, strict=True):
        for sentence in said if each.credit else ():
            if says(sentence, each.evidence):
                found[sentence] = found.get(sentence, 0.0) + point.weight
    return found


def without(rubric: Rubric, point: str, said: str) -> str:
    """`said` without the sentences that say `point`."""
    for _ in rubric.points:
        found = next(each for each in grade(rubric, said).points if each.id == point)
        if not found.credit:
            break
        said = " ".join(each for each in sentences(said) if not says(each, found.evidence))
    return said


def says(sentence: str, evidence: tuple[str, ...]) -> bool:
    """Whether a sentence is in the evidence, which has lost its semicolons."""
    return any(_words(sentence) in _words(one) for one in evidence)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))
