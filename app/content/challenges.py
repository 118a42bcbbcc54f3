"""What an interviewer does not let pass whatever was asked, `cards/challenges/<subject>.yaml`: what surely is false
where it is said, the question that follows it, and what takes it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from app.content.live import Expressions, at
from app.content.rubric_schemas import Evidence, Falsehood, RubricPointFile, make_points, shared_patterns
from app.content.schemas import CardId, Phrase, Slug, Strict, Text
from app.grading.rubrics.grader import Misconception
from app.grading.rubrics.points import Point

CHALLENGES = "challenges"  # the folder with a file for each subject
QuestionPoint = Annotated[str, Field(pattern=r"^[MT]\d{1,2}\.[a-z0-9-]+\.[a-z0-9-]+$")]


class ChallengeFile(Strict):
    """Something that surely is false where its `says` is said, with what is asked about it. `says` is narrower than
    misconceptions.yaml, since a remark may be mistaken and a question to somebody's face may not, and has no numbers;
    those of `ask`, `right` and `so` come from the sitting's values where it has some of the names in `given`, else from
    these.

    It is asked of answers to questions about one of `concepts`. Where it is said, the points that it `contradicts`,
    named as M3.claim.equal, are not. For the content check: `example` says it, `reply` takes it back, `stays` says it
    again, and `passes` are right and use nearly its words. The content must not say it either, unless it is false of
    these concepts alone, `only_there`.
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

    def right(self, known: Mapping[str, Any]) -> Point:
        """What takes it back. Raises ExpressionError."""
        point = RubricPointFile(id=self.id, text=self.file.so, met=self.file.right)
        return make_points("right", (point,), self.values(known), self.file.let)[0]


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


def about(challenges: Iterable[Challenge], concepts: Iterable[str]) -> tuple[Challenge, ...]:
    """Those that are asked of answers to a question about `concepts`."""
    of = set(concepts)
    return tuple(each for each in challenges if of.intersection(each.file.concepts))
