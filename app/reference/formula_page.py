"""What stands beside a formula on its page: how its value turns with each input, and where it is taught and used."""

from __future__ import annotations

from dataclasses import dataclass

from app.content.catalogue import Catalogue
from app.reference.handbook import Link
from app.reference.service import Derivation
from app.theory.formulas.registry import Evaluation, Formula, Input, evaluate
from app.units import digits, scaled
from labs.spec import SpecError

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
