"""What must hold of pages, glossary and errata: they lead somewhere, are complete, and compute what follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.content.bare_numbers import bare_numbers
from app.content.catalogue import Catalogue
from app.content.handbook import ERRATA, GLOSSARY
from app.content.page_schemas import Erratum
from app.content.pages import Page
from app.theory.formulas import FORMULAS

Finding = tuple[str, tuple[Any, ...], str]


def check_handbook(catalogue: Catalogue) -> Iterator[Finding]:
    """Every check of this module."""
    for page in catalogue.pages.values():
        for location, reason in (*_page_references(page, catalogue), *_page_numbers(page, catalogue)):
            yield f"reference/{page.slug}", location, reason
    yield from _check_glossary(catalogue)
    yield from _check_errata(catalogue)


def _page_references(page: Page, catalogue: Catalogue) -> Iterator[tuple[tuple[Any, ...], str]]:
    for concept in page.head.concepts:
        if concept not in catalogue.concepts:
            yield ("concepts",), f"there is no concept {concept!r}"
    known: Mapping[str, Any] = {
        "cards": catalogue.cards,
        "problems": catalogue.problems,
        "experiments": catalogue.experiments,
        "pages": catalogue.pages,
        "formulas": {formula.id for formula in FORMULAS.by_name.values()},
    }
    for kind, items in known.items():
        for other in getattr(page.head.related, kind):
            if other not in items:
                yield ("related", kind), f"there is no {kind[:-1]} {other}"


def _page_numbers(page: Page, catalogue: Catalogue) -> Iterator[tuple[tuple[int | str, ...], str]]:
    for figure in bare_numbers(page.source.sections["body"], [*catalogue.given, *page.head.given]):
        yield ("# body",), f"{figure!r} is typed: compute it, or list it under given: with its source"


def _check_glossary(catalogue: Catalogue) -> Iterator[Finding]:
    named: dict[str, str] = {}
    for index, term in enumerate(catalogue.handbook.terms.values()):
        where = ("terms", index)
        if term.concept and term.concept not in catalogue.concepts:
            yield GLOSSARY, (*where, "concept"), f"there is no concept {term.concept!r}"
        if term.page and term.page not in catalogue.pages:
            yield GLOSSARY, (*where, "page"), f"there is no page {term.page!r}"
        for name in (term.term, *term.also):
            first = named.setdefault(name.lower(), term.term)
            if first != term.term:
                yield GLOSSARY, (*where, "also"), f"{name!r} is also a name of {first!r}"


def _check_errata(catalogue: Catalogue) -> Iterator[Finding]:
    entries = [shown.head for shown in catalogue.handbook.errata.values()]
    for missing in _gaps([entry.id for entry in entries]):
        yield ERRATA, ("errata",), f"{missing} is missing"
    for index, entry in enumerate(entries):
        for location, reason in _erratum(entry, catalogue):
            yield ERRATA, ("errata", index, location), reason


def _erratum(entry: Erratum, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    for key in entry.taught_by:
        if key not in catalogue.cards and key not in catalogue.pages:
            yield "taught_by", f"{key} is neither a card nor a page"
    for figure in bare_numbers(entry.correct, [entry.claim, *catalogue.given, *catalogue.handbook.errata_given]):
        yield "correct", f"{figure!r} is typed: compute it"


def _gaps(ids: list[str]) -> Iterator[str]:
    """Ids run from E001 without a gap, in whatever order they stand."""
    last = max((int(each[1:]) for each in ids), default=0)
    yield from (f"E{number:03d}" for number in range(1, last + 1) if f"E{number:03d}" not in ids)
