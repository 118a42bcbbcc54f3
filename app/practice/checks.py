"""Problems over many seeds: keys grade as right, slips are told from the key and recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from app.content.catalogue import Catalogue
from app.content.checks import Finding
from app.content.live import ExpressionError
from app.content.problem_draws import draw
from app.content.problem_schemas import ChoicePart, Problem, TextPart
from app.content.questions import hint_findings, number_findings
from app.content.seeded import CHECKED_SEEDS
from app.grading.questions import ChoiceQuestion, ConfigurationQuestion, NumberQuestion, OrderQuestion, Question
from app.practice.variants import Variant, make_variant

RENDERED_SEEDS = 50  # whose texts are rendered as well: half of the time of the check, and they have few branches
HINTED_SEEDS = range(8)  # a hint that says what is right does so in each; in some it may, as numbers coincide
LEAST_SHARE = 0.1  # of the variants in which a slip must be one: where it rarely is, it is not worth its words


def check_problems(catalogue: Catalogue) -> Iterator[Finding]:
    """Every problem at every seed; each finding once, with the first seed that shows it."""
    for problem in catalogue.problems.values():
        yield from ((problem.id, *found) for found in _reference_findings(problem, catalogue))
        found = list(_problem_findings(problem))
        yield from ((problem.id, *each) for each in found or _giveaways(problem))


def _reference_findings(problem: Problem, catalogue: Catalogue) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Rubrics and the cards that cure a wrong option exist, and each slip has a cure; the other checks look it up."""
    for index, part in enumerate(problem.parts):
        for slip in part.slips:
            if not slip.cure:
                yield ("parts", index, "slips"), f"slip {slip.id} has no card that cures it"
        if isinstance(part, TextPart) and part.rubric not in catalogue.rubrics:
            yield ("parts", index, "rubric"), f"there is no rubric {part.rubric}"
        for option in part.options if isinstance(part, ChoicePart) else ():
            if option.cure and option.cure not in catalogue.cards:
                yield ("parts", index, "options"), f"option {option.id} is cured by {option.cure}, which is no card"


def _problem_findings(problem: Problem) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each draw is looked at once: seeds that draw the same differ in the order of what is offered alone."""
    seen: set[tuple[int, str]] = set()
    kept: Counter[tuple[int, str]] = Counter()
    variants: dict[str, Variant] = {}
    for seed in CHECKED_SEEDS:
        found: list[tuple[int, str]] = []
        try:
            drawn = draw(problem, seed)
            if (which := str(drawn)) not in variants:
                variants[which] = variant = make_variant(problem, seed, drawn)
                if seed < RENDERED_SEEDS:
                    _ = variant.statement, variant.given, variant.hints, variant.solution, variant.figure
                found += ((index, why) for index, part in enumerate(variant.parts) for why in _findings(part.question))
        except ExpressionError as error:
            yield error.location, f"seed {seed}: {error}"
            return
        for index, part in enumerate(variants[which].parts):
            kept.update((index, slip.id) for slip in getattr(part.question, "slips", ()))
        for index, reason in found:
            kind = (index, reason.split(":")[0])
            if kind not in seen:
                seen.add(kind)
                yield ("parts", index), f"seed {seed}: {reason}"
    for index, source in enumerate(problem.parts):
        for slip in source.slips:
            if kept[index, slip.id] < LEAST_SHARE * len(CHECKED_SEEDS):
                seldom = f"slip {slip.id} can be told from the key and the slips before it in {kept[index, slip.id]}"
                yield ("parts", index, "slips"), f"{seldom} of {len(CHECKED_SEEDS)} variants"


def _giveaways(problem: Problem) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The hints that say what is right in a number part, at a price or not."""
    given_away: Counter[tuple[int, str]] = Counter()
    for seed in HINTED_SEEDS:
        variant = make_variant(problem, seed)
        for index, hint in enumerate(variant.hints):
            for part in variant.parts:
                if isinstance(part.question, NumberQuestion) and any(hint_findings(hint.striptags(), part.question)):
                    given_away[index, part.id] += 1
    for (index, part_id), variants in given_away.items():
        if variants == len(HINTED_SEEDS):
            yield ("hints", index), f"it says what is right in part {part_id}"


def _findings(part: Question | None) -> Iterator[str]:
    """What is wrong with a question at its seed: what is right must grade as right, and what is wrong as itself."""
    if isinstance(part, NumberQuestion):
        yield from number_findings(part)
    elif isinstance(part, ChoiceQuestion):
        yield from _choice_findings(part)
    elif isinstance(part, OrderQuestion):
        if part.grade(part.answer_text).status != "correct":
            yield "the right order does not grade as right"
        if len({item.value for item in part.items}) == 1:
            yield "all items have the same value: any order is right"
    elif isinstance(part, ConfigurationQuestion):
        yield from _configuration_findings(part)


def _choice_findings(part: ChoiceQuestion) -> Iterator[str]:
    if not part.right:
        yield "no option is right"
    elif not part.several and len(part.right) > 1:
        yield f"a choice has one right option, and here are {len(part.right)}: {part.key}"
    elif part.grade(part.answer_text).status != "correct":
        yield "the right options do not grade as right"


def _configuration_findings(part: ConfigurationQuestion) -> Iterator[str]:
    try:
        best = part.key_text
    except ValueError as error:
        yield str(error)
        return
    if part.grade(best).status != "correct":
        yield f"the best configuration does not grade as right: {best}"
