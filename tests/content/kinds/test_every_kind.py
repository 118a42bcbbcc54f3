"""What holds of cards of every kind. What holds of one stands in its own file beside this."""

from __future__ import annotations

from pathlib import Path

from app.content.catalogue import Catalogue, load
from app.content.checks import check_content
from tests.support.cards import edit
from tests.support.kinds import KINDS


def test_a_card_of_every_kind_is_in_order(cards: Path) -> None:
    found, problems = check_content(cards)
    assert [str(problem) for problem in problems] == []
    assert set(KINDS) <= set(found.cards)


def test_the_machine_checks_what_has_a_key(kinds: Catalogue) -> None:
    assert {id_ for id_, card in kinds.cards.items() if card.is_checked} == {"C11", "C12", "C13", "C14", "C15"}


def test_a_figure_with_a_source_may_be_typed(cards: Path) -> None:
    edit(cards, "decks/kinds/C12.md", "The ring.", "The ring, 3 times.")
    edit(cards, "decks/kinds/C12.md", "kind: choose", "kind: choose\ngiven: {3 times: counted in the picture}")
    assert check_content(cards)[1] == []


def test_a_figure_all_cards_may_state_stands_in_one_file(cards: Path) -> None:
    edit(cards, "decks/kinds/C12.md", "The ring.", "The ring, 3 times.")
    (cards / "given.yaml").write_text("given: {3 times: counted in the picture}\n")
    assert check_content(cards)[1] == []
    (cards / "given.yaml").write_text("given: [3 times]\n")
    assert str(load(cards).mistakes[0]).startswith("cards/given.yaml:1 given: ")


def test_a_card_expects_its_own_seconds_or_its_kinds(cards: Path) -> None:
    edit(cards, "decks/kinds/C16.md", "kind: cloze", "kind: cloze\nseconds: 11")
    loaded = load(cards)
    assert loaded.cards["C16"].expected_seconds == 11
    assert loaded.cards["C16"].slow_milliseconds == 33_000
    assert loaded.cards["C11"].expected_seconds == loaded.cards["C11"].kind.seconds
