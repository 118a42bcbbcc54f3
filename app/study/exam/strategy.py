"""What to study on a day so that recall on the day of an interview is highest. Pure; one or many simulated learners.

Three ideas. A card reviewed shortly before the day is recalled on the day, so every card that gains from it gets one
last review, as late as the minutes of the remaining days allow (the last pass). What was gained by reviewing earlier is
mostly gone by then, so before the last pass cards may fade further than FSRS's usual 90 % (they hold longer after each
answer, and cost fewer). And a card never met cannot be recalled at all: new cards go first, spread over the first part
of the time. How far, how much and how fast are a `Strategy`; app.study.exam.search tries several and keeps the best.

Every card weighs the same: nothing we know says which one will be asked. Days are study days counted from any start;
nothing is studied on the day itself. Arrays are (learners, cards), cards in the order they are to be introduced in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.study.fsrs import memory_model as model
from app.study.fsrs.memory_model import Numbers

Mask = NDArray[np.bool_]

# How people rate, over many users of Anki: the published defaults of fsrs-rs's simulator.
FIRST_RATINGS = np.array([0.24, 0.094, 0.495, 0.171])
HELD_RATINGS = np.array([0.224, 0.631, 0.145])
FIRST_ANSWERS = float(FIRST_RATINGS @ model.FIRST_SESSION_ANSWERS)  # expected answers to meet a card

SLACK = 0.9  # of the minutes of the days to come; the rest is for answers that go wrong


@dataclass
class Cards:
    """What is believed (or true) of each card's memory, shape (learners, cards). Where not met, numbers say nothing."""

    stability: Numbers
    difficulty: Numbers
    last_day: Numbers
    met: Mask

    def recall(self, w: Numbers, day: float) -> Numbers:
        """Chance of recall on a day, 0 for what was never met."""
        return np.where(self.met, model.recall(w, self.stability, day - self.last_day), 0.0)

    def copy(self, learners: int = 1) -> Cards:
        """The same, for `learners` times as many learners."""
        return self._mapped(lambda field: np.repeat(field, learners, axis=0))

    def only(self, which: NDArray[np.int64]) -> Cards:
        """Some of the cards."""
        return self._mapped(lambda field: field[:, which])

    def _mapped(self, change: Callable[[Any], Any]) -> Cards:
        return Cards(change(self.stability), change(self.difficulty), change(self.last_day), change(self.met))


@dataclass(frozen=True)
class Strategy:
    """How to prepare.

    `retention`: before the last pass, a card comes back when recall fell to this. `least_gain`: of recall on the day,
    per answer, for a last review to be asked. `finish`: share of the time after which all new cards were met.
    `new_share`: largest share of a day's answers for new cards; the rest keeps what was met. `takes`: share of all
    cards to take in at all.
    """

    retention: float = 0.8
    least_gain: float = 0.02
    finish: float = 0.6
    new_share: float = 0.7
    takes: float = 1.0


@dataclass(frozen=True)
class Day:
    """A day's choice: which cards to review, best first by `order`, and how many new cards to meet."""

    reviews: Mask
    order: Numbers
    new: NDArray[np.int64]


Rule = Callable[[Numbers, Cards, int, int, float], Day]


def planned(strategy: Strategy, start: int) -> Rule:
    """The rule of a strategy that began on day `start`; a rule takes w, cards, today, the day, and answers a day."""

    def rule(w: Numbers, cards: Cards, today: int, exam: int, answers: float) -> Day:
        new = _new_today(cards, today, exam, answers, strategy, start)
        left = np.maximum(0.0, answers - new * FIRST_ANSWERS)
        last, order, window = _last_pass(w, cards, today, exam, left, answers, strategy)
        now = cards.recall(w, today)
        cost = 2 - now
        spare = left - (last * cost).sum(axis=1)
        faded = cards.met & (now < strategy.retention) & ~last & (cards.last_day < today)
        faded &= (exam - today > window + 1)[:, np.newaxis]
        more = _cheapest(now, cost, faded, spare)
        return Day(last | more, np.where(last, order - 10, now), new)

    return rule


def plain(new_per_day: int, retention: float = 0.9) -> Rule:
    """FSRS as it is without a date: whatever is due at `retention`, longest overdue first, then new cards."""

    def rule(w: Numbers, cards: Cards, today: int, exam: int, answers: float) -> Day:
        due_day = cards.last_day + model.interval_days(w, cards.stability, retention)
        now = cards.recall(w, today)
        due = _cheapest(due_day, 2 - now, cards.met & (due_day <= today), np.full(len(now), answers))
        left = answers - (due * (2 - now)).sum(axis=1)
        unmet = (~cards.met).sum(axis=1)
        new = np.minimum(np.minimum(new_per_day, unmet), np.maximum(0, left // FIRST_ANSWERS)).astype(np.int64)
        return Day(due, due_day, new)

    return rule


def _new_today(
    cards: Cards, today: int, exam: int, answers: float, strategy: Strategy, start: int
) -> NDArray[np.int64]:
    """How many new cards to meet today: evenly over what is left of their part of the time."""
    total = cards.met.shape[1]
    met = cards.met.sum(axis=1)
    # what to take in is a share of those that were new at the start; a learner who met more is done
    wanted = np.maximum(0, np.floor(strategy.takes * total + 1e-9) - met)
    days = max(1, int(np.ceil(start + strategy.finish * (exam - start))) - today)
    fits = int(strategy.new_share * answers / FIRST_ANSWERS) or int(answers >= FIRST_ANSWERS)
    found: NDArray[np.int64] = np.minimum(np.ceil(wanted / days), fits).astype(np.int64)
    return found


def _last_pass(
    w: Numbers, cards: Cards, today: int, exam: int, left: Numbers, answers: float, strategy: Strategy
) -> tuple[Mask, Numbers, Numbers]:
    """Cards whose last review must be today, their order, and for how many days the last pass will go on.

    A last review is worth most on the last day. What cannot all be done then is done earlier, first of all those cards
    that lose least by it.
    """
    days = exam - today
    most_days = 2 * cards.met.shape[1] / max(SLACK * answers, 1e-9)  # a last review costs at most two answers
    if days > most_days + 2:
        return np.zeros_like(cards.met), np.zeros_like(cards.stability), np.full(len(left), np.ceil(most_days))
    without = cards.recall(w, exam)
    today_value, last_value = (_after_review(w, cards, day, exam) for day in (today, exam - 1))
    cost = 2 - cards.recall(w, exam - 1)
    gain = (last_value - without) / cost
    useful = cards.met & (gain > strategy.least_gain)
    later = SLACK * answers * (days - 1)
    kept = _cheapest(-gain, cost, useful, later + left)
    load = (kept * cost).sum(axis=1)
    gains_today = kept & (today_value > without) & (cards.last_day < today)
    chosen = _cheapest(last_value - today_value, cost, gains_today, left, load - later)
    return chosen, last_value - today_value, np.ceil(load / max(SLACK * answers, 1e-9))


def _after_review(w: Numbers, cards: Cards, day: int, exam: int) -> Numbers:
    """Expected recall on the day of the interview when a card is reviewed once more, on `day`."""
    since = np.maximum(1, day - cards.last_day)
    held = model.recall(w, cards.stability, since)
    after_good, _ = model.review(w, cards.stability, cards.difficulty, since, model.GOOD)
    after_again, _ = model.review(w, cards.stability, cards.difficulty, since, model.AGAIN)
    found: Numbers = held * model.recall(w, after_good, exam - day) + (1 - held) * model.recall(
        w, after_again, exam - day
    )
    return found


def _cheapest(key: Numbers, cost: Numbers, wanted: Mask, budget: Numbers, needed: Numbers | None = None) -> Mask:
    """The wanted cards with the smallest keys whose costs stay within the budget, and no more than cover `needed`."""
    order = np.argsort(np.where(wanted, key, np.inf), axis=1, kind="stable")
    costs = np.take_along_axis(np.where(wanted, cost, 0.0), order, axis=1)
    spent = np.cumsum(costs, axis=1)
    fits = np.zeros_like(wanted)
    enough = np.inf if needed is None else needed[:, np.newaxis] - 1e-9
    np.put_along_axis(fits, order, (spent <= budget[:, np.newaxis] + 1e-9) & (spent - costs < enough), axis=1)
    return fits & wanted
