"""What can be found: the catalogue and the formula list as documents."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.content.catalogue import Catalogue
from app.content.glossary import anchor
from app.content.markdown import GAP
from app.search.index import Document
from app.theory.formulas import FORMULAS

# Groups with their titles, in the order they are shown in when they match equally well.
GROUPS = {
    "pages": "Handbook",
    "terms": "Glossary",
    "cards": "Cards",
    "problems": "Problems",
    "rubrics": "Free answers",
    "experiments": "Experiments",
    "labs": "Code labs",
    "formulas": "Formulas",
    "errata": "Errata",
}
_VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_MARK = re.compile(r"\{%.*?%\}|[$*`#]", re.DOTALL)


def without_marks(text: str) -> str:
    """Markdown without the signs that would read as noise in a line of results; "…" stands for a value that a seed
    draws."""
    return _MARK.sub(" ", _VALUE.sub("…", text))


def documents(catalogue: Catalogue) -> Iterator[Document]:
    """Every document, in the order of introduction."""
    yield from _pages(catalogue)
    yield from _terms(catalogue)
    yield from _cards(catalogue)
    yield from _exercises(catalogue)
    yield from _formulas()
    yield from _errata(catalogue)


def _pages(catalogue: Catalogue) -> Iterator[Document]:
    for page in catalogue.pages.values():
        for section in page.sections:
            is_first = section is page.sections[0]
            text = " ".join(block.text for block in section.blocks)
            yield Document(
                "pages",
                f"{page.slug}#{section.anchor}",
                f"{page.head.title}: {section.title}" if section.title else page.head.title,
                f"/reference/{page.slug}" + (f"#{section.anchor}" if section.title else ""),
                "page",
                page.slug.replace("-", " ") if is_first else "",
                page.head.about if is_first else "",
                text,
            )


def _terms(catalogue: Catalogue) -> Iterator[Document]:
    for term in catalogue.handbook.terms.values():
        href = f"/reference/glossary#{anchor(term.term)}"
        yield Document("terms", term.term, term.term, href, "term", " ".join(term.also), "", term.says)


def _cards(catalogue: Catalogue) -> Iterator[Document]:
    for card in catalogue.cards.values():
        text = {name: html.replace(GAP, "").striptags() for name, html in card.sections.items()}
        question = text.pop("Question", "")
        yield Document(
            "cards",
            card.id,
            card.head.title,
            f"/study/cards/{card.id}",
            f"card {card.id}",
            card.id,
            question,
            " ".join(text.values()),
        )


def _exercises(catalogue: Catalogue) -> Iterator[Document]:
    for problem in catalogue.problems.values():
        asked = " ".join(without_marks(text) for text in (problem.statement, *(part.prompt for part in problem.parts)))
        yield Document(
            "problems",
            problem.id,
            problem.title,
            f"/practice/{problem.slug}",
            f"problem {problem.id}",
            problem.id,
            problem.about,
            asked,
        )
    for rubric in catalogue.rubrics.values():
        yield Document(
            "rubrics",
            rubric.id,
            rubric.title,
            f"/rubrics/{rubric.slug}",
            f"question {rubric.id}",
            rubric.id,
            rubric.about,
            without_marks(rubric.question),
        )
    for experiment in catalogue.experiments.values():
        yield Document(
            "experiments",
            experiment.id,
            experiment.title,
            f"/lab/experiments/{experiment.slug}",
            f"experiment {experiment.id}",
            experiment.id,
            experiment.about,
            without_marks(experiment.why),
        )
    for lab in catalogue.labs.values():
        yield Document(
            "labs",
            lab.id,
            lab.title,
            f"/labs/{lab.slug}",
            f"code lab {lab.id}",
            f"{lab.id} {lab.head.signature}",
            lab.head.about,
            without_marks(lab.statement_text),
        )


def _formulas() -> Iterator[Document]:
    for formula in FORMULAS.by_name.values():
        names = f"{formula.id} {formula.name.replace('_', ' ')}"
        inputs = "; ".join(each.label for each in formula.inputs)
        yield Document(
            "formulas",
            formula.name,
            formula.title,
            f"/reference/formulas/{formula.name}",
            f"formula {formula.id}",
            names,
            formula.note or "",
            f"{inputs}. {formula.source}",
        )


def _errata(catalogue: Catalogue) -> Iterator[Document]:
    for erratum in catalogue.handbook.errata.values():
        yield Document(
            "errata",
            erratum.id,
            erratum.claim.striptags(),
            f"/reference/errata#{erratum.id}",
            f"erratum {erratum.id}",
            erratum.id,
            "",
            erratum.correct.striptags(),
        )
