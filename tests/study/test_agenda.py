"""The day follows the log, whoever writes it: every process says the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest

from app.content.catalogue import Catalogue
from app.core.days import today
from app.core.db import Database, open_database
from app.study import queries, service
from tests.conftest import NOW, moment_at

CARDS = 60  # more than are looked at, of clusters with several cards


@contextmanager
def another_process(database: Database) -> Iterator[Database]:
    """The same database with connections of its own."""
    other = open_database(database.engine.url.render_as_string(hide_password=False))
    try:
        yield other
    finally:
        other.engine.dispose()


@pytest.fixture
def other(database: Database) -> Iterator[Database]:
    with another_process(database) as found:
        yield found


def look(database: Database, content: Catalogue, now: datetime) -> service.Desk:
    with database.read() as session:
        return service.study(session, 1, content, moment_at(now), extra_new=200)


def answer(database: Database, content: Catalogue, card_id: str, level: int, now: datetime) -> None:
    with database.write() as session:
        state = queries.find_state(session, 1, card_id)
        version = state.version if state else 0
        service.submit_review(session, 1, content, card_id=card_id, level=level, version=version, moment=moment_at(now))


def load(database: Database, now: datetime) -> dict[int, int]:
    """Cards that come back on each later day, as this process knows them."""
    with database.read() as session:
        moment = moment_at(now)
        return queries.count_due_by_day(session, 1, today(moment), range(1, 36500), moment.zone)


def must_agree(database: Database, content: Catalogue, now: datetime) -> service.Desk:
    """What this process shows is what one that just started shows."""
    with another_process(database) as fresh:
        expected, expected_load = look(fresh, content, now), load(fresh, now)
    found = look(database, content, now)
    assert found == expected
    assert load(database, now) == expected_load
    return found


def learned(database: Database, content: Catalogue) -> datetime:
    """Many cards known; returns a day when all are due."""
    for card_id in list(content.cards)[:CARDS]:
        answer(database, content, card_id, 5, NOW)
    return NOW + timedelta(days=90)


@pytest.mark.slow
def test_two_processes_see_each_others_answers(database: Database, other: Database, content: Catalogue) -> None:
    now, draw = learned(database, content), random.Random(3)
    hidden = 0
    for turn in range(24):
        desk = must_agree(database, content, now)
        look(other, content, now)
        assert desk.card is not None
        for process in (other, database) if turn % 3 else (database,):
            shown = look(process, content, now).card
            assert shown is not None
            answer(process, content, shown.card.id, draw.randint(1, 5), now)
        hidden = max(hidden, desk.buried)
        if turn % 7 == 6:
            with (other if turn % 2 else database).write() as session:
                service.undo(session, 1, now)
        now += timedelta(minutes=draw.choice([1, 15]))
    assert hidden > 2, "clusters were at work"
    must_agree(database, content, now)
    must_agree(other, content, now)


def test_an_answer_whose_transaction_failed_is_not_counted(database: Database, content: Catalogue) -> None:
    now = learned(database, content)
    first = must_agree(database, content, now).card
    assert first is not None
    for known in (first.card.id, list(content.cards)[CARDS]):  # one due, one new
        with pytest.raises(RuntimeError), database.write() as session:
            state = queries.find_state(session, 1, known)
            version = state.version if state else 0
            service.submit_review(session, 1, content, card_id=known, level=4, version=version, moment=moment_at(now))
            service.study(session, 1, content, moment_at(now))
            raise RuntimeError("the disk is full")
        must_agree(database, content, now)


def test_a_card_answered_out_of_turn_leaves_the_count(database: Database, content: Catalogue) -> None:
    """Hidden because of a card near to it, it can still be opened from the search and answered."""
    now = learned(database, content)
    clusters: dict[str, list[str]] = {}
    for card_id in list(content.cards)[:CARDS]:
        clusters.setdefault(content.cards[card_id].head.cluster or card_id, []).append(card_id)
    near = next(members for members in clusters.values() if len(members) > 2)
    before = must_agree(database, content, now)
    for place, card_id in enumerate(near):
        answer(database, content, card_id, 4, now)
        desk = must_agree(database, content, now)
        assert desk.buried == len(near) - 1 - place
        assert desk.progress.left == before.progress.left - len(near)
