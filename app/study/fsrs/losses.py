"""How well a parameter set predicts reviews it has not seen. Pure.

Reviews are split by time: what is fitted to comes first, what judges comes after, as in use. Memories at the time of a
held-out review follow from every review before it, also held-out ones: that is what the scheduler would have known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import log, sqrt
from zoneinfo import ZoneInfo

from fsrs import Card, Rating, ReviewLog, Scheduler

from app.core.days import day_number
from app.study.fsrs.parameters import DEFAULT

FITTED_SHARE = 0.8
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)
_LEAST = 1e-6  # a prediction is never certain: one wrong answer must not cost everything


@dataclass
class History:
    """A card's reviews in order: FSRS rating and study day (ordinal)."""

    ratings: list[int] = field(default_factory=list)
    days: list[int] = field(default_factory=list)

    def add(self, rating: int, at: datetime, zone: str, starts_hour: int) -> None:
        self.ratings.append(rating)
        self.days.append(day_number(at, ZoneInfo(zone), starts_hour))

    def reversed(self) -> History:
        return History(self.ratings[::-1], self.days[::-1])

    def until(self, day: int) -> History:
        """The part before study day `day`."""
        count = sum(each < day for each in self.days)
        return History(self.ratings[:count], self.days[:count])

    @property
    def later(self) -> list[int]:
        """Days of reviews at least a study day after the one before: those that show what was remembered."""
        return [now for before, now in zip(self.days, self.days[1:], strict=False) if now > before]


@dataclass(frozen=True)
class Comparison:
    """Mean log loss over held-out reviews, by the default and by the fitted set, and how sure their difference is."""

    held_out: int
    default: float
    fitted: float
    difference_error: float


def split_day(histories: Iterable[History]) -> int:
    """The study day from which on reviews are held out: about a fifth of those that count."""
    days = sorted(day for history in histories for day in history.later)
    if not days:
        raise ValueError("no card was reviewed on two days")
    return days[int(FITTED_SHARE * len(days))]


def review_logs(histories: Iterable[History]) -> list[ReviewLog]:
    """The histories as py-fsrs's optimiser reads them: study days become whole days apart."""
    return [
        ReviewLog(card_id=index, rating=Rating(rating), review_datetime=_at(day), review_duration=None)
        for index, history in enumerate(histories)
        for rating, day in zip(history.ratings, history.days, strict=True)
    ]


def compare(histories: Sequence[History], from_day: int, fitted: Sequence[float]) -> Comparison:
    """Both sets on the reviews from study day `from_day` on. Raises ValueError where there are none."""
    default = losses(histories, from_day, DEFAULT)
    ours = losses(histories, from_day, fitted)
    count = len(default)
    if not count:
        raise ValueError(f"no review from study day {from_day} on")
    differences = [a - b for a, b in zip(ours, default, strict=True)]
    mean = sum(differences) / count
    variance = sum((each - mean) ** 2 for each in differences) / max(1, count - 1)
    return Comparison(count, sum(default) / count, sum(ours) / count, sqrt(variance / count))


def losses(histories: Iterable[History], from_day: int, parameters: Sequence[float]) -> list[float]:
    """Log loss of each review from `from_day` on that came at least a study day after the one before."""
    scheduler = Scheduler(tuple(parameters), enable_fuzzing=False)
    found = []
    for history in histories:
        card, before = Card(card_id=0, due=_EPOCH), None
        for rating, day in zip(history.ratings, history.days, strict=True):
            if before is not None and day > before and day >= from_day:
                held = scheduler.get_card_retrievability(card, _at(day))
                chance = held if rating > Rating.Again else 1 - held
                found.append(-log(min(1 - _LEAST, max(_LEAST, chance))))
            card, _ = scheduler.review_card(card, Rating(rating), _at(day))
            before = day
    return found


def _at(day: int) -> datetime:
    return _EPOCH + timedelta(days=day - 1)
