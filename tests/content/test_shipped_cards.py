"""The content we ship: in order, complete, and every number in it computed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import pytest
from markupsafe import Markup

from app.content.asked import ask
from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.content.diagrams.schema import Pipeline
from app.grading.questions import ChoiceQuestion
from app.practice.variants import make_variant
from app.reference.service import derive, find_formula
from app.units import digits, scaled
from tests.support.shipped import shipped

CARDS = list(shipped().cards.values())


class Links(HTMLParser):
    """Every live number of a page: its address and what it shows."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "a" and given.get("class") == "live":
            self.found.append((given["href"] or "", ""))

    def handle_data(self, data: str) -> None:
        if self.found and not self.found[-1][1]:
            self.found[-1] = (self.found[-1][0], data)


def check_live_numbers(html: str) -> int:
    """Follow every live number and compare; returns how many there are."""
    found = Links(html).found
    for address, shown in found:
        parts = urlsplit(address)
        typed = dict(parse_qsl(parts.query))
        formula = find_formula(parts.path.removeprefix("/reference/formulas/"))
        derivation = derive(formula, typed)
        assert not [field.error for field in derivation.fields if field.error], address
        assert derivation.unit == typed.get("unit", formula.unit), address  # a plain number opens in the formula's unit
        assert derivation.evaluation is not None
        value, unit = derivation.evaluation.value, derivation.unit
        written = {scaled(value, unit, significant) for significant in (2, 3, 4, 5)}
        number = {digits(float(text.split()[0].replace(",", "")), 5) for text in written if "−" not in text}
        assert shown in written | number, f"{address} is {scaled(value, unit)}, the card says {shown}"
        assert derivation.math
    return len(found)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_a_card_asks_answers_and_belongs_to_a_concept(card: Card, content: Catalogue) -> None:
    assert card.head.concepts
    assert set(card.head.concepts) <= set(content.concepts)
    assert card.sections["Question"].striptags()
    assert card.sections["Answer"].striptags()
    assert card.head.source
    assert card.id == card.source.path.rpartition("/")[2].removesuffix(".md")


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_a_live_number_opens_on_the_number_it_shows(card: Card) -> None:
    shown = list(card.sections.values())
    for each in card.asks if isinstance(card.asks, tuple) else ():  # options, pairs or steps
        parts = (getattr(each, name, "") for name in ("text", "message", "left", "right"))
        shown += [each] if isinstance(each, Markup) else list(parts)
    for html in shown:
        check_live_numbers(html)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("card", [card for card in CARDS if card.is_checked], ids=lambda card: card.id)
def test_what_the_machine_checks_takes_its_own_key(card: Card, seed: int) -> None:
    showing = ask(card, seed)
    if showing.number:
        check_live_numbers(showing.prompt)
        right = showing.number.key_text
    elif isinstance(showing.question, ChoiceQuestion):
        right = ",".join(option.id for option in showing.question.options if option.correct)
    else:
        left = list(showing.choices)
        right = ""
        for each in card.asks:  # type: ignore[attr-defined]
            text = getattr(each, "right", each)
            choice = next(choice for choice in left if choice.text == text)
            left.remove(choice)
            right += f"{choice.key},"
    assert showing.check(right).status == "correct"
    assert showing.prompt.striptags()


def test_most_cards_have_live_numbers() -> None:
    live = [card.id for card in CARDS if any("data-live" in html for html in card.sections.values())]
    assert len(live) > len(CARDS) / 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_live_numbers_of_problems_open_on_what_they_show(content: Catalogue, seed: int) -> None:
    for problem in content.problems.values():
        variant = make_variant(problem, seed)
        check_live_numbers(variant.statement)
        assert check_live_numbers(variant.solution) > 0


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_nothing_unrendered_and_no_raw_mark_is_left_in_a_card(card: Card) -> None:
    html = "".join(card.sections.values())
    assert not re.search(r"\{\{|\}\}|\{%|\$|[\ue000\ue001]", html)


def test_figures_have_bytes_in_every_bar(content: Catalogue) -> None:
    drawn = [card.figure for card in content.cards.values() if card.figure]
    assert drawn
    for figure in drawn:
        assert all(bar.total > 0 for bar in figure.rows)
        assert figure.finding


def test_a_pipeline_is_drawn_with_the_micro_batches_its_question_names(content: Catalogue) -> None:
    drawn = {card.id: card.head.diagram for card in content.cards.values() if isinstance(card.head.diagram, Pipeline)}
    named = {
        id_: re.search(r"with (\d+) micro-batches", content.cards[id_].source.sections["Question"]) for id_ in drawn
    }
    told = {id_: int(found.group(1)) for id_, found in named.items() if found}
    assert "C56" in told
    assert {id_: drawn[id_].micro_batches for id_ in told} == told
