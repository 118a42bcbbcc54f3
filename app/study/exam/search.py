"""Which strategy to prepare with: several are lived through in simulation, and the best one is kept. Pure.

The best is the one with the highest expected recall on the day among those that ask for no more answers than FSRS at
90 % would within the same minutes, at a pace that meets every card. More answers could always buy a little more; nobody
wants to be asked for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

import numpy as np

from app.study.exam.forecast import Course, live_through
from app.study.exam.strategy import FIRST_ANSWERS, Cards, Rule, Strategy, plain, planned
from app.study.fsrs.memory_model import Numbers

PLAIN_NEW_PER_DAY = 12
PLAIN_FINISH = 0.6  # share of the time in which FSRS without a date is given to meet every card
LEARNERS = 8
LONG_DAYS, LONG_LEARNERS = 60, 4  # further ahead, days are many and each says less
MOST_CARDS, LONG_CARDS = 300, 100  # more of the same say no more about a strategy
MARGIN = 0.97  # of plain FSRS's answers: what was found in one simulation must hold in another
SHORT_DAYS = 7  # with so few, a margin would cost a card
FILLED = 0.85
_RETENTIONS = (0.7, 0.75, 0.8, 0.85, 0.9)
_FINISHES, _LONG_FINISHES = (0.3, 0.45, 0.6, 0.75), (0.45, 0.6)  # a card met later has no time to surprise
_SEED = 20260301


@dataclass(frozen=True)
class Choice:
    """The strategy kept, what it is expected to lead to, and what FSRS at 90 % would within the same minutes.

    None means that none was better than plain FSRS: with a day or two and few minutes there is nothing to arrange.
    """

    strategy: Strategy | None
    course: Course
    plain: Course


def choose_strategy(w: Numbers, cards: Cards, days: int, answers_per_day: float) -> Choice:
    """Try paces with retentions, then the other fields one at a time. `cards` are one learner's, shape (1, cards)."""
    sample, share = _sample(cards, MOST_CARDS if days <= LONG_DAYS else LONG_CARDS)
    answers = answers_per_day * share
    base = live(plain(plain_pace(sample, days)), w, sample, days, answers)
    limit = _limit(float(base.answers.sum(axis=1).mean()), days, answers * days)
    tried: dict[Strategy, tuple[bool, float]] = {}

    def score(strategy: Strategy) -> tuple[bool, float]:
        if strategy not in tried:
            course = live(planned(strategy, 0), w, sample, days, answers)
            asked = course.answers.sum(axis=1).mean()
            tried[strategy] = (True, float(course.recall.mean())) if asked <= limit else (False, -float(asked))
        return tried[strategy]

    best = Strategy()
    tight = float((~sample.met).sum()) * (FIRST_ANSWERS + 2) > answers * days
    paces = _FINISHES if days <= LONG_DAYS else _LONG_FINISHES
    shares = (Strategy.new_share, 0.85, 1.0) if tight else (Strategy.new_share,)
    for candidates in (lambda each: _paced(each, paces, shares), _gains, *((_takes,) if tight else ())):
        best = max([best, *candidates(best)], key=score)
    course = live(planned(best, 0), w, cards, days, answers_per_day)
    whole = base if share == 1 else live(plain(plain_pace(cards, days)), w, cards, days, answers_per_day)
    if course.recall.mean() < whole.recall.mean():
        return Choice(None, whole, whole)
    return Choice(best, course, whole)


def rule_of(strategy: Strategy | None, cards: Cards, days: int, start: int = 0) -> Rule:
    """The rule to follow: a strategy's that began on day `start`, or plain FSRS."""
    return plain(plain_pace(cards, days)) if strategy is None else planned(strategy, start)


def live(rule: Rule, w: Numbers, cards: Cards, days: int, answers_per_day: float) -> Course:
    """The expected course of one learner's preparation, over `LEARNERS` simulated ones."""
    many = cards.copy(LEARNERS if days <= LONG_DAYS else LONG_LEARNERS)
    return live_through(rule, many, days, answers_per_day, w, w, np.random.default_rng(_SEED))


def _limit(plain_answers: float, days: int, possible: float) -> float:
    """Answers a strategy may ask for. Where even plain FSRS fills the minutes, the minutes are the limit."""
    if plain_answers > FILLED * possible:
        return possible
    return plain_answers * (MARGIN if days > SHORT_DAYS else 1)


def plain_pace(cards: Cards, days: int) -> int:
    """New cards a day for FSRS without a date: the usual number, or as many as meet every card in time."""
    return max(PLAIN_NEW_PER_DAY, ceil(int((~cards.met[0]).sum()) / max(1.0, PLAIN_FINISH * days)))


def _sample(cards: Cards, most: int) -> tuple[Cards, float]:
    """Evenly chosen cards, and which share of all they are."""
    count = cards.met.shape[1]
    if count <= most:
        return cards, 1.0
    return cards.only(np.linspace(0, count - 1, most).round().astype(int)), most / count


def _paced(strategy: Strategy, finishes: Iterable[float], shares: Iterable[float]) -> Iterable[Strategy]:
    for retention, finish, share in product(_RETENTIONS, finishes, shares):
        yield replace(strategy, retention=retention, finish=finish, new_share=share)


def _gains(strategy: Strategy) -> Iterable[Strategy]:
    return (replace(strategy, least_gain=each) for each in (0.005, 0.01, 0.03, 0.06))


def _takes(strategy: Strategy) -> Iterable[Strategy]:
    return (replace(strategy, takes=each) for each in (0.5, 0.65, 0.8, 0.9))
