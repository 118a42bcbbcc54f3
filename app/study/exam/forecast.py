"""Living through the days until an interview, many times over: what a rule of app.study.exam leads to. Pure.

What a learner believes (the scheduler's parameters) and how memory really is are two sets of parameters here; for a
forecast they are the same, in the benchmark they are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.study.exam.strategy import FIRST_RATINGS, HELD_RATINGS, Cards, Mask, Rule
from app.study.fsrs import memory_model as model
from app.study.fsrs.memory_model import Numbers

Ratings = NDArray[np.int64]


@dataclass(frozen=True)
class Course:
    """What happened to each simulated learner. Answers count every button pressed, learning steps included."""

    recall: Numbers  # (learners,): mean over all cards on the day, 0 for those never met
    met: Numbers  # (learners,): cards met
    answers: Numbers  # (learners, days)
    new: Numbers  # (learners, days)
    card_recall: Numbers  # (cards,): mean over the learners on the day


def live_through(
    rule: Rule,
    cards: Cards,
    days: int,
    answers_per_day: float,
    believed: Numbers,
    true: Numbers,
    rng: np.random.Generator,
) -> Course:
    """Follow `rule` from day 0 to the day before day `days`; `cards` say what is remembered on day 0."""
    belief = cards.copy()
    truth = belief if true is believed else cards.copy()
    learners = len(cards.met)
    answers, new = np.zeros((learners, days)), np.zeros((learners, days))
    for today in range(days):
        chosen = rule(believed, belief, today, days, answers_per_day)
        meets = ~belief.met & (np.cumsum(~belief.met, axis=1) <= chosen.new[:, np.newaxis])
        rating = _ratings(truth.recall(true, today), rng)
        first = 1 + _drawn(FIRST_RATINGS, cards.met.shape, rng)
        for w, memory in ((believed, belief),) if truth is belief else ((believed, belief), (true, truth)):
            _learn(w, memory, meets, first, today)
            _review(w, memory, chosen.reviews, rating, today)
        cost = np.where(rating == model.AGAIN, model.LAPSE_ANSWERS, 1.0)
        answers[:, today] = (chosen.reviews * cost + meets * model.FIRST_SESSION_ANSWERS[first - 1]).sum(axis=1)
        new[:, today] = meets.sum(axis=1)
    on_the_day = truth.recall(true, days)
    return Course(on_the_day.mean(axis=1), truth.met.sum(axis=1), answers, new, on_the_day.mean(axis=0))


def _ratings(recall: Numbers, rng: np.random.Generator) -> Ratings:
    held = rng.random(recall.shape) < recall
    return np.where(held, 2 + _drawn(HELD_RATINGS, recall.shape, rng), model.AGAIN)


def _drawn(chances: Numbers, shape: tuple[int, ...], rng: np.random.Generator) -> Ratings:
    """Indices drawn with `chances`, which sum to 1."""
    found: Ratings = np.searchsorted(np.cumsum(chances)[:-1], rng.random(shape), side="right")
    return found


def _learn(w: Numbers, cards: Cards, meets: Mask, rating: Ratings, today: int) -> None:
    _keep(cards, meets, model.learn(w, rating), today)
    cards.met |= meets


def _review(w: Numbers, cards: Cards, which: Mask, rating: Ratings, today: int) -> None:
    since = np.maximum(1, today - cards.last_day)
    _keep(cards, which, model.review(w, cards.stability, cards.difficulty, since, rating), today)


def _keep(cards: Cards, which: Mask, memory: tuple[Numbers, Numbers], today: int) -> None:
    cards.stability = np.where(which, memory[0], cards.stability)
    cards.difficulty = np.where(which, memory[1], cards.difficulty)
    cards.last_day = np.where(which, today, cards.last_day)
