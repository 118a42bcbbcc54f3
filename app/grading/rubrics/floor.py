"""What lifts an answer without numbers: definitions that stand in it, in statements that commit to something. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.grading.rubrics.looking import look, texts_of
from app.grading.rubrics.points import Part
from app.grading.rubrics.reading import Reading, Sentence
from app.grading.rubrics.words import LEAVES_OPEN

_DIGIT = re.compile(r"\d")
_LEAVES_OPEN = re.compile(rf"^there (?:is|are)\b|\b(?:{'|'.join(map(re.escape, LEAVES_OPEN))})\b")


def definitions_in(reading: Reading, floor: Sequence[Part], needs: int) -> tuple[str, ...]:
    """The sentences that show the parts of a `floor`; empty where fewer than `needs` are shown, or where there is none.
    A sentence that leaves open what it says, or how, shows no part; nor does an answer half of which is such."""
    committed = [each for each in reading.sentences if not leaves_open(each)]
    if not floor or 2 * len(committed) <= len(reading.sentences):
        return ()
    kept = Reading(tuple(committed))
    shown = [found for part in floor if (found := look(part.patterns, kept).shown) is not None]
    return texts_of(shown) if len(shown) >= needs else ()


def leaves_open(sentence: Sentence) -> bool:
    """Whether it says, without a number, that things are there, matter or are to be seen to, and not what or how."""
    return sentence.is_vague or (not _DIGIT.search(sentence.text) and _LEAVES_OPEN.search(sentence.written) is not None)
