"""The array formulas against py-fsrs, and their shapes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from fsrs import Card, Rating, Scheduler, State
from fsrs.scheduler import DEFAULT_PARAMETERS, LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS
from hypothesis import given, settings
from hypothesis import strategies as st

from app.study.fsrs import memory_model as model

START = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = tuple(value * 1.3 if index in (2, 8, 14, 17) else value for index, value in enumerate(DEFAULT_PARAMETERS))


BOUNDS = zip(LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS, strict=True)
PARAMETERS = st.one_of(st.just(DEFAULT_PARAMETERS), st.tuples(*(st.floats(low, high) for low, high in BOUNDS)))
HISTORIES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 400)), min_size=1, max_size=20)
CLOSE = 1e-9  # relative: the same formulas, but NumPy's exp and power may differ in the last digits
LONGEST_DAYS = Scheduler().maximum_interval


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(parameters=PARAMETERS, history=HISTORIES, retention=st.floats(0.70, 0.97))
def test_every_review_is_that_of_py_fsrs(
    parameters: tuple[float, ...], history: list[tuple[int, int]], retention: float
) -> None:
    """Stability, difficulty, retrievability and interval after every answer, for any parameters and any history."""
    scheduler = Scheduler(parameters, retention, enable_fuzzing=False)
    w = model.parameters(parameters)
    card, at = Card(card_id=1, due=START), START
    for index, (rating, days) in enumerate(history):
        at += timedelta(days=days if index else 0)
        before = card
        try:
            card, _ = scheduler.review_card(card, Rating(rating), at)
        except (OverflowError, ZeroDivisionError):
            return  # parameters at their bounds can grow beyond floats in py-fsrs itself
        if before.stability is None or before.difficulty is None:
            stability, difficulty = model.first(w, rating)
        elif days < 1:
            stability, difficulty = model.same_day(w, before.stability, before.difficulty, rating)
        else:
            recalled = scheduler.get_card_retrievability(before, at)
            assert model.recall(w, before.stability, days) == pytest.approx(recalled, rel=CLOSE)
            stability, difficulty = model.later(w, before.stability, before.difficulty, days, rating)
        assert (stability, difficulty) == pytest.approx((card.stability, card.difficulty), rel=CLOSE)
        if card.state.name == "Review":
            assert card.stability is not None
            # apart only where the exact interval lies on the half between two days
            fewest, most = (
                min(float(model.interval_days(w, card.stability * share, retention)), LONGEST_DAYS)
                for share in (1 - CLOSE, 1 + CLOSE)
            )
            assert fewest <= (card.due - at).days <= most


def _py_fsrs(parameters: tuple[float, ...], sessions: list[tuple[int, int]]) -> Card:
    """Sessions of (day, rating), each ended with Good until the card is in review."""
    scheduler = Scheduler(parameters, enable_fuzzing=False)
    card = Card(card_id=1)
    for day, rating in sessions:
        now = START + timedelta(days=day)
        card, _ = scheduler.review_card(card, Rating(rating), now)
        while card.state.name != "Review":
            now += timedelta(minutes=10)
            card, _ = scheduler.review_card(card, Rating.Good, now)
        card.last_review = START + timedelta(days=day)  # days are whole here, as study days are
    return card


@pytest.mark.parametrize("parameters", [DEFAULT_PARAMETERS, OTHER])
@pytest.mark.parametrize("first", [1, 2, 3, 4])
@pytest.mark.parametrize("then", [(3, 3), (1, 4), (2, 1), (4, 2)])
def test_sessions_end_as_py_fsrs_ends_them(parameters: tuple[float, ...], first: int, then: tuple[int, int]) -> None:
    expected = _py_fsrs(parameters, [(0, first), (4, then[0]), (19, then[1])])
    w = model.parameters(parameters)
    s, d = model.learn(w, first)
    s, d = model.review(w, s, d, 4, then[0])
    s, d = model.review(w, s, d, 15, then[1])
    assert s == pytest.approx(expected.stability, rel=1e-12)
    assert d == pytest.approx(expected.difficulty, rel=1e-12)
    scheduler = Scheduler(parameters, enable_fuzzing=False)
    at = START + timedelta(days=60)
    assert model.recall(w, s, 41) == pytest.approx(scheduler.get_card_retrievability(expected, at), rel=1e-12)


@pytest.mark.parametrize("retention", [0.7, 0.9, 0.97])
@pytest.mark.parametrize("stability", [0.2, 3.7, 180.0])
def test_intervals_are_those_of_py_fsrs(retention: float, stability: float) -> None:
    scheduler = Scheduler(desired_retention=retention, enable_fuzzing=False)
    w = model.parameters(DEFAULT_PARAMETERS)
    assert model.interval_days(w, stability, retention) == scheduler._next_interval(stability=stability)


@pytest.mark.parametrize("rating", [1, 2, 3, 4])
def test_the_answers_of_a_first_session_are_counted_as_the_learning_steps_ask(rating: int) -> None:
    scheduler = Scheduler(enable_fuzzing=False)
    card, _ = scheduler.review_card(Card(card_id=1), Rating(rating), START)
    answers = 1
    while card.state.name != "Review":
        card, _ = scheduler.review_card(card, Rating.Good, card.due)
        answers += 1
    assert model.FIRST_SESSION_ANSWERS[rating - 1] == answers


def test_each_learner_may_have_a_memory_of_its_own() -> None:
    both = model.parameters(np.array([DEFAULT_PARAMETERS, OTHER]))
    ratings = np.array([[1, 3, 4], [1, 3, 4]])
    stability, difficulty = model.learn(both, ratings)
    assert stability.shape == difficulty.shape == (2, 3)
    alone = model.learn(model.parameters(OTHER), ratings[1])
    np.testing.assert_allclose(stability[1], alone[0], rtol=1e-14)
    np.testing.assert_allclose(difficulty[1], alone[1], rtol=1e-14)


@pytest.mark.parametrize("first", list(Rating))
def test_a_new_card_takes_as_many_answers_as_py_fsrs_asks_for(first: Rating) -> None:
    """Each when it is due, Good after the first, until it is known."""
    scheduler, card, answers = Scheduler(enable_fuzzing=False), Card(card_id=1, due=START), 0
    while card.state is not State.Review:
        card, _ = scheduler.review_card(card, Rating.Good if answers else first, card.due)
        answers += 1
    assert model.FIRST_SESSION_ANSWERS[first - 1] == answers


def test_a_lapse_takes_as_many_answers_as_py_fsrs_asks_for() -> None:
    scheduler = Scheduler(enable_fuzzing=False)
    card, _ = scheduler.review_card(Card(card_id=1, due=START), Rating.Easy, START)
    card, _ = scheduler.review_card(card, Rating.Again, card.due)
    answers = 1
    while card.state is not State.Review:
        card, _ = scheduler.review_card(card, Rating.Good, card.due)
        answers += 1
    assert answers == model.LAPSE_ANSWERS
