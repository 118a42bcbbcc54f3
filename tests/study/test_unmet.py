"""Which cards are new follows from the states alone, whatever was written down to find them faster."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from app.content import catalogue as catalogues
from app.content.catalogue import Catalogue
from app.core.db import Database
from app.study import queries, service
from app.study.queue.queues import list_unmet, note_met_blocks
from tests.conftest import NOW, moment_at


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogues, "BLOCK_CARDS", 4)


@pytest.fixture
def small(content: Catalogue, small_blocks: None) -> Catalogue:
    """Eleven blocks, the last of them not whole: made here, so that its blocks are too."""
    return replace(content, cards=dict(list(content.cards.items())[:42]))


def meet(database: Database, content: Catalogue, card_id: str) -> None:
    with database.write() as session:
        version = state.version if (state := queries.find_state(session, 1, card_id)) else 0
        service.submit_review(session, 1, content, card_id=card_id, level=4, version=version, moment=moment_at(NOW))


def unmet(database: Database, content: Catalogue) -> set[str]:
    with database.read() as session:
        return list_unmet(session, 1, content, content.cards)


def note(database: Database, content: Catalogue) -> None:
    with database.write() as session:
        note_met_blocks(session, 1, content)


def test_the_new_cards_are_those_without_a_state_however_they_were_met(database: Database, small: Catalogue) -> None:
    order = list(small.cards)
    random.Random(5).shuffle(order)
    for done, card_id in enumerate(order, start=1):
        meet(database, small, card_id)
        assert unmet(database, small) == set(order[done:])
        if done % 7 == 0:
            note(database, small)
            assert unmet(database, small) == set(order[done:])
    note(database, small)
    assert unmet(database, small) == set()


def test_a_block_that_was_met_is_not_asked_for_again(
    database: Database, small: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = list(small.cards)
    for card_id in ids[:9]:
        meet(database, small, card_id)
    note(database, small)
    asked: list[set[str]] = []
    sent = queries.rows

    def listen(*told, **values):  # type: ignore[no-untyped-def]
        asked.append(set(values.get("card_ids", ())))
        return sent(*told, **values)

    monkeypatch.setattr("app.study.queue.queues.rows", listen)
    assert unmet(database, small) == set(ids[9:])
    assert asked == [set(), set(ids[8:])]  # the blocks met, then the cards of the others


def test_other_content_makes_other_blocks(database: Database, small: Catalogue) -> None:
    """A card that is added or that takes another's place in a block is new, though its block's place was met."""
    ids = list(small.cards)
    for card_id in ids[:8]:
        meet(database, small, card_id)
    note(database, small)
    changed = [*ids[1:5], ids[41], *ids[5:41]]
    other = replace(small, cards={card_id: small.cards[card_id] for card_id in changed})
    assert unmet(database, other) == set(changed) - set(ids[:8])
    assert unmet(database, small) == set(ids[8:])


def test_an_answer_taken_back_makes_its_card_new_again(database: Database, small: Catalogue) -> None:
    """Its state stays, without a memory; the day still offers it."""
    ids = list(small.cards)
    for card_id in ids[:4]:
        meet(database, small, card_id)
    note(database, small)
    with database.write() as session:
        assert service.undo(session, 1, NOW) == ids[3]
    with database.read() as session:
        desk = service.study(session, 1, small, moment_at(NOW), extra_new=100)
    assert desk.card is not None
    assert desk.card.card.id == ids[3]
    assert unmet(database, small) == set(ids[4:])


def test_noting_twice_is_noting_once(database: Database, small: Catalogue) -> None:
    for card_id in list(small.cards)[:4]:
        meet(database, small, card_id)
    note(database, small)
    note(database, small)
    assert unmet(database, small) == set(list(small.cards)[4:])
