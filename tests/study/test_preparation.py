"""An interview date over a real database: what a day asks for, and that plans leave the log and due dates alone."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError
from app.study import service
from app.study.exam import preparation
from app.study.models import CardState, Review
from app.study.policy import policy_for
from tests.conftest import NOW, Clock, moment_at
from tests.support.strategies import strategies_are_found_once  # noqa: F401 - used by every test

TODAY = NOW.date()


@pytest.fixture
def plan(database: Database, content: Catalogue) -> None:
    _set(database, content, 14, 20, NOW)


def _set(database: Database, content: Catalogue, days: int, minutes: int, now: datetime) -> None:
    with database.write() as session:
        found = preparation.draft(session, 1, content, now.date() + timedelta(days=days), minutes, moment_at(now))
        preparation.set_plan(session, 1, content, found, moment_at(now))


def _answer_all(database: Database, content: Catalogue, now: datetime, level: int = 4) -> list[str]:
    """Answer everything the study page offers; returns the cards in order."""
    asked: list[str] = []
    while True:
        with database.write() as session:
            desk = service.study(session, 1, content, moment_at(now))
            if desk.card is None:
                return asked
            card = desk.card
            service.submit_review(
                session, 1, content, card_id=card.card.id, level=level, version=card.version, moment=moment_at(now)
            )
            asked.append(card.card.id)
        assert len(asked) < 500


def _states(database: Database) -> dict[str, CardState]:
    with database.read() as session:
        return {each.card_id: each for each in session.scalars(select(CardState))}


@pytest.mark.usefixtures("plan")
def test_new_cards_come_in_the_order_of_the_checkpoints_at_the_plans_pace(
    database: Database, content: Catalogue
) -> None:
    with database.read() as session:
        policy = policy_for(session, 1, moment_at(NOW))
        found = preparation.find(session, 1)
        expected = preparation.forecast(session, 1, content, moment_at(NOW))
    assert found is not None
    assert expected is not None
    assert policy.deadline == TODAY + timedelta(days=14)
    assert policy.new_per_day == found.new_today > 0
    asked = list(dict.fromkeys(_answer_all(database, content, NOW, level=5)))
    assert len(asked) == policy.new_per_day
    assert {content.cards[each].deck.id for each in asked} <= {"DK1", "DK2", "DK5"}
    assert content.cards[asked[0]].deck.id == "DK1"
    assert expected.new[0] == policy.new_per_day


@pytest.mark.slow
@pytest.mark.usefixtures("plan")
def test_following_the_plan_day_by_day_meets_every_card_and_keeps_to_the_minutes(
    database: Database, content: Catalogue, clock: Clock
) -> None:
    most = 20 * 60 / preparation.SECONDS_PER_ANSWER
    for _ in range(14):
        with database.write() as session:
            preparation.plan_day(session, 1, content, moment_at(clock.now))
        assert len(_answer_all(database, content, clock.now, level=5)) <= most + 2
        clock.advance(days=1)
    assert len(_states(database)) == len(content.cards)
    with database.read() as session:
        expected = preparation.forecast(session, 1, content, moment_at(clock.now))
    assert expected is not None
    assert expected.days_left == 0
    assert expected.recall_on_the_day > 0.95


def test_a_plan_holds_and_brings_forward_without_touching_log_or_due_dates(
    database: Database, content: Catalogue, clock: Clock
) -> None:
    _set(database, content, 14, 60, NOW)  # time enough to look at known cards beside the new ones
    _answer_all(database, content, clock.now, level=5)
    before = {each.card_id: (each.due_at, each.version, each.memory) for each in _states(database).values()}
    day = clock.advance(days=13)  # the last day: what was met comes again whatever its due date
    with database.write() as session:
        preparation.plan_day(session, 1, content, moment_at(day))
    after = _states(database)
    assert {each.card_id: (each.due_at, each.version, each.memory) for each in after.values()} == before
    assert any(each.available_at < each.due_at for each in after.values() if each.available_at and each.due_at) or any(
        each.due_at and each.due_at <= day for each in after.values()
    )
    with database.write() as session:
        preparation.drop_plan(session, 1, day)
    assert all(each.available_at == each.due_at for each in _states(database).values())
    with database.read() as session:
        assert policy_for(session, 1, moment_at(day)).deadline is None


def test_an_undone_answer_comes_back_though_its_card_was_brought_forward(
    database: Database, content: Catalogue, clock: Clock
) -> None:
    _set(database, content, 14, 60, NOW)  # time enough to look at known cards beside the new ones
    _answer_all(database, content, clock.now, level=5)
    day = clock.advance(days=13)
    with database.write() as session:
        preparation.plan_day(session, 1, content, moment_at(day))
        desk = service.study(session, 1, content, moment_at(day))
        assert desk.card is not None
        first = desk.card.card.id
        service.submit_review(
            session, 1, content, card_id=first, level=4, version=desk.card.version, moment=moment_at(day)
        )
    with database.write() as session:
        service.undo(session, 1, day)
        available = session.get_one(CardState, (1, first)).available_at
        assert available is not None
        assert available <= day


@pytest.mark.usefixtures("plan")
def test_a_day_is_planned_once_and_the_next_one_anew(database: Database, content: Catalogue, clock: Clock) -> None:
    with database.read() as session:
        assert preparation.list_unplanned(session, moment_at(clock.now)) == []
        assert preparation.list_unplanned(session, moment_at(clock.advance(days=1))) == [1]
    with database.write() as session:
        preparation.plan_day(session, 1, content, moment_at(clock.now))
        assert preparation.list_unplanned(session, moment_at(clock.now)) == []


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize("address", ["/", "/study", "/api/v1/study/next"])
def test_who_comes_before_the_sweep_gets_the_planned_day_all_the_same(
    client: TestClient, database: Database, content: Catalogue, clock: Clock, address: str
) -> None:
    """A machine that slept through the morning: a page shows the chosen cards, and looking at it writes nothing."""
    _answer_all(database, content, clock.now)
    tomorrow = clock.advance(days=1)
    before = {each: (state.available_at, state.version) for each, state in _states(database).items()}
    client.get(address)
    with database.read() as session:
        assert preparation.list_unplanned(session, moment_at(tomorrow)) == [1], "a look writes nothing"
        looked = service.study(session, 1, content, moment_at(tomorrow))
        assert service.count_due(session, 1, content, moment_at(tomorrow)) == looked.progress.left, (
            "the badge asks the same"
        )
    assert {each: (state.available_at, state.version) for each, state in _states(database).items()} == before
    with database.write() as session:
        preparation.plan_day(session, 1, content, moment_at(tomorrow))  # the sweep, at last
    with database.read() as session:
        swept = service.study(session, 1, content, moment_at(tomorrow))
    assert swept.progress == looked.progress
    assert swept.card is not None
    assert looked.card is not None
    assert swept.card.card.id == looked.card.card.id


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize("days", [1, 13, 25])
def test_the_first_answer_of_a_day_writes_down_what_the_page_showed(
    database: Database, content: Catalogue, clock: Clock, days: int
) -> None:
    """With reviews due, near the date and after it."""
    _answer_all(database, content, clock.now, level=4)
    day = clock.advance(days=days)
    with database.read() as session:
        looked = service.study(session, 1, content, moment_at(day))
    assert looked.card is not None
    with database.write() as session:
        card_id, version = looked.card.card.id, looked.card.version
        service.submit_review(session, 1, content, card_id=card_id, level=5, version=version, moment=moment_at(day))
        assert preparation.list_unplanned(session, moment_at(day)) == []
        after = service.study(session, 1, content, moment_at(day))
    assert after.progress.done == looked.progress.done + 1
    assert after.progress.left <= looked.progress.left - 1, "what is buried beside it waits for tomorrow"
    assert after.progress.left >= looked.progress.left - 1 - (after.buried - looked.buried)


@pytest.mark.slow
def test_when_nobody_plans_a_day_everything_held_is_back(database: Database, content: Catalogue, clock: Clock) -> None:
    _answer_all(database, content, clock.now)
    _set(database, content, 12, 20, clock.advance(days=3))
    held = [each for each in _states(database).values() if each.available_at != each.due_at]
    tomorrow = clock.advance(days=1)
    assert all(each.available_at is None or each.available_at <= tomorrow for each in held)


def test_suspended_and_buried_cards_stay_as_the_learner_left_them(
    database: Database, content: Catalogue, clock: Clock
) -> None:
    asked = list(dict.fromkeys(_answer_all(database, content, clock.now, level=4)))
    day = clock.advance(days=5)
    with database.write() as session:
        suspended, buried = (session.get_one(CardState, (1, each)) for each in asked[:2])
        suspended.suspended_at, suspended.available_at = day, None
        buried.buried_until = buried.available_at = day + timedelta(days=1)
    _set(database, content, 1, 480, day)
    states = _states(database)
    assert states[asked[0]].available_at is None
    assert states[asked[1]].available_at == day + timedelta(days=1)
    assert states[asked[2]].available_at is not None
    assert states[asked[2]].available_at <= day, "the last day brings every other card that gains from it"
    with database.write() as session:
        preparation.drop_plan(session, 1, day)
    assert _states(database)[asked[0]].available_at is None


@pytest.mark.parametrize(
    ("days", "minutes", "fields"),
    [(-1, 20, ["day"]), (400, 20, ["day"]), (10, 0, ["minutes_per_day"]), (-3, 9999, ["day", "minutes_per_day"])],
)
def test_what_cannot_be_planned_is_refused_by_name(
    database: Database, content: Catalogue, days: int, minutes: int, fields: list[str]
) -> None:
    with pytest.raises(DomainError) as caught:
        _set(database, content, days, minutes, NOW)
    assert [each.field for each in caught.value.violations] == fields
    with database.read() as session:
        assert preparation.find(session, 1) is None


def test_an_interview_today_asks_for_nothing_and_says_what_is_known(database: Database, content: Catalogue) -> None:
    _set(database, content, 0, 20, NOW)
    with database.read() as session:
        expected = preparation.forecast(session, 1, content, moment_at(NOW))
        policy = policy_for(session, 1, moment_at(NOW))
    assert expected is not None
    assert (expected.days_left, list(expected.answers), expected.recall_on_the_day) == (0, [], 0.0)
    assert policy.deadline is None


def test_a_day_that_has_passed_leaves_fsrs_alone(database: Database, content: Catalogue, clock: Clock) -> None:
    _set(database, content, 2, 20, clock.now)
    _answer_all(database, content, clock.now)
    later = clock.advance(days=5)
    with database.write() as session:
        preparation.plan_day(session, 1, content, moment_at(later))
        expected = preparation.forecast(session, 1, content, moment_at(later))
    assert expected is not None
    assert expected.days_left == 0
    assert all(each.available_at == each.due_at for each in _states(database).values())


def test_what_does_not_fit_is_named_and_comes_last(database: Database, content: Catalogue) -> None:
    _set(database, content, 5, 10, NOW)
    with database.read() as session:
        expected = preparation.forecast(session, 1, content, moment_at(NOW))
        found = preparation.find(session, 1)
    assert expected is not None
    assert found is not None
    assert 0 < expected.met_on_the_day < len(content.cards) / 2
    assert len(expected.left_out) == len(content.cards) - expected.met_on_the_day
    assert list(expected.left_out) == found.card_order[expected.met_on_the_day :]


@pytest.mark.slow
def test_other_minutes_for_the_same_day_keep_the_start(database: Database, content: Catalogue, clock: Clock) -> None:
    _set(database, content, 10, 20, clock.now)
    clock.advance(days=2)
    _set(database, content, 8, 40, clock.now)
    with database.read() as session:
        kept = preparation.find(session, 1)
    assert kept is not None
    assert (kept.started_on, kept.minutes_per_day) == (TODAY, 40)
    _set(database, content, 5, 40, clock.now)
    with database.read() as session:
        moved = preparation.find(session, 1)
    assert moved is not None
    assert moved.started_on == TODAY + timedelta(days=2)
    with database.read() as session:
        assert session.scalar(select(Review)) is None
