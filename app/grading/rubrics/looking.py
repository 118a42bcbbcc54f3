"""What an answer has of some evidence: said, only near it, or against it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.grading.rubrics.courses import Course
from app.grading.rubrics.matching import Passage, find
from app.grading.rubrics.patterns import Pattern
from app.grading.rubrics.reading import Reading

# A mistake must be said in few words: in a long sentence many things stand near each other.
CLAIM_REACH = 16


@dataclass(frozen=True)
class Look:
    """What was found of some evidence: in a statement, in one that commits to nothing, in a mere row, or against it:
    called unnecessary or said of another subject, or else `turned`, said to grow where it stays. `denied` is what
    stands in a clause that denies something."""

    shown: Passage | None = None
    vague: Passage | None = None
    listed: Passage | None = None
    against: Passage | None = None
    turned: Passage | None = None
    denied: Passage | None = None


def texts_of(passages: Iterable[Passage]) -> tuple[str, ...]:
    """What stands in passages, each text once, in the order of the answer."""
    return tuple(dict.fromkeys(each.text for each in sorted(passages, key=lambda each: each.sentence)))


def look(patterns: tuple[Pattern, ...], reading: Reading, course: Course | None = None) -> Look:
    """What an answer has of any of `patterns`; `course` is what becomes of what they are about."""
    everything = [(each, passage) for each in patterns if (passage := find(each, reading)) is not None]
    others = {
        passage.sentence for each, passage in everything if course and _takes_another(course, each, reading, passage)
    }
    listed = against = vague = turned = denied = None
    for _, found in everything:
        if not reading.is_said(found.sentence):
            listed = listed or found
        elif found.dismissed or found.swapped:
            against = against or found
        elif found.sentence in others:
            turned = turned or found
        elif found.denied:
            denied = denied or found
        elif reading.sentences[found.sentence].is_vague:
            vague = vague or found
        else:
            return Look(shown=found)
    return Look(None, vague, listed, against, turned, denied)


def _takes_another(course: Course, pattern: Pattern, reading: Reading, passage: Passage) -> bool:
    """Whether what evidence names is said to grow, fall or stay there where the point says that it does not."""
    sentence = reading.sentences[passage.sentence]
    return any(
        each.course != course
        and (pattern.has_numbers if each.is_number else sentence.tokens[each.of].stem in pattern.stems)
        for each in sentence.changes
    )


def claimed(patterns: tuple[Pattern, ...], reading: Reading, rivals: frozenset[str] = frozenset()) -> Passage | None:
    """Evidence of a mistake, unless its sentence says that it is one, or says it of another subject."""
    for pattern in patterns:
        for index, sentence in enumerate(reading.sentences):
            if sentence.refutes or sentence.is_list or not pattern.may_stand(sentence.stems):
                continue
            found = find(pattern, Reading((sentence, *reading.sentences[index + 1 : index + 2])), CLAIM_REACH, rivals)
            if found is not None and found.sentence == 0 and not found.swapped:
                return found
    return None
