"""What is left of an answer when what is false in it does not count. Pure.

A sentence may say one thing that is right and another that is false: the clause that is false, or that makes the rest
so, is left out, and the rest is heard by itself. Where there is no such clause, the sentence is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from app.content.interview_schemas import ProbedPoint
from app.grading.rubrics.grader import Rubric, RubricGrade, false_claims
from app.grading.rubrics.points import PointGrade
from app.grading.rubrics.wordings import Wordings
from app.interview.challenging import Held
from app.interview.hearing import hear, hear_quickly
from app.reveal.words import stands_in

LEAST_LEFT = 4  # words of a clause that says something by itself
# Where a clause begins: behind a mark, or with a word that gives a reason, a contrast or an addition.
_CLAUSE = re.compile(
    r"(?:[,:;]\s+|\s+[–—-]+\s+|\s+(?=(?:because|since|so that|whereas|while|but|although|which)\b))", re.IGNORECASE
)
_REASON = re.compile(r"(?:because|since)\b", re.IGNORECASE)


def hear_what_is_left(
    rubric: Rubric,
    points: Collection[ProbedPoint],
    answer: str,
    held: Sequence[Held],
    judged: Mapping[str, bool] | None = None,
    *,
    quickly: bool = False,
) -> RubricGrade:
    """What is heard in `answer`, as `hear` or `hear_quickly` does; a point that rests on what is false, as `held` has
    it, only as far as the answer says it without."""
    listen = hear_quickly if quickly else hear
    whole = listen(rubric, points, answer, judged)
    if not held:
        return whole
    false = {each.said for each in held}
    left = {each.id: each for each in listen(rubric, points, without(answer, held, rubric.wordings), judged).points}
    return replace(whole, points=tuple(_as_left(each, left[each.id], false) for each in whole.points))


def _as_left(heard: PointGrade, left: PointGrade, false: Collection[str]) -> PointGrade:
    """A point as it was heard, or as it is without what is `false`, where it rests on that."""
    rests = [
        words for words in heard.evidence if any(stands_in(each, words) or stands_in(words, each) for each in false)
    ]
    if heard.verdict == "contradicted" or not rests:
        return heard
    if left.verdict == "contradicted":
        return PointGrade(heard.id, "missed", 0.0, ())
    if left.credit and not heard.credit:
        return heard  # what is only near counts no more for what was left out
    return replace(left, credit=min(left.credit, heard.credit))


def without(answer: str, held: Iterable[Held], wordings: Wordings) -> str:
    """An answer without what is false in it."""
    by_sentence: dict[str, list[Held]] = {}
    for each in held:
        by_sentence.setdefault(each.said, []).append(each)
    for said, false in by_sentence.items():
        answer = answer.replace(said, _without_clauses(said, false, wordings))
    return answer


def _without_clauses(sentence: str, held: Sequence[Held], wordings: Wordings) -> str:
    """A false sentence without the clauses that are false; nothing where no clause makes it so, or only a reason does:
    what that is given for falls with it."""
    spans, start = list[tuple[int, int]](), 0
    for cut in _CLAUSE.finditer(sentence):
        spans.append((start, cut.start()))
        start = cut.end()
    spans.append((start, len(sentence)))
    clauses = [sentence[begin:end].strip() for begin, end in spans]
    false = set[int]()
    for each in held:
        of_it = {at for at, clause in enumerate(clauses) if _is_false(each, clause, wordings)}
        of_it = of_it or {at for at in _what_makes_it_so(each, clauses, wordings)[:1] if not _REASON.match(clauses[at])}
        if not of_it:
            return ""
        false |= of_it
    left = (clause.rstrip(".;:,") for at, clause in enumerate(clauses) if at not in false)
    return " ".join(f"{each}." for each in left if len(each.split()) >= LEAST_LEFT)


def _is_false(held: Held, words: str, wordings: Wordings) -> bool:
    return bool(false_claims((held.challenge.false,), words, wordings))


def _what_makes_it_so(held: Held, clauses: Sequence[str], wordings: Wordings) -> list[int]:
    """The clauses without which a sentence is false no longer, the last first: what is said of a thing follows it."""
    rest = ((at, ", ".join(each for other, each in enumerate(clauses) if other != at)) for at in range(len(clauses)))
    return [at for at, words in rest if words and not _is_false(held, words, wordings)][::-1]
