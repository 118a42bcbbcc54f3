"""Whether a reply says again what was asked about, in other words than those that are known for it. Pure.

Who is asked about something false leaves out what the question has said already. So what a reply begins with is heard
as the end of the question as well. Who says yes to what was said back, and more of it than of what is so, stands by it.
A number of the kind that was asked for, and another one, is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.content.challenges import Questioned
from app.grading.rubrics.grader import false_claims
from app.grading.rubrics.patterns import Value
from app.grading.rubrics.points import Point, values_of
from app.grading.rubrics.quotes import topic
from app.grading.rubrics.reading import read
from app.grading.rubrics.stated_numbers import Number
from app.grading.rubrics.wordings import Wordings
from app.interview.replying import affirms
from app.reveal.words import sentences

LONGEST_ANSWER = 7  # words of a clause that only says which
LONGEST_FIRST = 12  # words of a sentence that answers how much
# What begins so gives a reason for the answer before it, or makes a condition.
_REASON = re.compile(r"[,;:]\s+|\s+[–—-]+\s+|\s+(?=(?:because|since|as|so|if|when)\b)", re.IGNORECASE)
_CONDITION = re.compile(r"(?:if|when|unless|as long as)\b", re.IGNORECASE)
_STAYS = re.compile(
    r"\b(?:still|stays?|same|remains?|unchanged|as before|as much|no more|nothing more)\b", re.IGNORECASE
)


def answers_the_same(challenge: Questioned, ask: str, reply: str, wordings: Wordings) -> bool:
    """Whether what a reply begins with, as the end of the question `ask`, is what was false."""
    question, answer = sentences(ask)[-1:], _answer(reply)
    if not question or not answer or false_claims((challenge.false,), question[0], wordings):
        return False
    return bool(false_claims((challenge.false,), f"{question[0].rstrip('?')}: {answer}", wordings))


def _answer(reply: str) -> str:
    """The first clause of a reply, where it is short: what follows gives the reason."""
    told = sentences(reply)
    first = _REASON.split(told[0], maxsplit=1)[0].rstrip(".!") if told else ""
    return first if len(first.split()) <= LONGEST_ANSWER and not _CONDITION.match(first) else ""


def agrees(said: str, so: str, reply: str) -> bool:
    """Whether a reply says yes to what was `said`, and more of that than of what is `so`."""
    told, false = topic(reply), topic(said)
    return affirms(reply) and len(told & (topic(so) - false)) < len(told & false)


def gives_another_number(right: Point | None, ask: str, reply: str, wordings: Wordings) -> bool:
    """Whether a reply begins with a number of the kind that was asked for, its own or one of the question as what
    stays, and has none that is `right`."""
    wanted = tuple(values_of(right.evidence)) if right else ()
    kinds = {each.dimension for each in wanted} - {"count"}
    first = next(iter(sentences(reply)), "")
    short = first if len(first.split()) <= LONGEST_FIRST else ""  # what is long speaks of more than what was asked
    given = [each for each in _numbers(short, wordings) if any(map(each.is_a, kinds))]
    if len(wanted) > len(kinds):  # a count is asked for: a bare number that the reply begins with is meant for it
        given += [each for each in _numbers(_answer(reply), wordings) if not each.has_unit and not each.is_set]
    given = [each for each in given if not each.denied]
    if not given or any(_is_right(each, wanted) for each in _numbers(reply, wordings)):
        return False
    asked = {each.texts[-1] for each in _numbers(ask, wordings)}
    return any(each.texts[-1] not in asked for each in given) or _STAYS.search(reply) is not None


def _numbers(text: str, wordings: Wordings) -> Sequence[Number]:
    return [number for sentence in read(text, wordings).sentences for number in sentence.numbers]


def _is_right(number: Number, wanted: Sequence[Value]) -> bool:
    return any(number.matches(each.value, each.dimension, each.scale, each.tolerance) for each in wanted)
