"""Studying on a real database: nothing counted twice, nothing lost."""

from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta

import pytest

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError, NotFound, Stale
from app.study import queries, service
from app.study.models import CardState, Review
from app.study.queue import queues
from tests.conftest import NOW, Clock, moment_at


def _answer(database: Database, content: Catalogue, card_id: str, level: int, version: int, now=NOW) -> None:  # type: ignore[no-untyped-def]
    with database.write() as session:
        service.submit_review(session, 1, content, card_id=card_id, level=level, version=version, moment=moment_at(now))


def _look(database: Database, content: Catalogue, now=NOW, extra: int = 0) -> service.Desk:  # type: ignore[no-untyped-def]
    with database.read() as session:
        return service.study(session, 1, content, moment_at(now), extra)


def _state(database: Database, card_id: str) -> CardState:
    with database.read() as session:
        state = queries.find_state(session, 1, card_id)
        assert state is not None
        return state


def test_a_new_learner_gets_todays_share_of_new_cards_in_deck_order(database: Database, content: Catalogue) -> None:
    desk = _look(database, content)
    assert desk.card is not None
    assert desk.card.card.id == next(iter(content.cards))
    assert desk.card.is_new
    assert desk.progress.left == service.NEW_CARDS_PER_DAY


def test_the_raw_level_and_everything_to_rebuild_the_state_are_logged(database: Database, content: Catalogue) -> None:
    _answer(database, content, "C27", 2, 0)
    with database.read() as session:
        review = queries.find_last_review(session, 1)
    assert review is not None
    assert (review.level, review.rating) == (2, 1)
    assert review.memory_before is None
    assert review.due_at == NOW + timedelta(minutes=1)
    assert review.scheduler.startswith("rankzero 2, py-fsrs ")
    assert review.day_starts_hour == 4
    assert review.time_zone


def test_answering_the_same_version_again_changes_nothing(database: Database, content: Catalogue) -> None:
    _answer(database, content, "C27", 4, 0)
    before = _state(database, "C27")
    with pytest.raises(Stale, match="Nothing was counted twice"):
        _answer(database, content, "C27", 1, 0, NOW + timedelta(seconds=1))
    after = _state(database, "C27")
    assert (after.version, after.memory, after.reviews) == (before.version, before.memory, 1)


def test_of_many_simultaneous_answers_one_counts(database: Database, content: Catalogue) -> None:
    barrier, outcomes = threading.Barrier(6), []

    def press() -> None:
        barrier.wait()
        try:
            _answer(database, content, "C27", 4, 0)
            outcomes.append("counted")
        except Stale:
            outcomes.append("stale")

    threads = [threading.Thread(target=press) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["counted"] + ["stale"] * 5
    with database.read() as session:
        assert session.query(Review).count() == 1


def test_undo_restores_the_memory_exactly_and_may_be_repeated(database: Database, content: Catalogue) -> None:
    _answer(database, content, "C27", 5, 0)
    first = _state(database, "C27")
    later = NOW + timedelta(days=8)
    _answer(database, content, "C27", 1, 1, later)
    assert _state(database, "C27").lapses == 1
    for _ in range(2):
        with database.write() as session:
            assert service.undo(session, 1, later) == "C27"
        if _ == 0:
            again = _state(database, "C27")
            assert (again.memory, again.due_at, again.reviews, again.lapses) == (first.memory, first.due_at, 1, 0)
            assert again.version > 2, "a tab that still shows the undone state is stale"
    assert _state(database, "C27").memory is None
    assert "C27" in content.cards
    with database.write() as session, pytest.raises(DomainError, match="no answer to take back"):
        service.undo(session, 1, later)


def test_an_undone_answer_stays_in_the_log(database: Database, content: Catalogue) -> None:
    _answer(database, content, "C27", 4, 0)
    with database.write() as session:
        service.undo(session, 1, NOW)
    with database.read() as session:
        assert session.query(Review).count() == 1
        assert queues.read_day(session, 1, NOW - timedelta(days=1), NOW + timedelta(days=1)).done == 0


def test_learning_steps_come_before_due_cards_and_new_ones(
    database: Database, content: Catalogue, clock: Clock
) -> None:
    first, second, third = list(content.cards)[:3]
    _answer(database, content, first, 5, 0, clock.now)  # back in days
    _answer(database, content, second, 4, 0, clock.now)  # back in 10 minutes
    desk = _look(database, content, clock.now)
    assert desk.card is not None
    assert desk.card.card.id == third, "nothing is due yet, so a new card comes"
    desk = _look(database, content, clock.advance(minutes=10))
    assert desk.card is not None
    assert desk.card.card.id == second
    _answer(database, content, second, 4, 1, clock.now)
    desk = _look(database, content, clock.advance(days=9))
    assert desk.card is not None
    assert desk.card.card.id in (first, second)
    assert not desk.card.is_new


def test_when_today_is_done_the_page_says_when_it_goes_on(database: Database, content: Catalogue, clock: Clock) -> None:
    for card_id in list(content.cards)[: service.NEW_CARDS_PER_DAY]:
        _answer(database, content, card_id, 5, 0, clock.now)
    desk = _look(database, content, clock.now)
    assert desk.card is None
    assert desk.progress.left == 0
    assert desk.next_due_at is not None
    assert desk.next_due_at > clock.now
    assert desk.new_left == len(content.cards) - service.NEW_CARDS_PER_DAY
    more = _look(database, content, clock.now, extra=6)
    assert more.progress.left == min(6, desk.new_left)
    tomorrow = _look(database, content, clock.advance(days=1))
    assert tomorrow.card is not None


def test_a_new_revision_is_learned_anew_and_a_typo_is_not(database: Database, content: Catalogue) -> None:
    _answer(database, content, "C27", 5, 0)
    card = content.cards["C27"]
    revised = dataclasses.replace(card, head=card.head.model_copy(update={"revision": 2}))
    changed = dataclasses.replace(content, cards={**content.cards, "C27": revised})
    with database.read() as session:
        assert not service.show(session, 1, content, "C27", moment_at(NOW)).is_new
        shown = service.show(session, 1, changed, "C27", moment_at(NOW))
    assert shown.is_new
    _answer(database, changed, "C27", 4, shown.version)
    assert _state(database, "C27").revision == 2


@pytest.mark.parametrize("level", [0, 6, -1])
def test_a_rating_that_does_not_exist_is_refused_by_name(database: Database, content: Catalogue, level: int) -> None:
    with pytest.raises(DomainError) as caught:
        _answer(database, content, "C27", level, 0)
    assert caught.value.violations[0].field == "level"
    with database.read() as session:
        assert session.query(Review).count() == 0


def test_an_unknown_card_is_not_found(database: Database, content: Catalogue) -> None:
    with pytest.raises(NotFound, match="C999"):
        _answer(database, content, "C999", 4, 0)


def test_cards_that_left_the_catalogue_are_passed_over(database: Database, content: Catalogue) -> None:
    first = next(iter(content.cards))
    _answer(database, content, first, 4, 0)
    without = dataclasses.replace(content, cards={k: v for k, v in content.cards.items() if k != first})
    desk = _look(database, without, NOW + timedelta(hours=1))
    assert desk.card is not None
    assert desk.card.card.id != first
