"""What stands beside a formula on its page: how its value turns with each input, and where it is taught and used."""

from __future__ import annotations

from dataclasses import dataclass

from app.content.catalogue import Catalogue
from app.reference.handbook import Link
from app.reference.service import Derivation
from app.theory.formulas.registry import Evaluation, Formula, Input, evaluate
from app.units import digits, scaled
from labs.spec import SpecError

MOST_COURSES, COURSE_STEPS = 3, 32  # inputs whose course is drawn, and the steps of one
MOST_OF_A_KIND = 6  # of the links to cards or problems
FEW = 4
_SAME = 1e-9


@dataclass(frozen=True)
class Doubled:
    """One input at twice its value: what the formula comes to then, and how many times that is of what it was."""

    label: str
    symbol: str
    result: str
    factor: str


def doubled(derivation: Derivation) -> tuple[Doubled, ...]:
    """The value with each number doubled in turn; what may not be as large is left out."""
    made = derivation.evaluation
    if made is None:
        return ()
    numbers = (each for each in derivation.formula.inputs if not each.choices and not _is_one_of_few(each))
    return tuple(found for each in numbers if (found := _twice(derivation, made, each)))


def _is_one_of_few(parameter: Input) -> bool:
    """Whether it counts nothing but names one of a few, as a stage of ZeRO does."""
    return parameter.integer and parameter.maximum <= FEW


def _twice(derivation: Derivation, made: Evaluation, parameter: Input) -> Doubled | None:
    value = made.inputs.get(parameter.name)
    if isinstance(value, str) or not value:
        return None
    try:
        then = evaluate(derivation.formula, {**made.inputs, parameter.name: 2 * value}).value
    except SpecError:
        return None
    return Doubled(parameter.label, parameter.symbol, scaled(then, derivation.unit), _factor(then, made.value))


def _factor(then: float, before: float) -> str:
    if abs(then - before) <= _SAME * abs(before):
        return "the same"
    return f"× {digits(then / before, 3)}" if before else "from nothing"


@dataclass(frozen=True)
class Course:
    """How the value goes with one input, from an eighth of it to twice: an SVG path of 100 by 100, and where the value
    is now, in percent from below. `ends` are what it comes to at both."""

    label: str
    symbol: str
    path: str
    now: float
    ends: tuple[str, str]


def courses(derivation: Derivation) -> tuple[str, tuple[Course, ...]]:
    """How the value goes with each of its first numbers, all on one scale from 0, and the end of that scale. None of a
    value below nothing."""
    made = derivation.evaluation
    if made is None or made.value <= 0:
        return "", ()
    numbers = [each for each in derivation.formula.inputs if not each.choices and not _is_one_of_few(each)]
    found = [(each, _points(derivation, made, each)) for each in numbers[:MOST_COURSES]]
    found = [(each, points) for each, points in found if len({value for _, value in points}) > 1]
    most = max((value for _, points in found for _, value in points), default=0.0)
    return scaled(most, derivation.unit), tuple(
        Course(
            each.label,
            each.symbol,
            "M" + "L".join(f"{x:.2f} {100 - 100 * value / most:.2f}" for x, value in points),
            100 * made.value / most,
            (scaled(points[0][1], derivation.unit), scaled(points[-1][1], derivation.unit)),
        )
        for each, points in found
    )


def _points(derivation: Derivation, made: Evaluation, parameter: Input) -> list[tuple[float, float]]:
    """Percent of the way from nothing to twice the input, and the value there; where there is none, the place is left
    out."""
    now = made.inputs.get(parameter.name)
    if isinstance(now, str) or not now:
        return []
    found: dict[float, float] = {}
    for step in range(COURSE_STEPS + 1):
        x = now / 8 * 16 ** (step / COURSE_STEPS)  # closer where a share of it bends most
        at = max(1, round(x)) if parameter.integer else x
        try:
            value = evaluate(derivation.formula, {**made.inputs, parameter.name: at}).value
        except SpecError:
            continue
        if value >= 0:
            found[50 * at / now] = value
    return sorted(found.items())


def taught_by(catalogue: Catalogue, formula: Formula) -> tuple[Link, ...]:
    """Handbook pages that name the formula, cards that show a number of it, and problems that compute with it."""
    names = {formula.id, formula.name}
    pages = [
        Link(f"/reference/{slug}", page.head.title, "page")
        for slug, page in catalogue.pages.items()
        if names & set(page.head.related.formulas)
    ]
    opened = f"/reference/formulas/{formula.name}?"
    cards = [
        Link(f"/study/cards/{card.id}", f"{card.id}, {card.head.title}", "card")
        for card in catalogue.cards.values()
        if any(opened in section for section in card.sections.values())
    ]
    called = f"{formula.name}("
    problems = [
        Link(f"/practice/{each.slug}", f"{each.id}, {each.title}", "problem, fresh variant")
        for each in catalogue.problems.values()
        if any(called in text for text in (*each.let.values(), each.solution, each.statement))
    ]
    return tuple(pages + cards[:MOST_OF_A_KIND] + problems[:MOST_OF_A_KIND])
