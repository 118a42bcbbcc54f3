"""What stands beside a formula on its page: how its value turns with each input, and where it is taught and used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.content.catalogue import Catalogue
from app.core.charts import Tick, round_scale
from app.reference.handbook import Link
from app.reference.service import Derivation
from app.theory.formulas.registry import Evaluation, Formula, Input, evaluate
from app.units import SCALES, digits, scaled, value_text
from labs.spec import SpecError

MOST_COURSES, COURSE_STEPS = 3, 64  # inputs whose course is drawn, and the steps of one
MOST_DOTS = 24  # values of a whole number that are drawn one by one
MOST_OF_A_KIND = 6  # of the links to cards or problems
FEW = 4
_SAME = 1e-9
_LEAST = 1 / 64  # of the largest input that is drawn


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
    """How the value goes with one input, from little of it to twice: an SVG path of 100 by 100, and where the value
    is now, in percent from below. `dots` are the values of a whole number of which there are few, each percent from
    the left and from below; `ends` what it comes to at both, `at` what the input is at nothing, now and at twice."""

    label: str
    symbol: str
    path: str
    dots: tuple[tuple[str, str], ...]
    now: float
    ends: tuple[str, str]
    at: tuple[str, str, str]


@dataclass(frozen=True)
class Courses:
    """All on one axis from 0."""

    ticks: tuple[Tick, ...]
    curves: tuple[Course, ...]


def courses(derivation: Derivation) -> Courses | None:
    """How the value goes with each of its first numbers, all on one scale from 0. None of a value below nothing, and
    where it goes with none."""
    made = derivation.evaluation
    if made is None or made.value <= 0:
        return None
    numbers = [each for each in derivation.formula.inputs if not each.choices and not _is_one_of_few(each)]
    found = [(each, _points(derivation, made, each)) for each in numbers[:MOST_COURSES]]
    found = [(each, points) for each, points in found if len({value for _, value in points}) > 1]
    if not found:
        return None
    size = SCALES[derivation.unit][1]
    scale = round_scale(max(value for _, points in found for _, value in points) / size, derivation.unit)
    most = scale.maximum * size
    return Courses(
        scale.ticks,
        tuple(_course(derivation, each, points, 100 * made.value / most, most) for each, points in found),
    )


def _course(
    derivation: Derivation, parameter: Input, points: Sequence[tuple[float, float]], now: float, most: float
) -> Course:
    made = derivation.evaluation
    at = float(made.inputs[parameter.name]) if made else 0.0
    is_dotted = parameter.integer and len(points) <= MOST_DOTS
    return Course(
        parameter.label,
        parameter.symbol,
        "M" + "L".join(f"{x:.2f} {100 - 100 * value / most:.2f}" for x, value in points),
        tuple((f"{x:.2f}", f"{100 * value / most:.2f}") for x, value in points) if is_dotted else (),
        now,
        (scaled(points[0][1], derivation.unit), scaled(points[-1][1], derivation.unit)),
        ("0", value_text(at, parameter.dimension), value_text(2 * at, parameter.dimension)),
    )


def _points(derivation: Derivation, made: Evaluation, parameter: Input) -> list[tuple[float, float]]:
    """Percent of the way from nothing to twice the input, and the value there; where there is none, the place is left
    out."""
    now = made.inputs.get(parameter.name)
    if isinstance(now, str) or not now:
        return []
    found: dict[float, float] = {}
    for step in range(COURSE_STEPS + 1):
        x = 2 * now * _LEAST ** (1 - step / COURSE_STEPS)  # closer where a share of it bends most
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
