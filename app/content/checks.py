"""What must hold of the content beyond its schema: references lead somewhere, and names are not taken twice.

That numbers compute for every seed, keys grade as right and slips as what they are, the rooms check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from app.content.card_checks import check_cards
from app.content.catalogue import Catalogue, read, source_key
from app.content.code_labs import check_code_labs
from app.content.concept_map import in_circles
from app.content.files import Source
from app.content.handbook_checks import check_handbook
from app.content.live import ExpressionError
from app.content.preparation_checks import check_preparation
from app.content.roles import ROLES
from app.content.sentence_checks import check_sentences
from app.core.errors import ContentProblem

# A check gets the catalogue and yields (the key of the item's source, field path, reason).
Finding = tuple[str, tuple[Any, ...], str]
Check = Callable[[Catalogue], Iterator[Finding]]


def check_content(folder: Path, more: Iterable[Check] = ()) -> tuple[Catalogue, list[ContentProblem]]:
    """Read everything below `folder` and check it. Rooms that compute with content hand in their own checks."""
    catalogue = read(folder)
    problems = list(catalogue.mistakes)
    for check in (
        check_references,
        check_slugs,
        check_concepts,
        check_cards,
        check_handbook,
        check_preparation,
        check_sentences,
        check_labs,
        *more,
    ):
        try:
            for identity, location, reason in check(catalogue):
                problems.append(_located(catalogue.sources[identity], location, reason))
        except ExpressionError as error:
            problems.append(ContentProblem(str(folder), 1, "expression", str(error)))
    return catalogue, problems


def _located(source: Source, location: tuple[object, ...], reason: str) -> ContentProblem:
    """A finding in a field, or in a section of a card, named as `# Answer`."""
    section = str(location[0]).removeprefix("# ") if location else ""
    if section in source.section_lines:
        return source.section_problem(section, reason)
    return source.problem(location, reason)


def check_references(catalogue: Catalogue) -> Iterator[Finding]:
    """Concepts, related items and cures exist; every concept is used."""
    used: set[str] = set()
    for identity, item in _items(catalogue):
        for concept in item.concepts:
            used.add(concept)
            if concept not in catalogue.concepts:
                yield identity, ("concepts",), f"there is no concept {concept!r}"
        related = getattr(item, "related", None)
        known: dict[str, Mapping[str, Any]] = {
            "cards": catalogue.cards,
            "problems": catalogue.problems,
            "rubrics": catalogue.rubrics,
            "experiments": catalogue.experiments,
            "pages": catalogue.pages,
        }
        for kind, items in known.items():
            for other in getattr(related, kind, ()):
                if other not in items:
                    yield identity, ("related", kind), f"there is no {kind[:-1]} {other}"
        yield from _check_cures(identity, item, catalogue)
    for deck in catalogue.decks.values():
        for need in deck.needs:
            if need not in catalogue.decks:
                yield deck.id, ("needs",), f"there is no deck {need}"
    yield from _check_roles(catalogue)
    if catalogue.cards and (orphans := [each for each in catalogue.concepts if each not in used]):
        first = next(iter(catalogue.cards))
        yield first, (), f"concepts that nothing teaches: {', '.join(orphans)}"


def _check_roles(catalogue: Catalogue) -> Iterator[Finding]:
    for index, role in enumerate(catalogue.roles):
        for concept in role.concepts:
            if concept not in catalogue.concepts:
                yield ROLES, ("roles", index, "concepts"), f"there is no concept {concept!r}"


def _items(catalogue: Catalogue) -> Iterator[tuple[str, Any]]:
    for card in catalogue.cards.values():
        yield card.id, card.head
    for kind, items in _with_slugs(catalogue).items():
        for identity, item in items.items():
            yield source_key(kind, identity), item


def _with_slugs(catalogue: Catalogue) -> dict[str, Mapping[str, Any]]:
    return {
        "problems": catalogue.problems,
        "rubrics": catalogue.rubrics,
        "interviews": catalogue.interviews,
        "experiments": catalogue.experiments,
        "labs": catalogue.labs,
    }


def check_labs(catalogue: Catalogue) -> Iterator[Finding]:
    """Words for what the graders name."""
    yield from check_code_labs(catalogue.labs, catalogue.cards)


def check_slugs(catalogue: Catalogue) -> Iterator[Finding]:
    """A slug is an address: two problems must not share one."""
    for kind, items in _with_slugs(catalogue).items():
        first: dict[str, str] = {}
        for identity, item in items.items():
            if first.setdefault(item.slug, identity) != identity:
                yield source_key(kind, identity), ("slug",), f"{first[item.slug]} has the same slug"


def check_concepts(catalogue: Catalogue) -> Iterator[Finding]:
    """No concept needs itself, directly or through others."""
    circle = in_circles(catalogue.concepts)
    if circle and catalogue.cards:
        yield next(iter(catalogue.cards)), (), f"concepts that need each other in a circle: {', '.join(circle)}"


def _check_cures(identity: str, item: object, catalogue: Catalogue) -> Iterator[Finding]:
    for group in ("parts", "questions"):
        for index, part in enumerate(getattr(item, group, ())):
            follow = getattr(part, "follow_up", None)
            for slip in (*part.slips, *(follow.slips if follow else ())):
                if slip.cure and slip.cure not in catalogue.cards:
                    yield identity, (group, index, "slips"), f"slip {slip.id} is cured by {slip.cure}, which is no card"
            cure = getattr(part, "cure", None)
            if cure and cure not in catalogue.cards:
                yield identity, (group, index, "cure"), f"{cure} is no card"
