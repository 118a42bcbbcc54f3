"""FSRS-6 for many cards at once: py-fsrs's formulas on arrays, for looking ahead. Pure.

py-fsrs schedules; this answers "what would happen if" for thousands of simulated reviews in one call. A test holds the
two together. `w` is what `parameters` returns: 21 numbers, each of which broadcasts against the cards, so that each
simulated learner may have a memory of its own. Stabilities are days, ratings 1 (Again) to 4 (Easy), recall 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]

AGAIN, HARD, GOOD, EASY = 1, 2, 3, 4
LEAST_STABILITY_DAYS = 0.001
LEAST_DIFFICULTY, MOST_DIFFICULTY = 1.0, 10.0

# Answers until a new card leaves its learning steps (1 and 10 minutes), by its first rating, when all others are Good.
FIRST_SESSION_ANSWERS = np.array([3.0, 3.0, 2.0, 1.0])
LAPSE_ANSWERS = 2.0  # Again, and Good ten minutes later


def parameters(values: Sequence[float] | Numbers) -> Numbers:
    """FSRS parameters, ready to broadcast: shape (21,) for one memory, (21, learners, 1) for (learners, 21)."""
    given = np.asarray(values, dtype=np.float64)
    return given if given.ndim == 1 else given.T[:, :, np.newaxis]


def recall(w: Numbers, stability: ArrayLike, days: ArrayLike) -> Numbers:
    """Probability of recall `days` after the last review."""
    factor = 0.9 ** (-1 / w[20]) - 1
    since = np.maximum(0.0, days)
    found: Numbers = (1 + factor * since / np.asarray(stability)) ** -w[20]
    return found


def interval_days(w: Numbers, stability: ArrayLike, retention: float) -> Numbers:
    """Whole days until recall has fallen to `retention`, at least one."""
    factor = 0.9 ** (-1 / w[20]) - 1
    exact = np.asarray(stability) / factor * (retention ** (-1 / w[20]) - 1)
    found: Numbers = np.maximum(1.0, np.round(exact))
    return found


def first(w: Numbers, rating: ArrayLike) -> tuple[Numbers, Numbers]:
    """Stability and difficulty after the first answer to a new card."""
    given = np.asarray(rating)
    stability = np.choose(given - 1, [w[0], w[1], w[2], w[3]])
    return np.maximum(stability, LEAST_STABILITY_DAYS), _clamped(_first_difficulty(w, given))


def same_day(w: Numbers, stability: ArrayLike, difficulty: ArrayLike, rating: ArrayLike) -> tuple[Numbers, Numbers]:
    """Stability and difficulty after another answer on the same day."""
    given, before = np.asarray(rating), np.asarray(stability)
    growth = np.exp(w[17] * (given - 3 + w[18])) * before ** -w[19]
    growth = np.where(given > AGAIN, np.maximum(growth, 1.0), growth)
    return np.maximum(before * growth, LEAST_STABILITY_DAYS), next_difficulty(w, difficulty, given)


def later(
    w: Numbers, stability: ArrayLike, difficulty: ArrayLike, days: ArrayLike, rating: ArrayLike
) -> tuple[Numbers, Numbers]:
    """Stability and difficulty after an answer `days` (at least one) after the last."""
    s, d, given = np.asarray(stability), np.asarray(difficulty), np.asarray(rating)
    forgotten = 1 - recall(w, s, days)
    bonus = np.where(given == HARD, w[15], np.where(given == EASY, w[16], 1.0))
    held = s * (1 + np.exp(w[8]) * (11 - d) * s ** -w[9] * np.expm1(forgotten * w[10]) * bonus)
    lost = np.minimum(
        w[11] * d ** -w[12] * ((s + 1) ** w[13] - 1) * np.exp(forgotten * w[14]), s / np.exp(w[17] * w[18])
    )
    stability_after = np.maximum(np.where(given == AGAIN, lost, held), LEAST_STABILITY_DAYS)
    return stability_after, next_difficulty(w, d, given)


def next_difficulty(w: Numbers, difficulty: ArrayLike, rating: ArrayLike) -> Numbers:
    """Difficulty after an answer: pulled towards that of an easy card."""
    before = np.asarray(difficulty)
    moved = before + (10 - before) / 9 * -w[6] * (np.asarray(rating) - 3)
    return _clamped(w[7] * _first_difficulty(w, np.asarray(EASY)) + (1 - w[7]) * moved)


def learn(w: Numbers, rating: ArrayLike) -> tuple[Numbers, Numbers]:
    """A new card's whole first session: its first rating, then Good through the learning steps."""
    given = np.asarray(rating)
    stability, difficulty = first(w, given)
    for answers in (2, 3):
        more = FIRST_SESSION_ANSWERS[given - 1] >= answers
        s, d = same_day(w, stability, difficulty, GOOD)
        stability, difficulty = np.where(more, s, stability), np.where(more, d, difficulty)
    return stability, difficulty


def review(
    w: Numbers, stability: ArrayLike, difficulty: ArrayLike, days: ArrayLike, rating: ArrayLike
) -> tuple[Numbers, Numbers]:
    """A whole review session: the answer, and after Again the relearning step with Good."""
    given = np.asarray(rating)
    s, d = later(w, stability, difficulty, days, given)
    s_again, d_again = same_day(w, s, d, GOOD)
    return np.where(given == AGAIN, s_again, s), np.where(given == AGAIN, d_again, d)


def _first_difficulty(w: Numbers, rating: Numbers | NDArray[np.int64]) -> Numbers:
    found: Numbers = w[4] - np.exp(w[5] * (rating - 1)) + 1
    return found


def _clamped(difficulty: Numbers) -> Numbers:
    return np.clip(difficulty, LEAST_DIFFICULTY, MOST_DIFFICULTY)
