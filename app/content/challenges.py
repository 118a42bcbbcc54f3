"""What an interviewer does not let pass whatever was asked: what surely is false where it is said, the question that
follows it, and what takes it back.

What stands in `cards/challenges/<subject>.yaml` has a question of its own, with numbers of the sitting. What people get
wrong in free answers, `cards/misconceptions.yaml`, is heard in interviews as well: there its sentence is read back, and
why is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field

from app.content.live import Expressions, at
from app.content.rubric_schemas import (
    Evidence,
    Falsehood,
    MisconceptionFile,
    RubricFile,
    RubricPointFile,
    make_points,
    shared_patterns,
)
from app.content.schemas import CardId, Phrase, Slug, Strict, Text
from app.grading.rubrics.grader import Misconception
from app.grading.rubrics.likeness import Claim, Claims, make_claims
from app.grading.rubrics.nearness import nearnesses
from app.grading.rubrics.points import Point
from app.grading.rubrics.reading import read
from app.grading.rubrics.wordings import Wordings
from app.words import lowered

CHALLENGES = "challenges"  # the folder with a file for each subject
LEANS_TO_WRONG = -0.08  # from -1 to 1: how much, for a misconception to be told to somebody's face
# What is asked about what has no question of its own, behind the sentence.
WHY_SO = "Is that so? Say what happens there, and why."
QuestionPoint = Annotated[str, Field(pattern=r"^[MT]\d{1,2}\.[a-z0-9-]+\.[a-z0-9-]+$")]


class ChallengeFile(Strict):
    """Something that surely is false where its `says` is said, with what is asked about it. `says` is narrower than
    misconceptions.yaml, since a remark may be mistaken and a question to somebody's face may not, and has no numbers;
    those of `ask`, `right` and `so` come from the sitting's values where it has some of the names in `given`, else from
    these.

    It is asked of answers in words, first of those to questions about one of `concepts`. Where it is said, the points
    that it `contradicts`, named as M3.claim.equal, are not. For the content check: `example` says it, `reply` takes it
    back, `stays` says it again, and `passes` are right and use nearly its words. The content must not say it either,
    unless it is false of these concepts alone, `only_there`; then it is heard only in interviews about one of them.
    """

    id: Slug
    topic: Phrase
    concepts: Annotated[tuple[Slug, ...], Field(min_length=1)]
    contradicts: tuple[QuestionPoint, ...] = ()
    cure: CardId
    learn: Phrase
    says: Annotated[Evidence, Field(min_length=1)]
    given: dict[str, str]
    let: dict[str, str]
    ask: Text
    right: Annotated[Evidence, Field(min_length=1)]
    so: Text
    example: Text
    reply: Text
    stays: Text
    passes: Annotated[tuple[Text, ...], Field(min_length=3)]
    only_there: bool = False


class ChallengesFile(Strict):
    """Those of one subject; of several in one answer the first is asked about."""

    challenges: Annotated[tuple[ChallengeFile, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Challenge:
    """One of them, with its wording read, and where it stands: the source, and its number in it."""

    file: ChallengeFile
    false: Misconception
    stands: tuple[str, int]

    @property
    def id(self) -> str:
        return self.file.id

    @property
    def topic(self) -> str:
        return self.file.topic

    @property
    def concepts(self) -> frozenset[str]:
        return frozenset(self.file.concepts)

    @property
    def contradicts(self) -> tuple[str, ...]:
        return self.file.contradicts

    @property
    def learn(self) -> str:
        return self.file.learn

    @property
    def cure(self) -> str:
        return self.file.cure

    @property
    def ask(self) -> str:
        return self.file.ask

    @property
    def so(self) -> str:
        return self.file.so

    def values(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What its expressions see in a sitting that knows `known`. Raises ExpressionError."""
        own = Expressions({name: known[name] for name in self.file.given if name in known})
        for name, expression in self.file.given.items():
            if name not in known:
                with at("given", name):
                    own.let(name, expression)
        for name, expression in self.file.let.items():
            with at("let", name):
                own.let(name, expression)
        return own.values

    def right(self, known: Mapping[str, Any]) -> Point | None:
        """What takes it back. Raises ExpressionError."""
        point = RubricPointFile(id=self.id, text=self.file.so, met=self.file.right)
        return make_points("right", (point,), self.values(known), self.file.let)[0]


@dataclass(frozen=True)
class Misbelief:
    """A misconception of free answers as interviews hear it: in answers to questions about one of the `concepts` of the
    rubrics that it is wrong in, whose titles are `titles`. It has no question, card or points of its own. `claims` are
    those about the points that it contradicts there: a sentence says it that is clearly more like what is wrong of them
    than like what is right."""

    file: MisconceptionFile
    false: Misconception
    titles: Mapping[str, str]
    claims: tuple[Claim, ...] = ()
    topic: str = ""
    contradicts: tuple[str, ...] = ()
    learn: str = ""
    cure: str = ""
    ask: str = WHY_SO

    @property
    def id(self) -> str:
        return self.file.id

    @property
    def concepts(self) -> frozenset[str]:
        return frozenset(self.titles)

    @property
    def so(self) -> str:
        return self.file.so

    def is_meant(self, said: str, wordings: Wordings) -> bool:
        """Whether a sentence that has its words leans to what is wrong, at the point that it comes nearest to."""
        near = nearnesses(_compared(self.claims, wordings), read(said, wordings))
        nearest = max((each[0] for each in near.values()), key=lambda each: each.share, default=None)
        return nearest is not None and nearest.lean < LEANS_TO_WRONG

    def values(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing: it has no expressions."""
        return {}

    def right(self, known: Mapping[str, Any]) -> Point | None:
        """None: what takes it back is told from `so` alone."""
        return None


Questioned = Challenge | Misbelief


@lru_cache(maxsize=256)  # asked for each sentence that has the words of one
def _compared(claims: tuple[Claim, ...], wordings: Wordings) -> Claims:
    return make_claims(claims, wordings)


def make_misbeliefs(
    files: Iterable[MisconceptionFile], rubrics: Mapping[str, RubricFile], titles: Mapping[str, str]
) -> tuple[Misbelief, ...]:
    """Those that are wrong in some rubric; `titles` are those of concepts, by their ids. Raises ExpressionError for a
    wording that cannot be read."""
    known = {name: tuple(_claims_of(each)) for name, each in rubrics.items()}
    found = []
    for index, each in enumerate(files):
        points = {*each.contradicts, *each.critical}
        wrong_in = {
            name for point in (*each.contradicts, *each.critical) if (name := point.partition(".")[0]) in rubrics
        }
        about = dict.fromkeys(concept for name in sorted(wrong_in) for concept in rubrics[name].concepts)
        with at("misconceptions", index):
            false = Misconception(each.id, shared_patterns(each.says), each.so, frozenset())
        claims = tuple(claim for name in sorted(wrong_in) for claim in known[name] if claim.point in points)
        found.append(Misbelief(each, false, {name: titles[name] for name in about if name in titles}, claims))
    return tuple(found)


def _claims_of(rubric: RubricFile) -> Iterator[Claim]:
    """What is known to be said about the points of a rubric, which are named as R01.choice."""
    known = rubric.knowledge.claims.get(rubric.id)
    for each in known.claims() if known else ():
        yield replace(each, point=f"{rubric.id}.{each.point}")


def make_challenges(name: str, file: ChallengesFile) -> tuple[Challenge, ...]:
    """Those of the file that is the source `name`. Raises ExpressionError for a wording that cannot be read."""
    found = []
    for index, each in enumerate(file.challenges):
        with at("challenges", index):
            false = Misconception(each.id, shared_patterns(each.says), each.so, frozenset({each.id}))
        found.append(Challenge(each, false, (name, index)))
    return tuple(found)


def falsehoods(challenges: Iterable[Challenge]) -> tuple[Falsehood, ...]:
    """What they are about, for free answers: there nothing is asked, so that only what to learn can be said."""
    return tuple(
        Falsehood(
            frozenset(each.file.concepts),
            Misconception(each.id, each.false.patterns, f"{each.file.learn}.", frozenset()),
        )
        for each in challenges
    )


def about(
    challenges: Iterable[Challenge],
    misbeliefs: Iterable[Misbelief],
    concepts: Iterable[str],
    of_interview: Iterable[str] = (),
) -> tuple[Questioned, ...]:
    """Those that are heard in answers to a question about `concepts`: first what is asked about these, then what is
    false whatever was asked, or false in an interview `of_interview`, its concepts; misconceptions last. What is known
    under one name in both lists has a question of its own."""
    of, around = dict.fromkeys(concepts), frozenset(of_interview)
    asked, elsewhere = list[Challenge](), list[Challenge]()
    for each in challenges:
        if not each.concepts.isdisjoint(of):
            asked.append(each)
        elif not each.file.only_there or not each.concepts.isdisjoint(around):
            elsewhere.append(each)
    known = {each.id for each in (*asked, *elsewhere)}
    heard = (
        replace(each, topic=lowered(each.titles[next(name for name in of if name in each.titles)]))
        for each in misbeliefs
        if each.id not in known and not each.concepts.isdisjoint(of)
    )
    return (*asked, *elsewhere, *heard)
