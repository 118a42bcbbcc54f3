"""Rubric files: what a full answer says, the evidence that shows it, mistakes, and exemplars of every level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from app.content.claim_schemas import ClaimsFile
from app.content.live import ExpressionError, Expressions, at
from app.content.schemas import Item, Related, RubricId, Slug, Strict, Text
from app.grading.levels import Level
from app.grading.rubrics.comparing import TO_A_RUBRIC
from app.grading.rubrics.courses import Course, course_of
from app.grading.rubrics.grader import Critical, Misconception, Rubric, Stance
from app.grading.rubrics.lexicon import stem
from app.grading.rubrics.likeness import make_claims
from app.grading.rubrics.patterns import BadPattern, Pattern, Quantity, parse
from app.grading.rubrics.points import Part, Point
from app.grading.rubrics.reading import NO_WORDINGS, read
from app.grading.rubrics.weights import WEIGHTS
from app.grading.rubrics.wordings import Wordings, make_wordings
from app.units import SCALES

LEXICON, MISCONCEPTIONS = "lexicon.yaml", "misconceptions.yaml"
Evidence = tuple[Text, ...]
_NO_WORDS = re.compile(r"\[[^\]]*\]|`[^`]*`|\bunless\b.*")  # of a line of evidence: numbers, formulas, exceptions
PointRef = Annotated[str, Field(pattern=r"^[A-Z]+[0-9]+\.[a-z0-9-]+$")]

# The letters of a rubric's id say what kind of question it is: a heading, and a line about them.
GROUPS = {
    "R": ("Short questions", "A few minutes each, on one idea."),
    "SP": ("Long problems", "The same ground as the seeded problems of that number, argued from start to finish."),
    "PC": ("Production challenges", "A symptom from a running job: what causes it, how you tell, what you change."),
    "IQ": ("Interview questions", "As they are asked, with follow-ups in mind."),
}


class RubricPointFile(Strict):
    """One thing a full answer says. Any line of `met` earns it, any of `partly` half; `against` cancels it.

    A compound point has `parts`, each a list of lines: `needs` of them earn it, `half_at` of them half.
    """

    id: Slug
    weight: Annotated[int, Field(ge=1, le=10)] = 1
    text: Text
    half: Text | None = Field(None, description="what earns half, in words")
    met: Evidence = ()
    partly: Evidence = ()
    against: Evidence = ()
    parts: tuple[Evidence, ...] = ()
    needs: int = 0
    half_at: int = 0

    @property
    def evidence_words(self) -> str:
        """Every wording of its evidence, without numbers and formulas."""
        lines = (*self.met, *self.partly, *self.against, *(line for part in self.parts for line in part))
        return " ".join(_NO_WORDS.sub(" ", line).replace("_", " ") for line in lines)

    @model_validator(mode="after")
    def _can_be_earned(self) -> RubricPointFile:
        if not self.met and not self.parts:
            raise ValueError("there is no evidence that earns this point: give met or parts")
        if self.parts and not 0 < self.needs <= len(self.parts):
            raise ValueError(f"needs must be 1 to {len(self.parts)}, the number of parts")
        if (self.partly or self.half_at) and not self.half:
            raise ValueError("partly and half_at earn half: say in `half`, in words, what that is")
        return self


class CriticalFile(Strict):
    """A mistake that caps the level at lean no hire."""

    id: Slug
    text: Text
    when: Annotated[Evidence, Field(min_length=1)]


class FloorFile(Strict):
    """Definitions that are worth lean no hire although no number stands with them."""

    needs: Annotated[int, Field(ge=1)]
    of: Annotated[tuple[Evidence, ...], Field(min_length=1)]


class StanceFile(Strict):
    """What the question wants decided (“whether you would”), and what shows that an answer decides it."""

    asked: Text
    when: Annotated[Evidence, Field(min_length=1)]


class Exemplar(Strict):
    """An answer of a known level; stuffed and wrong ones show that the grader is not taken in."""

    kind: Level | Literal["stuffed", "fluent but wrong"]
    text: Text


class ImpliedFile(Strict):
    """Special cases, and the general words that whoever says one of them has said as well."""

    said: Annotated[tuple[Text, ...], Field(min_length=1)]
    means: Annotated[tuple[Text, ...], Field(min_length=1)]


class LexiconFile(Strict):
    """The words of the field that mean the same, for all rubrics at once."""

    same: tuple[Annotated[tuple[Text, ...], Field(min_length=2)], ...] = ()
    implies: tuple[ImpliedFile, ...] = ()

    def wordings(self) -> Wordings:
        """As the grader takes them."""
        return make_wordings(self.same, [(each.said, each.means) for each in self.implies])


class MisconceptionFile(Strict):
    """Something false that people say: the points it contradicts and the critical mistakes it is, as R01.choice."""

    id: Slug
    contradicts: tuple[PointRef, ...] = ()
    critical: tuple[PointRef, ...] = ()
    says: Annotated[Evidence, Field(min_length=1)]
    so: Text


class MisconceptionsFile(Strict):
    """The false statements that are looked for in every free answer."""

    misconceptions: tuple[MisconceptionFile, ...] = ()


@dataclass(frozen=True)
class Falsehood:
    """What is false in an answer to a question about one of `concepts`."""

    concepts: frozenset[str]
    false: Misconception


@dataclass(frozen=True)
class Knowledge:
    """What all rubrics share: the lexicon that answers are read through, what is false whatever the question, and what
    interviewers do not let pass."""

    wordings: Wordings = NO_WORDINGS
    misconceptions: tuple[MisconceptionFile, ...] = ()
    challenged: tuple[Falsehood, ...] = ()
    claims: Mapping[str, ClaimsFile] = field(default_factory=dict)


class RubricFile(Item):
    """A question answered in free text, and how answers are judged."""

    id: RubricId
    question: Text
    let: dict[str, str] = Field(default_factory=dict)
    points: Annotated[tuple[RubricPointFile, ...], Field(min_length=2)]
    critical: Annotated[tuple[CriticalFile, ...], Field(min_length=1)]
    floor: FloorFile
    stance: StanceFile | None = None
    exemplars: Annotated[tuple[Exemplar, ...], Field(min_length=6, max_length=6)]
    related: Related = Related()
    _knowledge: Knowledge = PrivateAttr(default_factory=Knowledge)

    def read_with(self, knowledge: Knowledge) -> None:
        """Judge answers with this; the catalogue gives every rubric the same."""
        self._knowledge = knowledge

    @property
    def knowledge(self) -> Knowledge:
        """What its answers are judged with beside its own evidence."""
        return self._knowledge

    @model_validator(mode="after")
    def _is_whole(self) -> RubricFile:
        kinds = [each.kind for each in self.exemplars]
        if len(set(kinds)) != len(kinds):
            raise ValueError("there must be one exemplar of every kind")
        ids = [*(point.id for point in self.points), *(mistake.id for mistake in self.critical)]
        if len(set(ids)) != len(ids):
            raise ValueError("two points or critical mistakes share an id")
        return self

    def exemplar(self, kind: str) -> str:
        """The exemplar of a kind, with its numbers computed."""
        source = next(each.text for each in self.exemplars if each.kind == kind)
        known = Expressions(self.values())
        return known.text(known.fill(source))

    def values(self) -> dict[str, float]:
        """What `let` names."""
        found: dict[str, float] = {}
        for name, expression in self.let.items():
            with at("let", name):
                found[name] = Expressions(found).number(expression)
        return found


@dataclass(frozen=True)
class RubricGroup:
    """Questions of one kind, in their order."""

    id: str
    title: str
    about: str
    rubrics: tuple[RubricFile, ...]


def in_groups(rubrics: Iterable[RubricFile]) -> tuple[RubricGroup, ...]:
    """Rubrics under their headings; a kind that has none is left out."""
    kinds: dict[str, list[RubricFile]] = {letters: [] for letters in GROUPS}
    for rubric in rubrics:
        kinds[rubric.id.rstrip("0123456789")].append(rubric)
    return tuple(RubricGroup(letters, *GROUPS[letters], tuple(found)) for letters, found in kinds.items() if found)


def make_rubric(file: RubricFile) -> Rubric:
    """The rubric the grader takes, its numbers computed. Raises ExpressionError with the field."""
    values = file.values()
    points = make_points("points", file.points, values, file.let)
    with at("critical"):
        critical = tuple(Critical(each.id, _patterns("when", each.when, values, file.let)) for each in file.critical)
    with at("floor"):
        floor = tuple(Part(_patterns("of", each, values, file.let)) for each in file.floor.of)
    with at("misconceptions"):
        false = tuple(_misconception(each, file) for each in file.knowledge.misconceptions)
    with at("stance"):
        stance = (
            Stance(file.stance.asked, _patterns("when", file.stance.when, values, file.let)) if file.stance else None
        )
    relevant = tuple(each for each in false if each.points or each.critical)
    challenged = (each.false for each in file.knowledge.challenged if not each.concepts.isdisjoint(file.concepts))
    wordings, known = file.knowledge.wordings, file.knowledge.claims.get(file.id)
    claims = make_claims(known.claims() if known else (), wordings)
    return Rubric(
        points,
        critical,
        floor,
        file.floor.needs,
        wordings,
        (*relevant, *challenged),
        stance,
        claims,
        TO_A_RUBRIC,
        weights=WEIGHTS,
    )


def make_points(
    field: str, points: Iterable[RubricPointFile], values: Mapping[str, Any], let: Mapping[str, str]
) -> tuple[Point, ...]:
    """Points as the grader takes them, numbers computed; `let` tells what those are of. Raises ExpressionError."""
    found = []
    for index, point in enumerate(points):
        with at(field, index):
            found.append(_point(point, values, let))
    return tuple(found)


def _misconception(source: MisconceptionFile, file: RubricFile) -> Misconception:
    return Misconception(
        source.id, shared_patterns(source.says), source.so, _of(file, source.contradicts), _of(file, source.critical)
    )


def _of(file: RubricFile, refs: Iterable[str]) -> frozenset[str]:
    return frozenset(ref.partition(".")[2] for ref in refs if ref.startswith(f"{file.id}."))


def _point(point: RubricPointFile, values: Mapping[str, Any], let: Mapping[str, str]) -> Point:
    return Point(
        point.id,
        point.weight,
        _patterns("met", point.met, values, let),
        _patterns("partly", point.partly, values, let),
        _patterns("against", point.against, values, let),
        tuple(Part(_patterns("parts", each, values, let)) for each in point.parts),
        point.needs,
        point.half_at,
        _course(point.text),
    )


@lru_cache(maxsize=2048)  # asked anew for each answer to a point
def _course(text: str) -> Course | None:
    """What a point says becomes of what it is about, where that is one thing."""
    tokens = [token for sentence in read(text).sentences for token in sentence.tokens]
    return course_of([each.stem for each in tokens], [each.denied for each in tokens])


def shared_patterns(lines: Evidence) -> tuple[Pattern, ...]:
    """Evidence without numbers, for all rubrics."""
    found = []
    for index, line in enumerate(lines):
        with at("says", index):
            try:
                found.append(_words_alone(line))
            except BadPattern as error:
                raise ExpressionError(str(error)) from None
    return tuple(found)


@cache
def _words_alone(line: str) -> Pattern:
    """A line of evidence without numbers, read once for whoever uses it. Raises BadPattern."""

    def no_number(expression: str, unit: str) -> Quantity:
        raise BadPattern(f"[{expression} {unit}]: a number belongs to one rubric, and this to all")

    return parse(line, no_number)


# A number computed with one of these inputs is a number of that thing: the words that name it, by input and value.
SUBJECTS = {
    "stage": {"1": "stage1", "2": "stage2", "3": "stage3 fsdp fully full sharded"},
    "part": {
        "parameters": "weight weights parameter parameters bf16",
        "gradients": "gradient gradients",
        "optimizer": "optimizer adam moments momentum master state states",
    },
}
_INPUT = re.compile(r'\b(?P<name>\w+)="?(?P<value>\w+)"?')


def _subject(expression: str, let: Mapping[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words of what a number is of, and of what it might be mistaken for, from the formula that gives it."""
    source = let.get(expression, expression)
    for found in _INPUT.finditer(source):
        named = SUBJECTS.get(found["name"], {})
        if found["value"] in named:
            mine = frozenset(map(stem, named[found["value"]].split()))
            others = frozenset(stem(word) for words in named.values() for word in words.split())
            return mine, others - mine
    return frozenset(), frozenset()


def _patterns(field: str, lines: Evidence, values: Mapping[str, Any], let: Mapping[str, str]) -> tuple[Pattern, ...]:
    def number(expression: str, unit: str) -> Quantity:
        if unit not in SCALES:
            raise ExpressionError(f"{unit!r} is no unit known here")
        dimension, scale = SCALES[unit][0], SCALES[unit][1]
        return float(Expressions(values).number(expression)), dimension, scale, *_subject(expression, let)

    found = []
    for index, line in enumerate(lines):
        with at(field, index):
            try:
                found.append(parse(line, number) if "[" in line else _words_alone(line))
            except BadPattern as error:
                raise ExpressionError(str(error)) from None
    return tuple(found)
