"""Replaying a review log: how long a hundred thousand reviews take to check."""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy.orm import Session

from app.content.catalogue import load
from app.core.db import Database, open_database
from app.core.migrate import migrate
from app.core.settings import ROOT
from app.study import queries, service
from app.study.fsrs.parameters import DEFAULT
from app.study.log import replay
from app.study.log.replaying import recompute
from app.study.models import Review
from tests.conftest import moment_at

REVIEWS = 2000
TURNS = 5
LOG_REVIEWS = 100_000
TARGET_SECONDS = 60.0  # of `rankzero study replay --verify` over such a log
START = datetime(2025, 1, 1, 12, tzinfo=UTC)


def measure(data: Path) -> dict[str, Any]:
    """CPU seconds of the whole check of a log of 100,000 reviews, scaled from a shorter one: each costs the same.

    The check (`rankzero study replay --verify`) reads every entry from the database, computes its memory again with
    py-fsrs, compares both memories as they are stored, and holds each date against those that might have been chosen.
    """
    database = open_database(f"sqlite:///{data / 'rankzero.sqlite3'}")
    migrate(database, START)
    with database.write() as session:
        _study(session)
    with database.read() as session:
        logs = [queries.list_history(session, 1, state.card_id) for state in queries.list_states(session, 1)]
    logs = [[_plain(review) for review in log] for log in logs]
    times = [(_replay(logs), _check(database)) for _ in range(TURNS)]
    database.engine.dispose()
    replayed, checked = (statistics.median(column) * LOG_REVIEWS / REVIEWS for column in zip(*times, strict=True))
    return {
        "reviews": LOG_REVIEWS,
        "replay_cpu_seconds": replayed,
        "check_cpu_seconds": checked,
        "target_seconds": TARGET_SECONDS,
        "lines": [
            f"{LOG_REVIEWS:,} reviews, CPU time: checked in {checked:.1f} s (target ≤ {TARGET_SECONDS:g} s), "
            f"of which memories {replayed:.1f} s",
        ],
    }


def _plain(review: Review) -> Any:
    """An entry without the ORM around it."""
    names = ("kind", "rating", "reviewed_at", "due_at", "time_zone", "day_starts_hour", "memory_before", "memory_after")
    return SimpleNamespace(**{name: getattr(review, name) for name in names})


def _replay(logs: list[list[Any]]) -> float:
    began = time.process_time()
    memories = [recompute(log, DEFAULT) for log in logs]
    taken = time.process_time() - began
    assert memories == [log[-1].memory_after for log in logs]
    return taken


def _check(database: Database) -> float:
    with database.read() as session:
        began = time.process_time()
        report = replay.verify(session, 1)
        taken = time.process_time() - began
    assert (report.reviews, report.mismatches) == (REVIEWS, 0), report.named[:1]
    return taken


def _study(session: Session) -> None:
    """A learner's year: each card answered some hours after it is due."""
    content, draw, now = load(ROOT / "cards"), random.Random(1), START
    due, versions = dict.fromkeys(content.cards, START), dict.fromkeys(content.cards, 0)
    for _ in range(REVIEWS):
        card_id = min(due, key=lambda each: due[each])
        now = max(now, due[card_id] + timedelta(hours=30 * draw.random()))
        made: Review = service.submit_review(
            session,
            1,
            content,
            card_id=card_id,
            level=draw.choices([1, 3, 4, 5], [1, 2, 6, 1])[0],
            version=versions[card_id],
            moment=moment_at(now),
        )
        versions[card_id] += 1
        due[card_id] = made.due_at
