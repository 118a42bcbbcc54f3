"""How an answer in words is heard in an interview: by the grader of rubrics, as somebody speaks. Pure.

Six things beyond it. Who goes through several things ("First … Then … At the end …") says one thing in several
sentences, as does who goes on with “It …”: they are heard as one as well, and a point that is said in them counts. Of
several sentences that say a point, the one that is quoted is the one that is most about it, not the one that came
first. A long sentence goes on behind a colon, a semicolon or a dash: what stands there is heard by itself as well. And
a point that wants a number is said in half without one. An order is said by who goes through it, first, then, at the
end, and denied only by words about it. Who says that there is nothing to ask has asked for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from app.content.interview_schemas import ProbedPoint
from app.grading.rubrics.grader import Rubric, RubricGrade, grade
from app.grading.rubrics.likeness import NO_CLAIMS
from app.grading.rubrics.nearness import Nearness, nearest_sentence, nearest_to, nearnesses
from app.grading.rubrics.points import Judgement, Point, PointGrade, as_judged
from app.grading.rubrics.quotes import topic
from app.grading.rubrics.reading import Reading, read
from app.interview.weighing import weighed
from app.reveal.words import sentences

# A sentence that begins so goes on with what the one before began.
_GOES_ON = re.compile(
    r"(?:and |so )?(?:then|next|after (?:that|this)|afterwards?|finally|lastly?|second(?:ly)?|third(?:ly)?"
    r"|(?:at|in) the end)\b[\s,:]*",
    re.IGNORECASE,
)
# One that begins so speaks of what the one before named.
_REFERS = re.compile(r"(?:and |so |but )?(?:it|its|this|that|these|those|they|there|which|here)\b", re.IGNORECASE)
LONG_SENTENCE = 18  # words, from which its parts are heard by themselves
_BREAK = re.compile(r"[:;]\s+|\s+[–—-]+\s+")
# Who says so hands on what others hold, or supposes it.
_TELLS = re.compile(
    r"\b(?:claims?|says?|said|thinks?|believes?|wrong|myth|false|not true|would be|as if|suppose|unless)\b",
    re.IGNORECASE,
)
LEAST_STEPS = 3  # that are gone through, for an order
# A step of what somebody goes through, at its beginning; and words about an order anywhere.
_STEP = re.compile(
    r"(?:and |so )?(?:first|second|third|fourth|fifth|then|next|after (?:that|this)|afterwards?|finally|last(?:ly)?"
    r"|(?:at|in) the end|(?:I|I'd|I would|I will|I'll) (?:start|begin|end|close|finish))(?:ly)?\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(r"\b(?:order|first|second|last|then|next|before|after|begin|start|end|finally)\b", re.IGNORECASE)
_DENIES = re.compile(r"n't\b|\b(?:no|not|never|nothing|any|whatever|irrelevant|arbitrary|unnecessary)\b", re.IGNORECASE)
# Who says so refuses to ask; and what asks for something.
_ASKS_NOTHING = re.compile(
    r"\b(?:don't|do not|needn't|need not|wouldn't|would not|won't|nothing|no need)\b[^.;:?]{0,40}\bask\b", re.IGNORECASE
)
_ASKS = re.compile(
    r"\?|\b(?:I(?:'d| would| will)? ask|need to know|want to know|like to (?:know|hear)|tell me|give me|my question)\b",
    re.IGNORECASE,
)
# A reply that says that it was said before.
_AS_SAID = re.compile(
    r"\b(?:as I (?:said|mentioned)|(?:I )?(?:already )?said (?:it|that|this|so) (?:already|before)|I already said)\b",
    re.IGNORECASE,
)


def hear(
    rubric: Rubric, points: Collection[ProbedPoint], answer: str, judged: Mapping[str, bool] | None = None
) -> RubricGrade:
    """What is heard in `answer`. `points` are the rubric's as content has them; `judged` says which of
    them the candidate says to have said."""
    plain = hear_quickly(rubric, points, answer, judged)
    texts = {each.id: each.text for each in points}
    graded = {each.id: each for each in rubric.points}
    quoted = [_quoted(each, graded[each.id], rubric, answer, texts.get(each.id, "")) for each in plain.points]
    reading = read(answer, rubric.wordings)
    near = nearnesses(rubric.near_claims, reading)
    quoted = [_where_it_is_said(each, near.get(each.id, ()), reading) for each in quoted]
    shown_by = {each.id: each.shown_by for each in points}
    return replace(plain, points=tuple(_in_figures(each, shown_by.get(each.id)) for each in quoted))


def hear_quickly(
    rubric: Rubric, points: Collection[ProbedPoint], answer: str, judged: Mapping[str, bool] | None = None
) -> RubricGrade:
    """What is heard in `answer`, as the interviewer goes on from it: which sentence is quoted for a point can wait."""
    plain = grade(rubric, answer)
    told = sentences(answer)
    together, pieces = _in_one_breath(answer), [piece for each in told for piece in _pieces(each)]
    if len(together) != len(told):
        plain = _best_of(plain, grade(rubric, " ".join(together)), together)
    if len(pieces) != len(told):
        plain = _best_of(plain, grade(rubric, " ".join(pieces)), {})
    plain = replace(plain, points=weighed(plain.points, rubric, read(answer, rubric.wordings)))
    shown_by = {each.id: each.shown_by for each in points}
    spoken = (_as_spoken(each, shown_by.get(each.id), told) for each in plain.points)
    # decides where the grader is unsure, and nowhere else
    own: Mapping[str, Judgement] = {point: "met" if said else "missed" for point, said in (judged or {}).items()}
    return replace(plain, points=tuple(as_judged(each, own) if each.verdict == "unsure" else each for each in spoken))


def _as_spoken(heard: PointGrade, shown_by: str | None, spoken: Sequence[str]) -> PointGrade:
    """A point about the order or about what is asked for, as all that was `spoken` says it."""
    if shown_by == "order":
        steps = tuple(each for each in spoken if _STEP.match(each))
        if not heard.credit and len(steps) >= LEAST_STEPS:
            return PointGrade(heard.id, "met", 1.0, steps)
        is_about_it = any(_ORDERS.search(each) and _DENIES.search(each) for each in heard.evidence)
        if heard.verdict == "contradicted" and not is_about_it:
            return PointGrade(heard.id, "missed", 0.0, ())
    if shown_by == "asking" and not any(_ASKS.search(each) for each in heard.evidence):
        refused = next((each for each in spoken if _ASKS_NOTHING.search(each)), "")
        return PointGrade(heard.id, "contradicted", 0.0, (refused,)) if refused else heard
    return heard


def _best_of(plain: RubricGrade, other: RubricGrade, made_of: Mapping[str, tuple[str, ...]]) -> RubricGrade:
    """Each point as it was heard in one reading or the other, whose sentences are `made_of` others."""
    pairs = zip(plain.points, other.points, strict=True)
    return replace(plain, points=tuple(_better(one, each, made_of) for one, each in pairs))


def _pieces(sentence: str) -> list[str]:
    """What a long sentence says behind colons, semicolons and dashes, each as a sentence; one that only tells what
    others say stays whole."""
    if len(sentence.split()) < LONG_SENTENCE or _TELLS.search(sentence):
        return [sentence]
    found = [each.strip() for each in _BREAK.split(sentence) if each.strip()]
    return [each if each[-1] in ".!?" else f"{each}." for each in found]


def _in_figures(heard: PointGrade, shown_by: str | None) -> PointGrade:
    """A point that wants a number is said in half where its words have none."""
    return replace(heard, credit=0.5) if heard.credit == 1 and wants_a_figure(shown_by, heard.evidence) else heard


def wants_a_figure(shown_by: str | None, evidence: Sequence[str]) -> bool:
    """Whether a point is shown by a number, and the words that say it have none."""
    if shown_by != "figures":
        return False
    numbers = (number for words in evidence for each in read(words).sentences for number in each.numbers)
    return not any(number.has_unit or number.texts[-1] != "1" for number in numbers)  # "there was one" is no figure


def says_as_before(reply: str) -> bool:
    """Whether a reply says that it only repeats what was said before."""
    return _AS_SAID.search(reply) is not None


def _in_one_breath(answer: str) -> dict[str, tuple[str, ...]]:
    """An answer's sentences, those that go on with one another joined, each with those it was made of."""
    groups: list[list[str]] = []
    for sentence in sentences(answer):
        refers = bool(groups) and len(groups[-1]) == 1 and _REFERS.match(sentence)
        if groups and (refers or _GOES_ON.match(sentence)):
            groups[-1].append(sentence)
        else:
            groups.append([sentence])
    return {", ".join(each.rstrip(".;") for each in group) + ".": tuple(group) for group in groups}


def _better(plain: PointGrade, whole: PointGrade, together: Mapping[str, tuple[str, ...]]) -> PointGrade:
    """A point as it was heard in single sentences, or in those that go together where that is more."""
    if plain.verdict == "contradicted" or whole.credit <= plain.credit:
        return plain
    evidence = tuple(piece for each in whole.evidence for piece in together.get(each, (each,)))
    return replace(whole, evidence=evidence)


def _quoted(heard: PointGrade, point: Point, rubric: Rubric, answer: str, text: str) -> PointGrade:
    """A point that one sentence says, with the sentence that is most about it."""
    if heard.verdict != "met" or len(heard.evidence) != 1 or not text:
        return heard
    alone = replace(rubric, points=(point,), critical=(), floor=(), stance=None, claims=NO_CLAIMS)
    about = topic(text)
    said = [each for each in sentences(answer) if grade(alone, each).points[0].credit >= heard.credit]
    if not said:
        return heard
    if len(said) == 1:
        return replace(heard, evidence=(said[0],))

    def nearness(sentence: str) -> tuple[float, int, bool]:
        near = nearest_to(rubric.near_claims, read(sentence, rubric.wordings), point.id)
        return near.share, len(topic(sentence) & about), any(map(str.isdigit, sentence))

    return replace(heard, evidence=(max(said, key=nearness),))


def _where_it_is_said(heard: PointGrade, near: Sequence[Nearness], reading: Reading) -> PointGrade:
    """A point with the sentence that says it, where its evidence stands in one about another point."""
    said = nearest_sentence(near, heard.evidence, reading) if heard.credit else None
    return replace(heard, evidence=(said,)) if said else heard
