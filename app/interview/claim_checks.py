"""Whether what is known to be said about the points of an interview's questions is whole, can be worked out, and is
heard as what it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.content.catalogue import Catalogue
from app.content.checks import Finding
from app.content.claim_schemas import CLAIMS, InterviewClaimsFile
from app.content.interview_schemas import Interview
from app.content.live import ExpressionError
from app.grading.rubrics.grader import grade
from app.grading.rubrics.likeness import Claim
from app.interview.drawing import draw, values_of
from app.interview.parts import Part, Values, known_to, parts_of
from app.interview.questions import right_answer, rubric_of, said_of

SEEDS = range(3)  # at which claims are worked out
# Of a kind's claims this share, or as many of a short interview's, may be heard alone as their contrary: one sentence
# is little to go by.
MISTAKEN, FEW = 0.05, 3


def check_interview_claims(catalogue: Catalogue) -> Iterator[Finding]:
    """The claims of every interview and round that asks for words: where one has some, all have."""
    asked_in_words = [
        each for each in catalogue.interviews.values() if any(question.kind == "text" for question in each.questions)
    ]
    is_claimed = any(each.claims for each in asked_in_words)
    for interview in asked_in_words:
        file = interview.claims
        if file is None:
            if is_claimed:
                yield interview.id, ("questions",), f"there is no {CLAIMS}/{interview.id}.yaml"
            continue
        key = f"{CLAIMS}/{interview.id}.yaml"
        yield from ((key, place, reason) for place, reason in _points(interview, file))
        try:
            asked = [list(_asked(interview, seed)) for seed in SEEDS]
            yield from ((key, ("questions",), reason) for reason in _misheard(asked[0]))
        except ExpressionError as error:
            yield key, ("questions", *error.location), str(error)


def _points(interview: Interview, file: InterviewClaimsFile) -> Iterator[tuple[tuple[str, ...], str]]:
    """The points that have no claims, and the claims that have no point."""
    asked = {each.id: {point.id for point in each.rubric} for each in interview.questions if each.kind == "text"}
    for question in asked.keys() | file.questions.keys():
        points, claimed = asked.get(question, set()), set(file.questions.get(question, ()))
        if missing := sorted(points - claimed):
            yield ("questions",), f"there are no claims about {', '.join(f'{question}.{each}' for each in missing)}"
        for strange in sorted(claimed - points):
            yield ("questions", question, strange), f"{interview.id} has no point {question}.{strange}"


def _asked(interview: Interview, seed: int) -> Iterator[tuple[Part, Values, tuple[Claim, ...]]]:
    """The questions in words, after right answers to all that they build on, with the claims about them; those of a
    round build on nothing. Raises ExpressionError."""
    values, answers = values_of(interview, draw(interview, seed)), dict[str, str]()
    for part in parts_of(interview):
        if part.kind != "text":
            answers[part.id] = "" if interview.is_round else right_answer(part, values, answers)
            continue
        answers[part.id] = "words"
        known = known_to(part, values, answers)
        assert known is not None, "all before it was answered"
        yield part, known, said_of(part, known)


def _misheard(asked: Iterable[tuple[Part, Values, tuple[Claim, ...]]]) -> Iterator[str]:
    """Where too many claims by themselves are heard as their contrary."""
    counts, mistaken = {"right": 0, "wrong": 0}, {"right": list[str](), "wrong": list[str]()}
    for part, known, claims in asked:
        rubric = rubric_of(part, known)
        alone = {point.id: replace(rubric, points=(point,)) for point in rubric.points}
        for claim in claims:
            if claim.point not in alone:
                continue
            if claim.truth == "half":
                continue
            counts[claim.truth] += 1
            heard = grade(alone[claim.point], claim.text).points[0]
            if heard.credit if claim.truth == "wrong" else heard.verdict == "contradicted":
                mistaken[claim.truth].append(f"{part.id}.{claim.point}: {claim.text}")
    for truth, heard_as in (("right", "contradicted"), ("wrong", "met")):
        if len(mistaken[truth]) > max(FEW, MISTAKEN * counts[truth]):
            share = len(mistaken[truth]) / counts[truth]
            yield f"{share:.0%} of the {truth} claims are {heard_as} by themselves: {' / '.join(mistaken[truth])}"
