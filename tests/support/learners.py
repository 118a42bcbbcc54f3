"""Learners as they differ: FSRS-6 parameters drawn from the published spread.

Centre: the default parameters of FSRS-6, the medians over about ten thousand users of Anki (py-fsrs, fsrs-rs). Spread:
the standard deviation of each fitted parameter over the same users, published as `PARAMS_STDDEV` in fsrs-rs
(src/training.rs) and `DEFAULT_PARAMS_STDDEV_TENSOR` in fsrs-optimizer, where it scales the L2 penalty.

How it is drawn: first stabilities and decay, whose deviation exceeds their median, from a log-normal with that median
and deviation; the others from a normal; all clipped to py-fsrs's bounds. Correlations are not published: each parameter
is drawn on its own, but for the four first stabilities, which share one draw (who remembers longer after Good does so
after Easy too, and a better first answer never means a shorter memory).
"""

from __future__ import annotations

import numpy as np
from fsrs.scheduler import LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS

from app.study.exam.strategy import Cards
from app.study.fsrs.memory_model import Numbers
from app.study.fsrs.parameters import DEFAULT

SPREAD = (
    6.43,
    9.66,
    17.58,
    27.85,
    0.57,
    0.28,
    0.6,
    0.12,
    0.39,
    0.18,
    0.33,
    0.3,
    0.09,
    0.16,
    0.57,
    0.25,
    1.03,
    0.31,
    0.32,
    0.14,
    0.27,
)
FIRST_STABILITIES, DECAY = (0, 1, 2, 3), 20


def draw_parameters(learners: int, rng: np.random.Generator) -> Numbers:
    """Parameters of `learners` learners, shape (learners, 21)."""
    drawn = np.array(DEFAULT) + np.array(SPREAD) * rng.standard_normal((learners, len(DEFAULT)))
    shared = rng.standard_normal(learners)
    for index in (*FIRST_STABILITIES, DECAY):
        median, deviation = DEFAULT[index], SPREAD[index]
        # of a log-normal: deviation² = median² · x (x − 1), where x = exp(sigma²)
        x = (1 + np.sqrt(1 + 4 * (deviation / median) ** 2)) / 2
        draw = rng.standard_normal(learners) if index == DECAY else shared
        drawn[:, index] = median * np.exp(np.sqrt(np.log(x)) * draw)
    drawn = np.clip(drawn, LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS)
    drawn[:, :4] = np.maximum.accumulate(drawn[:, :4], axis=1)
    return drawn


def new_cards(learners: int, cards: int) -> Cards:
    """Cards nobody has met."""
    shape = (learners, cards)
    return Cards(np.ones(shape), np.full(shape, 5.0), np.zeros(shape), np.zeros(shape, dtype=bool))
