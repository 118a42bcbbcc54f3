"""Rubrics compute, and every exemplar grades as what it is."""

from __future__ import annotations

from collections.abc import Iterator

from app.content.catalogue import Catalogue, source_key
from app.content.checks import Finding
from app.content.claim_schemas import CLAIMS
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.content.rubric_schemas import MISCONCEPTIONS, RubricFile, make_rubric
from app.grading.levels import CAP, NAMES, is_at_least
from app.grading.rubrics.grader import Rubric, grade


def check_rubrics(catalogue: Catalogue) -> Iterator[Finding]:
    """Every rubric: numbers, wordings, and the six exemplars."""
    for rubric in catalogue.rubrics.values():
        try:
            made = make_rubric(rubric)
            values = rubric.values()
            render(rubric.question, Expressions(values))
            for point in rubric.points:
                render_inline(point.text, Expressions(values))
            yield from _exemplars(rubric, made)
        except ExpressionError as error:
            yield source_key("rubrics", rubric.id), error.location, str(error)


def check_misconceptions(catalogue: Catalogue) -> Iterator[Finding]:
    """Every point and critical mistake that misconceptions.yaml names is there."""
    known: set[str] = set()
    for rubric in catalogue.rubrics.values():
        known |= {f"{rubric.id}.{point.id}" for point in rubric.points}
        known |= {f"{rubric.id}.{mistake.id}" for mistake in rubric.critical}
    shared = next((rubric.knowledge.misconceptions for rubric in catalogue.rubrics.values()), ())
    for index, entry in enumerate(shared):
        for field, named in (("contradicts", entry.contradicts), ("critical", entry.critical)):
            for each in named:
                if each not in known:
                    place = ("misconceptions", index, field)
                    yield (
                        MISCONCEPTIONS,
                        place,
                        f"no rubric has a {each}; a point or critical mistake is named R01.choice",
                    )


def check_claims(catalogue: Catalogue) -> Iterator[Finding]:
    """Every point that claims are about is one of its rubric, and every rubric has claims of all of its points.

    A point of which something is known to be half of it says so in words: a learner who gets half reads why.
    """
    known = next((rubric.knowledge.claims for rubric in catalogue.rubrics.values()), {})
    for rubric in catalogue.rubrics.values():
        claimed = known[rubric.id].points if rubric.id in known else {}
        points = {each.id for each in rubric.points}
        for point in sorted(points ^ set(claimed)):
            place = f"{CLAIMS}/{rubric.id}.yaml"
            if point in points:
                yield source_key("rubrics", rubric.id), ("points",), f"{place} has no claims about {point}"
            else:
                yield place, ("points", point), f"{rubric.id} has no point {point}"
        for index, each in enumerate(rubric.points):
            if each.id in claimed and claimed[each.id].half and not each.half:
                place = source_key("rubrics", rubric.id)
                yield place, ("points", index), f"{each.id} says in no `half` what half of it is"


def _exemplars(rubric: RubricFile, made: Rubric) -> Iterator[Finding]:
    for index, exemplar in enumerate(rubric.exemplars):
        found = grade(made, rubric.exemplar(exemplar.kind))
        key, place = source_key("rubrics", rubric.id), ("exemplars", index)
        if exemplar.kind in NAMES and found.level != exemplar.kind:
            yield key, place, f"grades as {found.level} ({found.score:.2f}) and not as {exemplar.kind}"
        if exemplar.kind not in NAMES and found.level != CAP and is_at_least(found.level, CAP):
            yield key, place, f"{exemplar.kind}, and yet it grades as {found.level}"
