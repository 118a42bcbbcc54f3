"""Parameters of a learner's own: when a fit is asked for, how it is judged, and what is used."""

from __future__ import annotations

from datetime import timedelta
from math import log

import pytest
from sqlalchemy import insert

from app.core.db import Database
from app.core.errors import DomainError
from app.study import personal
from app.study.fsrs import losses
from app.study.fsrs.losses import Comparison, History
from app.study.fsrs.parameters import DEFAULT, DEFAULT_ID
from app.study.models import ParameterFit, Review
from app.study.policy import policy_for
from tests.conftest import NOW, moment_at

OTHER = (*DEFAULT[:2], 4.0, *DEFAULT[3:])


def _review(day: int, phase: int = 2, card: str = "C01") -> dict[str, object]:
    at = NOW - timedelta(days=day)
    return {
        "learner_id": 1,
        "card_id": card,
        "revision": 1,
        "level": 4,
        "rating": 3,
        "reviewed_at": at,
        "due_at": at,
        "memory_before": None,
        "memory_after": {},
        "time_zone": "UTC",
        "day_starts_hour": 4,
        "scheduler": "x",
        "parameters_id": DEFAULT_ID,
        "phase": phase,
    }


def _fill(database: Database, known: int) -> None:
    with database.write() as session:
        session.execute(insert(Review), [_review(known - each) for each in range(known)])


def _finish(database: Database, default: float, fitted: float) -> ParameterFit:
    with database.write() as session:
        personal.ask(session, 1, NOW)
        fit_id = personal.claim_next(session, NOW)
        assert fit_id is not None
        return personal.finish(session, fit_id, OTHER, Comparison(200, default, fitted, 0.01), NOW)


def test_too_few_reviews_are_refused_with_how_many_it_takes(database: Database) -> None:
    _fill(database, 10)
    with database.write() as session, pytest.raises(DomainError, match=r"There are 10 reviews.*needs 640"):
        personal.ask(session, 1, NOW)


def test_a_better_fit_is_used_from_then_on_and_a_worse_one_never(database: Database) -> None:
    _fill(database, personal.FEWEST)
    worse = _finish(database, 0.30, 0.31)
    assert not worse.is_used
    with database.read() as session:
        assert policy_for(session, 1, moment_at(NOW)).parameters_id == DEFAULT_ID
    better = _finish(database, 0.30, 0.29)
    assert better.is_used
    with database.read() as session:
        policy = policy_for(session, 1, moment_at(NOW))
        assert policy.parameters == OTHER
        assert policy.parameters_id == better.parameters_id != DEFAULT_ID
    _finish(database, 0.30, 0.32)
    with database.read() as session:
        assert policy_for(session, 1, moment_at(NOW)).parameters_id == DEFAULT_ID, (
            "a later fit that loses to the default ends it"
        )


def test_asking_twice_asks_once_and_a_fit_is_claimed_once(database: Database) -> None:
    _fill(database, personal.FEWEST)
    with database.write() as session:
        personal.ask(session, 1, NOW)
        personal.ask(session, 1, NOW)
    with database.write() as session:
        first, second = personal.claim_next(session, NOW), personal.claim_next(session, NOW)
    assert first is not None
    assert second is None


def test_a_fit_that_left_no_word_is_given_up_and_may_be_asked_for_again(database: Database) -> None:
    _fill(database, personal.FEWEST)
    with database.write() as session:
        personal.ask(session, 1, NOW)
        personal.claim_next(session, NOW)
        personal.give_up_on_stale(session, NOW + timedelta(hours=1))
        assert personal.standing(session, 1).open is not None
        personal.give_up_on_stale(session, NOW + timedelta(hours=4))
        found = personal.standing(session, 1)
        assert found.open is None
        assert found.last is not None
        assert "three hours" in (found.last.failure or "")


def test_fits_are_asked_for_when_the_log_has_grown_and_not_before(database: Database) -> None:
    with database.write() as session:
        assert personal.ask_where_due(session, NOW) == 0
    _fill(database, personal.FEWEST)
    with database.write() as session:
        assert personal.ask_where_due(session, NOW) == 1
        assert personal.ask_where_due(session, NOW) == 0, "one is under way"
        fit_id = personal.claim_next(session, NOW)
        assert fit_id is not None
        personal.fail(session, fit_id, "x", NOW)
        assert personal.ask_where_due(session, NOW + timedelta(days=20)) == 0, "nothing new to learn from"
    _fill(database, 200)
    with database.write() as session:
        assert personal.ask_where_due(session, NOW + timedelta(days=2)) == 0
        assert personal.ask_where_due(session, NOW + timedelta(days=20)) == 1


def test_reviews_are_split_by_time_and_only_later_days_count() -> None:
    history = History([3, 3, 3, 1], [10, 10, 12, 20])
    assert history.later == [12, 20]
    assert losses.split_day([history] * 10) == 20
    assert history.until(12).days == [10, 10]
    logs = losses.review_logs([history])
    assert [(each.review_datetime - logs[0].review_datetime).days for each in logs] == [0, 0, 2, 10]


def test_the_loss_of_a_review_is_what_was_predicted_for_it() -> None:
    one = History([4, 3], [100, 108])
    stability = DEFAULT[3]
    factor = 0.9 ** (-1 / DEFAULT[20]) - 1
    chance = (1 + factor * 8 / stability) ** -DEFAULT[20]
    assert losses.losses([one], 101, DEFAULT) == pytest.approx([-log(chance)])
    assert losses.losses([History([4, 1], [100, 108])], 101, DEFAULT) == pytest.approx([-log(1 - chance)])
    assert losses.losses([one], 109, DEFAULT) == []


def test_a_memory_that_holds_longer_is_predicted_better_by_longer_stabilities() -> None:
    stable = [History([3, 3], [100, 130]) for _ in range(50)]
    longer = (*DEFAULT[:2], 60.0, 61.0, *DEFAULT[4:])
    found = losses.compare(stable, 101, longer)
    assert found.held_out == 50
    assert found.fitted < found.default
    with pytest.raises(ValueError, match="no review"):
        losses.compare(stable, 500, longer)
