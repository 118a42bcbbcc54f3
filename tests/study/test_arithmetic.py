"""The second writing of FSRS-6 equals py-fsrs bit for bit, whatever the history and the parameters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fsrs import Card, Rating, Scheduler
from fsrs.scheduler import LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS
from hypothesis import given, settings
from hypothesis import strategies as st

from app.study.fsrs.arithmetic import arithmetic_of, retention_term
from app.study.fsrs.parameters import DEFAULT

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BOUNDS = zip(LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS, strict=True)
PARAMETERS = st.one_of(st.just(DEFAULT), st.tuples(*(st.floats(low, high) for low, high in BOUNDS)))
HISTORIES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 400)), min_size=1, max_size=20)


@settings(max_examples=300, deadline=None)
@given(parameters=PARAMETERS, history=HISTORIES, retention=st.floats(0.70, 0.97))
def test_every_step_is_that_of_py_fsrs(
    parameters: tuple[float, ...], history: list[tuple[int, int]], retention: float
) -> None:
    scheduler = Scheduler(parameters, retention, enable_fuzzing=False)
    mine, term = arithmetic_of(parameters), retention_term(parameters, retention)
    card, at = Card(card_id=1, due=NOW), NOW
    stability = difficulty = 0.0
    state, step = 1, 0
    for index, (rating, days) in enumerate(history):
        at += timedelta(days=days if index else 0)
        try:
            card, _ = scheduler.review_card(card, Rating(rating), at)
        except (OverflowError, ZeroDivisionError):
            return  # parameters at their bounds can grow beyond floats in py-fsrs itself
        if index == 0:
            stability, difficulty = mine.first(rating)
        else:
            stability, difficulty = mine.next(stability, difficulty, days, rating)
        state, step, seconds = mine.delay_seconds(state, step, rating)
        assert (stability, difficulty) == (card.stability, card.difficulty)
        assert (state, step) == (card.state.value, card.step)
        delay = timedelta(days=mine.days(stability, term)) if seconds is None else timedelta(seconds=seconds)
        assert delay == card.due - at
