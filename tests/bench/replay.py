"""Checking a review log from the database, beside py-fsrs stepping through the same reviews in memory, in turns."""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fsrs import Card, Rating, Scheduler
from sqlalchemy.orm import Session

from app.content.catalogue import load
from app.core.db import open_database
from app.core.migrate import migrate
from app.core.settings import ROOT
from app.study import replay, service
from app.study.models import Review

REVIEWS = 3000
TURNS = 9
TARGET = 0.7
START = datetime(2025, 1, 1, 12, tzinfo=UTC)

History = list[tuple[Rating, datetime]]


def measure(data: Path) -> dict[str, Any]:
    """Reviews per second of `rankzero study replay --verify` over those of raw py-fsrs."""
    database = open_database(f"sqlite:///{data / 'rankzero.sqlite3'}")
    migrate(database, START)
    with database.write() as session:
        histories = _study(session)
    pairs = []
    for _ in range(TURNS):
        with database.read() as session:
            began = time.process_time()
            report = replay.verify(session, 1)
            checked = time.process_time() - began
        assert report.reviews == REVIEWS
        assert report.mismatches == 0, report.told[0]
        pairs.append((checked, _raw(histories)))
    database.engine.dispose()
    checked, raw = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {
        "replay_cpu_seconds": checked, "raw_cpu_seconds": raw, "ratio": raw / checked, "target": TARGET,
        "lines": [
            f"{REVIEWS:,} reviews: checked at {REVIEWS / checked:,.0f} a second, from the database; "
            f"py-fsrs alone {REVIEWS / raw:,.0f} a second, in memory (CPU time)",
            f"ratio {raw / checked:.2f} × (target ≥ {TARGET:g} ×)",
        ],
    }  # fmt: skip


def _study(session: Session) -> list[History]:
    """A learner's year: each card answered some hours after it is due."""
    content, draw, now = load(ROOT / "cards"), random.Random(1), START
    due, versions = dict.fromkeys(content.cards, START), dict.fromkeys(content.cards, 0)
    histories: dict[str, History] = {card_id: [] for card_id in content.cards}
    for _ in range(REVIEWS):
        card_id = min(due, key=lambda each: due[each])
        now = max(now, due[card_id] + timedelta(hours=30 * draw.random()))
        made: Review = service.submit_review(
            session, 1, content, card_id=card_id, level=draw.choices([1, 3, 4, 5], [1, 2, 6, 1])[0],
            version=versions[card_id], now=now,
        )  # fmt: skip
        versions[card_id] += 1
        due[card_id] = made.due_at
        histories[card_id].append((Rating(made.rating), now))
    return list(histories.values())


def _raw(histories: list[History]) -> float:
    scheduler = Scheduler(enable_fuzzing=False)
    began = time.process_time()
    for history in histories:
        card = Card(card_id=1)
        for rating, at in history:
            card, _ = scheduler.review_card(card, rating, at)
    return time.process_time() - began
