"""The log alone rebuilds every state, bit for bit, whatever clocks, zones, settings and undoing do in between."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError
from app.study import policy, queries, service
from app.study.fsrs import parameters
from app.study.log import replay
from app.study.models import CardState, Review
from tests.conftest import NOW, moment_at

ZONES = ("Europe/Berlin", "America/New_York", "Pacific/Auckland", "Asia/Kathmandu", "Antarctica/Troll", "UTC")
OTHER = tuple(value * 1.05 if i < 4 else value for i, value in enumerate(parameters.DEFAULT))


@pytest.fixture
def by_policy(monkeypatch: pytest.MonkeyPatch) -> Callable[[policy.Policy], None]:
    """Puts a policy in force."""

    def choose(chosen: policy.Policy) -> None:
        monkeypatch.setattr("app.study.service.policy_for", lambda *_: chosen)

    return choose


def answer(
    database: Database, content: Catalogue, card_id: str, level: int, now: datetime = NOW, zone: str = "UTC"
) -> Review:
    with database.write() as session:
        state = queries.find_state(session, 1, card_id)
        version = state.version if state else 0
        return service.submit_review(
            session,
            1,
            content,
            card_id=card_id,
            level=level,
            version=version,
            moment=moment_at(now, zone),
            elapsed_milliseconds=900,
        )


def check(database: Database) -> replay.Report:
    with database.read() as session:
        return replay.verify(session, 1)


def clean(database: Database) -> None:
    with database.engine.begin() as connection:
        for table in ("review", "card_state", "parameter_set"):
            connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608 - our own names


def snapshot(database: Database) -> dict[str, Any]:
    with database.read() as session:
        return {
            state.card_id: (state.memory, state.due_at, state.available_at, state.reviews, state.lapses, state.position)
            for state in queries.list_states(session, 1)
            if state.memory is not None
        }


STEP = st.tuples(
    st.sampled_from(["C61", "C62", "C27"]),
    st.integers(1, 5),
    st.floats(-400, 4000),
    st.sampled_from(ZONES),
    st.sampled_from(["answer", "answer", "answer", "answer", "undo", "parameters", "retention"]),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=1, max_size=25))
def test_any_life_replays(  # type: ignore[no-untyped-def]
    sqlite: Database, content: Catalogue, by_policy, steps: list[Any]
) -> None:
    """Hours pass or are taken back, zones change, answers are undone, parameters and retention change."""
    clean(sqlite)
    now, chosen, answered = NOW, policy.PLAIN, 0
    by_policy(chosen)
    for card_id, level, hours, zone, what in steps:
        now += timedelta(hours=hours)
        if what == "undo":
            with sqlite.write() as session:
                try:
                    service.undo(session, 1, now)
                    answered -= 1
                except DomainError:
                    assert answered == 0
        elif what == "parameters":
            values = OTHER if chosen.parameters == parameters.DEFAULT else parameters.DEFAULT
            chosen = dataclasses.replace(chosen, parameters=values, parameters_id=parameters.identify(values))
            by_policy(chosen)
        elif what == "retention":
            chosen = dataclasses.replace(chosen, desired_retention=0.70 + level / 20)
            by_policy(chosen)
        else:
            review = answer(sqlite, content, card_id, level, now, zone)
            answered += 1
            assert review.due_at > now, "nothing is scheduled in the past"
    report = check(sqlite)
    assert [str(each) for each in report.named] == []
    before = snapshot(sqlite)
    with sqlite.write() as session:
        assert replay.rebuild(session, 1) == 0
        session.execute(text("DELETE FROM card_state"))
    with sqlite.write() as session:
        replay.rebuild(session, 1)
    assert snapshot(sqlite) == before
    with sqlite.read() as session:
        standing = session.query(Review).filter(Review.undone_at.is_(None)).count()
    assert standing == answered, "no review was lost"


def _study_for_weeks(database: Database, content: Catalogue, days: int = 40) -> None:
    draw = random.Random(5)
    now = NOW
    for _ in range(days):
        for _ in range(4):
            with database.read() as session:
                desk = service.study(session, 1, content, moment_at(now))
            if desk.card is None:
                break
            answer(database, content, desk.card.card.id, draw.choice([1, 3, 4, 4, 4, 5]), now)
            now += timedelta(minutes=4)
        now += timedelta(hours=22)


@pytest.mark.slow
def test_weeks_of_study_replay_on_both_databases(database: Database, content: Catalogue) -> None:
    _study_for_weeks(database, content)
    report = check(database)
    assert report.mismatches == 0, [str(each) for each in report.named]
    assert report.reviews > 100


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("UPDATE review SET rating = 4 WHERE id = (SELECT min(id) FROM review WHERE rating = 3)", "memory_after"),
        ("UPDATE review SET desired_retention = 0.7 WHERE phase = 2 AND rating > 1", "due_at"),
        ("UPDATE review SET previous_id = NULL WHERE phase = 2", "memory_before"),
        ("UPDATE review SET parameters_id = 'fsrs-6-unknown' WHERE id = 3", "parameters_id"),
        ("UPDATE card_state SET reviews = reviews + 1", "reviews"),
        ("UPDATE card_state SET due_at = '2031-01-01 00:00:00.000000'", "due_at"),
        ("DELETE FROM card_state WHERE card_id = (SELECT min(card_id) FROM card_state)", "state"),
        ("DELETE FROM review WHERE id = (SELECT max(id) FROM review WHERE previous_id IS NOT NULL)", "memory"),
    ],
)
def test_whatever_is_changed_in_the_log_or_the_states_is_found(
    sqlite: Database, content: Catalogue, change: str, field: str
) -> None:
    _study_for_weeks(sqlite, content, 20)
    assert check(sqlite).mismatches == 0
    with sqlite.engine.begin() as connection:
        connection.execute(text(change))
    assert field in {each.field for each in check(sqlite).named}


def test_a_date_outside_of_the_range_is_found(sqlite: Database, content: Catalogue) -> None:
    _study_for_weeks(sqlite, content, 20)
    with sqlite.write() as session:
        review = session.query(Review).filter(Review.phase == 2, Review.rating > 1).first()
        assert review is not None
        review.due_at += timedelta(days=9)
        review.memory_after = {**review.memory_after, "due": review.due_at.isoformat()}
    assert "due_at" in {each.field for each in check(sqlite).named}


def test_an_old_log_is_checked_by_the_rules_it_was_written_by(sqlite: Database, content: Catalogue) -> None:
    """As the release before study days wrote it: py-fsrs on the clock."""
    from fsrs import Card, Rating, Scheduler

    scheduler, card, now, memory = Scheduler(enable_fuzzing=False), Card(card_id=0, due=NOW), NOW, None
    with sqlite.write() as session:
        for rating in (Rating.Good, Rating.Good, Rating.Easy):
            card, _ = scheduler.review_card(card, rating, now)
            after = {
                "state": card.state.value,
                "step": card.step,
                "stability": card.stability,
                "difficulty": card.difficulty,
                "due": card.due.isoformat(),
                "last_review": now.isoformat(),
            }
            session.add(
                Review(
                    learner_id=1,
                    card_id="C27",
                    revision=1,
                    level=4,
                    rating=int(rating),
                    reviewed_at=now,
                    due_at=card.due,
                    memory_before=memory,
                    memory_after=after,
                    time_zone="UTC",
                    day_starts_hour=4,
                    scheduler="py-fsrs 6.3.2",
                    parameters_id="fsrs-6-default",
                    phase=0 if memory is None else memory["state"],
                )
            )
            memory, now = after, card.due + timedelta(hours=5)
        replay.rebuild(session, 1)
    assert check(sqlite).mismatches == 0
    answer(sqlite, content, "C27", 4, now)
    assert [str(each) for each in check(sqlite).named] == [], "the new rules go on from there"


def test_undo_goes_back_sixty_answers_and_the_states_of_each_come_back(database: Database, content: Catalogue) -> None:
    states, now = [snapshot(database)], NOW
    for i in range(60):
        answer(database, content, ("C61", "C62", "C27")[i % 3], (4, 4, 5, 1, 3)[i % 5], now)
        states.append(snapshot(database))
        now += timedelta(hours=7)
    for expected in states[-2::-1]:
        with database.write() as session:  # a session of its own, as after a restart
            service.undo(session, 1, now)
        assert snapshot(database) == expected
    with database.write() as session, pytest.raises(DomainError):
        service.undo(session, 1, now)
    assert check(database).mismatches == 0


def test_new_parameters_go_back_to_a_cards_whole_history(sqlite: Database, content: Catalogue, by_policy) -> None:  # type: ignore[no-untyped-def]
    first = answer(sqlite, content, "C61", 5)
    later = datetime.fromisoformat(first.memory_after["due"]).astimezone(UTC)
    by_policy(policy.Policy(parameters=OTHER, parameters_id=parameters.identify(OTHER)))
    second = answer(sqlite, content, "C61", 4, later)
    assert second.memory_before is not None
    assert second.memory_before["stability"] == pytest.approx(first.memory_after["stability"] * 1.05)
    with sqlite.read() as session:
        assert queries.find_parameters(session, 1, second.parameters_id) == OTHER
        state = session.get(CardState, (1, "C61"))
        assert state is not None
        assert state.parameters_id == second.parameters_id
    assert check(sqlite).mismatches == 0
