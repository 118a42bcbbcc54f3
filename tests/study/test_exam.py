"""Preparing for a date: what is asked on which day, and that it pays."""

from __future__ import annotations

import numpy as np
import pytest

from app.study.exam.forecast import live_through
from app.study.exam.search import choose_strategy, live, plain_pace, rule_of
from app.study.exam.strategy import FIRST_ANSWERS, Cards, Strategy, plain, planned
from app.study.fsrs import memory_model as model
from app.study.fsrs.parameters import DEFAULT
from tests.support.learners import draw_parameters, new_cards

W = model.parameters(DEFAULT)


def _known(stability: list[float], last_day: float = 0) -> Cards:
    shape = (1, len(stability))
    return Cards(np.array([stability]), np.full(shape, 5.0), np.full(shape, last_day), np.ones(shape, dtype=bool))


def _reviewed_on(cards: Cards, days: int, answers: float, strategy: Strategy | None = None) -> list[list[int]]:
    """Which cards the rule asks for on each day, when every answer is right."""
    rule, found = planned(strategy or Strategy(), 0), []
    now = cards.copy()
    for today in range(1, days):
        chosen = rule(W, now, today, days, answers).reviews
        s, d = model.review(W, now.stability, now.difficulty, np.maximum(1, today - now.last_day), model.GOOD)
        now.stability, now.difficulty = np.where(chosen, s, now.stability), np.where(chosen, d, now.difficulty)
        now.last_day = np.where(chosen, today, now.last_day)
        found.append(np.flatnonzero(chosen[0]).tolist())
    return found


def test_with_time_to_spare_every_last_review_is_on_the_last_day() -> None:
    days = _reviewed_on(_known([30.0, 40.0, 50.0]), 12, answers=50)
    assert days == [[]] * 10 + [[0, 1, 2]]


def test_what_the_last_day_cannot_hold_is_done_before_by_the_cards_that_lose_least() -> None:
    days = _reviewed_on(_known([12.0, 15.0, 60.0, 20.0]), 6, answers=3, strategy=Strategy(0.5, least_gain=0.001))
    asked = [card for day in days for card in day]
    assert sorted(set(asked)) == [0, 1, 2, 3]
    assert asked[0] == 2, "the most stable card loses least by an early last review"
    assert days[:3] == [[]] * 3
    assert all(len(day) <= 2 for day in days)


def test_a_card_that_gains_too_little_is_left_alone() -> None:
    assert _reviewed_on(_known([5000.0]), 12, answers=50, strategy=Strategy(least_gain=0.02)) == [[]] * 11


def test_long_before_the_day_a_card_comes_back_when_it_fades_below_the_strategys_retention() -> None:
    days = _reviewed_on(_known([3.0]), 60, answers=50, strategy=Strategy(retention=0.8))
    first = next(index + 1 for index, day in enumerate(days) if day)
    assert model.recall(W, 3.0, first) < 0.8 <= model.recall(W, 3.0, first - 1)


def test_new_cards_are_met_in_order_and_evenly_over_their_part_of_the_time() -> None:
    course = live(planned(Strategy(finish=0.5), 0), W, new_cards(1, 40), 20, 100)
    assert course.new.mean(axis=0).tolist() == [4.0] * 10 + [0.0] * 10
    assert course.met.tolist() == [40.0] * 8


def test_answers_stay_within_the_minutes_on_average_and_no_minutes_means_no_answers() -> None:
    course = live(planned(Strategy(), 0), W, new_cards(1, 200), 15, 40)
    assert course.answers.mean(axis=0).max() <= 40 + 2 * FIRST_ANSWERS
    nothing = live(planned(Strategy(), 0), W, new_cards(1, 20), 15, 0)
    assert nothing.answers.sum() == 0
    assert nothing.recall.tolist() == [0.0] * 8


def test_with_no_day_left_the_forecast_is_what_is_remembered_now() -> None:
    cards = _known([10.0, 20.0], last_day=-5)
    course = live(planned(Strategy(), 0), W, cards, 0, 40)
    assert course.recall[0] == pytest.approx(model.recall(W, np.array([10.0, 20.0]), 5).mean())


def test_plain_fsrs_asks_for_a_card_on_the_day_py_fsrs_would() -> None:
    cards = _known([10.0])
    asked = [bool(plain(12)(W, cards, day, 99, 50).reviews[0, 0]) for day in range(1, 13)]
    assert asked.index(True) + 1 == 10, "at 90 % the interval is the stability"


def test_where_nothing_is_better_plain_fsrs_stays() -> None:
    choice = choose_strategy(W, new_cards(1, 20), 1, 5)
    assert choice.course.recall.mean() >= choice.plain.recall.mean()
    rule = rule_of(None, new_cards(1, 20), 1)
    assert rule(W, new_cards(1, 20), 0, 1, 5).new.tolist() == [2]


@pytest.mark.slow
@pytest.mark.parametrize(("days", "answers"), [(3, 40), (7, 70), (14, 60), (21, 50), (21, 12)])
def test_the_strategy_kept_is_believed_better_than_plain_fsrs_with_no_more_answers(days: int, answers: float) -> None:
    choice = choose_strategy(W, new_cards(1, 60), days, answers)
    assert choice.course.recall.mean() >= choice.plain.recall.mean()
    within_minutes = answers * days * len(choice.course.recall)
    assert choice.course.answers.sum() <= max(choice.plain.answers.sum(), within_minutes)
    if choice.plain.answers.sum() < 0.85 * within_minutes:
        assert choice.course.answers.sum() <= choice.plain.answers.sum()


@pytest.mark.slow
def test_it_holds_for_learners_whose_memory_is_not_what_is_believed() -> None:
    days, answers, cards = 21, 50, new_cards(60, 80)
    true = model.parameters(draw_parameters(60, np.random.default_rng(5)))
    choice = choose_strategy(W, new_cards(1, 80), days, answers)
    ours = live_through(rule_of(choice.strategy, cards, days), cards, days, answers, W, true, np.random.default_rng(6))
    base = live_through(plain(plain_pace(cards, days)), cards, days, answers, W, true, np.random.default_rng(7))
    assert ours.recall.mean() > base.recall.mean()
    assert ours.answers.sum() <= base.answers.sum()


def test_the_same_question_gets_the_same_answer() -> None:
    assert (
        choose_strategy(W, new_cards(1, 30), 10, 30).strategy == choose_strategy(W, new_cards(1, 30), 10, 30).strategy
    )


def test_the_drawn_learners_have_the_published_middle_and_stay_within_bounds() -> None:
    drawn = draw_parameters(4000, np.random.default_rng(1))
    assert drawn.shape == (4000, 21)
    assert np.median(drawn[:, 2]) == pytest.approx(DEFAULT[2], rel=0.25)
    assert drawn[:, 8].mean() == pytest.approx(DEFAULT[8], abs=0.05)
    assert drawn[:, 8].std() == pytest.approx(0.39, abs=0.03)
    assert (np.diff(drawn[:, :4], axis=1) >= 0).all()
