"""Rubric files: what a full answer says, the evidence that shows it, mistakes, and exemplars of every level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from app.content.live import ExpressionError, Expressions, at
from app.content.schemas import Item, Related, RubricId, Slug, Strict, Text
from app.grading.levels import Level
from app.grading.rubrics.grader import Critical, Part, Point, Rubric
from app.grading.rubrics.patterns import BadPattern, Pattern, parse
from app.units import SCALES

Evidence = tuple[Text, ...]

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

    @model_validator(mode="after")
    def _can_be_earned(self) -> RubricPointFile:
        if not self.met and not self.parts:
            raise ValueError("there is no evidence that earns this point: give met or parts")
        if self.parts and not 0 < self.needs <= len(self.parts):
            raise ValueError(f"needs must be 1 to {len(self.parts)}, the number of parts")
        if bool(self.partly or self.half_at) != bool(self.half):
            raise ValueError("half says in words what partly or half_at earns: give both or neither")
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


class Exemplar(Strict):
    """An answer of a known level; stuffed and wrong ones show that the grader is not taken in."""

    kind: Level | Literal["stuffed", "fluent but wrong"]
    text: Text


class RubricFile(Item):
    """A question answered in free text, and how answers are judged."""

    id: RubricId
    question: Text
    let: dict[str, str] = Field(default_factory=dict)
    points: Annotated[tuple[RubricPointFile, ...], Field(min_length=2)]
    critical: Annotated[tuple[CriticalFile, ...], Field(min_length=1)]
    floor: FloorFile
    exemplars: Annotated[tuple[Exemplar, ...], Field(min_length=6, max_length=6)]
    related: Related = Related()

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
    points = []
    for index, point in enumerate(file.points):
        with at("points", index):
            points.append(_point(point, values))
    with at("critical"):
        critical = tuple(Critical(each.id, _patterns("when", each.when, values)) for each in file.critical)
    with at("floor"):
        floor = tuple(Part(_patterns("of", each, values)) for each in file.floor.of)
    return Rubric(tuple(points), critical, floor, file.floor.needs)


def _point(point: RubricPointFile, values: dict[str, float]) -> Point:
    return Point(
        point.id,
        point.weight,
        _patterns("met", point.met, values),
        _patterns("partly", point.partly, values),
        _patterns("against", point.against, values),
        tuple(Part(_patterns("parts", each, values)) for each in point.parts),
        point.needs,
        point.half_at,
    )


def _patterns(field: str, lines: Evidence, values: dict[str, float]) -> tuple[Pattern, ...]:
    def number(expression: str, unit: str) -> tuple[float, str, float]:
        if unit not in SCALES:
            raise ExpressionError(f"{unit!r} is no unit known here")
        dimension, scale = SCALES[unit][0], SCALES[unit][1]
        return float(Expressions(values).number(expression)), dimension, scale

    found = []
    for index, line in enumerate(lines):
        with at(field, index):
            try:
                found.append(parse(line, number))
            except BadPattern as error:
                raise ExpressionError(str(error)) from None
    return tuple(found)
