"""Handbook pages, glossary and errata as the reference shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.content.glossary import anchor
from app.content.handbook import ShownErratum
from app.content.page_schemas import Term
from app.content.pages import Page
from app.core.errors import NotFound
from app.reference.service import find_formula

T = TypeVar("T")
GROUPS: Mapping[str, str] = {
    "understand": "How it works",
    "decide": "Deciding and running",
    "say": "Saying it",
}

SEVERITIES: Mapping[str, str] = {
    "high": "wrong",
    "medium": "misleading",
    "low": "loose or dated",
}


@dataclass(frozen=True)
class Link:
    """Somewhere to go on, with a word on what is there."""

    href: str
    text: str
    note: str


@dataclass(frozen=True)
class ShownPage:
    """A page with what stands around it."""

    page: Page
    group: str
    previous: Page | None
    next: Page | None
    links: tuple[Link, ...]
    formulas: tuple[Link, ...]
    cards: tuple[Card, ...]
    other_cards: tuple[Card, ...]

    @property
    def has_contents(self) -> bool:
        return len(self.page.contents) > 2

    @property
    def has_answers(self) -> bool:
        return any(block.kind == "answer" for section in self.page.sections for block in section.blocks)


def page_groups(catalogue: Catalogue) -> list[tuple[str, list[Page]]]:
    """Pages under the titles of their groups, in order."""
    groups = (
        (title, [page for page in catalogue.pages.values() if page.head.group == key]) for key, title in GROUPS.items()
    )
    return [(title, pages) for title, pages in groups if pages]


def show_page(catalogue: Catalogue, slug: str) -> ShownPage:
    """The page called `slug`. Raises NotFound."""
    page = catalogue.pages.get(slug)
    if page is None:
        raise NotFound(f"There is no page {slug!r} in the handbook. All of them: /reference.")
    order = [each for _, pages in page_groups(catalogue) for each in pages]
    at, cards = order.index(page), catalogue.cards_of(slug)
    return ShownPage(
        page,
        GROUPS[page.head.group],
        order[at - 1] if at else None,
        order[at + 1] if at + 1 < len(order) else None,
        tuple(_links(catalogue, page)),
        tuple(Link(f"/reference/formulas/{key}", key, find_formula(key).title) for key in page.head.related.formulas),
        tuple(cards),
        tuple(card for card in cards if card.id not in page.head.related.cards),
    )


def _links(catalogue: Catalogue, page: Page) -> list[Link]:
    related = page.head.related
    pages = [
        Link(f"/reference/{slug}", catalogue.pages[slug].head.title, "page")
        for slug in related.pages
        if slug in catalogue.pages
    ]
    problems = [
        Link(f"/practice/{each.slug}", f"{each.id}, {each.title}", "problem, fresh variant")
        for each in map(catalogue.problems.get, related.problems)
        if each
    ]
    experiments = [
        Link(f"/lab/experiments/{each.slug}", f"{each.id}, {each.title}", f"experiment, {each.minutes} min")
        for each in map(catalogue.experiments.get, related.experiments)
        if each
    ]
    cards = [
        Link(f"/study/cards/{each.id}", f"{each.id}, {each.head.title}", "card")
        for each in map(catalogue.cards.get, related.cards)
        if each
    ]
    return [*problems, *experiments, *cards, *pages]


def by_subject(catalogue: Catalogue, pages: Sequence[Page]) -> dict[str, list[Page]]:
    """Pages under the group of the concept they are about first, both in their order."""
    return _grouped(catalogue, [(page.head.concepts[0], page) for page in pages])


def glossary(catalogue: Catalogue) -> dict[str, list[Term]]:
    """Terms in alphabetical order, under the group of their concept."""
    terms = sorted(catalogue.handbook.terms.values(), key=lambda term: term.term.lower())
    return _grouped(catalogue, [(term.concept, term) for term in terms])


def _grouped(catalogue: Catalogue, items: Iterable[tuple[str | None, T]]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {concept.group: [] for concept in catalogue.concepts.values()}
    for identity, item in items:
        concept = catalogue.concepts.get(identity or "")
        found.setdefault(concept.group if concept else "Other", []).append(item)
    return {group: each for group, each in found.items() if each}


def term_anchor(term: Term) -> str:
    """Where a term stands on the glossary page."""
    return anchor(term.term)


def errata(catalogue: Catalogue) -> list[tuple[str, str, list[ShownErratum]]]:
    """Errata by topic: anchor, title, entries in order of their ids."""
    found = catalogue.handbook
    return [
        (key, title, sorted((each for each in found.errata.values() if each.head.topic == key), key=lambda e: e.id))
        for key, title in found.topics.items()
    ]


def count_severities(entries: Sequence[ShownErratum]) -> dict[str, int]:
    """How many of some errata are how wrong, the worst first, by the word a page has for it."""
    counts = {word: sum(each.head.severity == key for each in entries) for key, word in SEVERITIES.items()}
    return {word: count for word, count in counts.items() if count}


def taught_by(catalogue: Catalogue, erratum: ShownErratum) -> list[Link]:
    """Where an erratum is taught."""
    links: list[Link] = []
    for key in erratum.head.taught_by:
        if key in catalogue.cards:
            links.append(Link(f"/study/cards/{key}", f"{key}, {catalogue.cards[key].head.title}", "card"))
        elif key in catalogue.pages:
            links.append(Link(f"/reference/{key}", catalogue.pages[key].head.title, "page"))
    return links
