"""A learner's review log as it would be, simulated: for fits, statistics and speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from fsrs import Card, Rating, Scheduler, State

from app.study.exam.strategy import FIRST_RATINGS, HELD_RATINGS


def simulate_reviews(
    cards: Sequence[str], days: int, true: Sequence[float], start: datetime, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Rows of `review`: scheduled by FSRS's defaults at 90 %, answered by a memory with the parameters `true`."""
    memory, scheduler = Scheduler(tuple(true), enable_fuzzing=False), Scheduler(enable_fuzzing=False)
    for card_id in cards:
        day, before = int(rng.integers(0, max(1, days // 2))), None
        held, card = Card(card_id=1), Card(card_id=1)
        while day < days:
            at = start + timedelta(days=day)
            while True:
                rating = _rating(memory, held, at, rng)
                phase = 0 if before is None else card.state.value
                held, _ = memory.review_card(held, rating, at)
                card, _ = scheduler.review_card(card, rating, at)
                after = _kept(card)
                yield _row(card_id, rating, at, phase, before, after)
                before = after
                if card.state == State.Review:
                    break
                at += timedelta(minutes=10)
            interval_days = max(1, (card.due - at).days)
            held.last_review = card.last_review = start + timedelta(days=day)  # study days are whole
            day += interval_days


def _rating(memory: Scheduler, card: Card, at: datetime, rng: np.random.Generator) -> Rating:
    if card.last_review is None:
        return Rating(1 + int(rng.choice(4, p=FIRST_RATINGS)))
    if (at - card.last_review).days < 1:
        return Rating.Good
    if rng.random() >= memory.get_card_retrievability(card, at):
        return Rating.Again
    return Rating(2 + int(rng.choice(3, p=HELD_RATINGS)))


def _kept(card: Card) -> dict[str, Any]:
    assert card.last_review is not None
    return {
        "state": card.state.value,
        "step": card.step,
        "stability": card.stability,
        "difficulty": card.difficulty,
        "due": card.due.isoformat(),
        "last_review": card.last_review.isoformat(),
    }


def _row(card_id: str, rating: Rating, at: datetime, phase: int, before: Any, after: dict[str, Any]) -> dict[str, Any]:
    return {
        "learner_id": 1,
        "card_id": card_id,
        "revision": 1,
        "level": rating.value + 1,
        "rating": rating.value,
        "reviewed_at": at,
        "due_at": datetime.fromisoformat(after["due"]),
        "memory_before": before,
        "memory_after": after,
        "time_zone": "UTC",
        "day_starts_hour": 4,
        "scheduler": "simulated",
        "parameters_id": "fsrs-6-default",
        "phase": phase,
        "elapsed_milliseconds": 9000 + 1000 * (5 - rating.value),
    }
