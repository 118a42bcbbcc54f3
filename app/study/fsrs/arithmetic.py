"""FSRS-6's memory arithmetic written out a second time, for checking a log: the same operations in the same order as
py-fsrs 6, so that the results are equal bit for bit, without its copies and objects.

Reviews are scheduled by py-fsrs itself; a test holds the two together over random histories and parameters. Formulas:
the FSRS-6 algorithm as published by open-spaced-repetition.
"""

from __future__ import annotations

import math
from functools import lru_cache

from app.study.fsrs.parameters import Parameters
from app.study.fsrs.scheduling import KNOWN, scheduler_of

AGAIN, HARD, GOOD, EASY = 1, 2, 3, 4
LEARNING, RELEARNING = 1, 3
_SHORTEST_STABILITY = 0.001

Memory = tuple[int, int | None, float, float]  # state, step, stability in days, difficulty in 1..10


class Arithmetic:
    """The formulas with one set of parameters."""

    def __init__(self, parameters: Parameters) -> None:
        self.w = parameters
        scheduler = scheduler_of(parameters, 0.9)
        self.learning = [step.total_seconds() for step in scheduler.learning_steps]
        self.relearning = [step.total_seconds() for step in scheduler.relearning_steps]
        self.longest_days = scheduler.maximum_interval
        self.decay = -parameters[20]
        self.factor = 0.9 ** (1 / self.decay) - 1
        self._easy_difficulty = parameters[4] - (math.e ** (parameters[5] * 3)) + 1

    def first(self, rating: int) -> tuple[float, float]:
        """Stability and difficulty after a first answer."""
        w = self.w
        difficulty = w[4] - (math.e ** (w[5] * (rating - 1))) + 1
        return max(w[rating - 1], _SHORTEST_STABILITY), min(max(difficulty, 1.0), 10.0)

    def next(self, stability: float, difficulty: float, elapsed_days: int, rating: int) -> tuple[float, float]:
        """Stability and difficulty after a later answer."""
        w = self.w
        if elapsed_days < 1:
            stability = self._same_day(stability, rating)
        else:
            recall = (1 + self.factor * elapsed_days / stability) ** self.decay
            stability = max(self._next_day(difficulty, stability, recall, rating), _SHORTEST_STABILITY)
        delta = -(w[6] * (rating - 3))
        damped = difficulty + (10.0 - difficulty) * delta / 9.0
        reverted = w[7] * self._easy_difficulty + (1 - w[7]) * damped
        return stability, min(max(reverted, 1.0), 10.0)

    def days(self, stability: float, term: float) -> int:
        """The interval in whole days; `term` is the `retention_term` of the desired retention."""
        wanted: int = round((stability / self.factor) * term)
        return min(max(wanted, 1), self.longest_days)

    def delay_seconds(self, state: int, step: int | None, rating: int) -> tuple[int, int | None, float | None]:
        """State and step after a rating, and the seconds until the next step; None once days count."""
        if state == KNOWN:
            return (RELEARNING, 0, self.relearning[0]) if rating == AGAIN and self.relearning else (KNOWN, None, None)
        steps = self.learning if state == LEARNING else self.relearning
        at = step or 0
        if steps and rating == AGAIN:
            return state, 0, steps[0]
        if at >= len(steps) or rating == EASY or (rating == GOOD and at + 1 == len(steps)):
            return KNOWN, None, None
        return (state, at, self._hard_delay(steps, at)) if rating == HARD else (state, at + 1, steps[at + 1])

    @staticmethod
    def _hard_delay(steps: list[float], at: int) -> float:
        if at:
            return steps[at]
        return steps[0] * 1.5 if len(steps) == 1 else (steps[0] + steps[1]) / 2.0

    def _same_day(self, stability: float, rating: int) -> float:
        w = self.w
        growth: float = (math.e ** (w[17] * (rating - 3 + w[18]))) * (stability ** -w[19])
        if rating != AGAIN:
            growth = max(growth, 1.0)
        return max(stability * growth, _SHORTEST_STABILITY)

    def _next_day(self, difficulty: float, stability: float, recall: float, rating: int) -> float:
        w = self.w
        if rating == AGAIN:
            long_term: float = (
                w[11] * (difficulty ** -w[12]) * (((stability + 1) ** (w[13])) - 1) * (math.e ** ((1 - recall) * w[14]))
            )
            short_term: float = stability / (math.e ** (w[17] * w[18]))
            return min(long_term, short_term)
        hard = w[15] if rating == HARD else 1
        easy = w[16] if rating == EASY else 1
        growth: float = (
            (math.e ** (w[8]))
            * (11 - difficulty)
            * (stability ** -w[9])
            * ((math.e ** ((1 - recall) * w[10])) - 1)
            * hard
            * easy
        )
        return stability * (1 + growth)


@lru_cache(maxsize=64)
def arithmetic_of(parameters: Parameters) -> Arithmetic:
    return Arithmetic(parameters)


@lru_cache(maxsize=256)
def retention_term(parameters: Parameters, desired_retention: float) -> float:
    """What the desired retention contributes to an interval."""
    term: float = (desired_retention ** (1 / -parameters[20])) - 1
    return term
