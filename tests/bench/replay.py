"""Replaying a review log, beside py-fsrs stepping through the same reviews, in turns."""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fsrs import Card, Rating, Scheduler
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

REVIEWS = 2000
TURNS = 9
TARGET = 0.7
START = datetime(2025, 1, 1, 12, tzinfo=UTC)


def measure(data: Path) -> dict[str, Any]:
    """Reviews per second of a replay over those of raw py-fsrs, both in memory; and of the whole check of a log.

    The check (`rankzero study replay --verify`) also reads every entry from the database, compares both memories as
    they are stored, and holds each date against those that might have been chosen.
    """
    database = open_database(f"sqlite:///{data / 'rankzero.sqlite3'}")
    migrate(database, START)
    with database.write() as session:
        _study(session)
    with database.read() as session:
        logs = [queries.list_history(session, 1, state.card_id) for state in queries.list_states(session, 1)]
    logs = [[_plain(review) for review in log] for log in logs]
    times = [(_replay(logs), _raw(logs), _check(database)) for _ in range(TURNS)]
    database.engine.dispose()
    replayed, raw, checked = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "replay_cpu_seconds": replayed,
        "raw_cpu_seconds": raw,
        "check_cpu_seconds": checked,
        "ratio": raw / replayed,
        "check_ratio": raw / checked,
        "target": TARGET,
        "lines": [
            f"{REVIEWS:,} reviews, CPU time: replay {REVIEWS / replayed:,.0f} a second, raw py-fsrs "
            f"{REVIEWS / raw:,.0f}: {raw / replayed:.2f} × (target ≥ {TARGET:g} ×)",
            f"the whole check from the database, every memory and date compared: {REVIEWS / checked:,.0f} a second, "
            f"{raw / checked:.2f} ×",
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
    assert (report.reviews, report.mismatches) == (REVIEWS, 0), report.told[:1]
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
            now=now,
        )
        versions[card_id] += 1
        due[card_id] = made.due_at


def _raw(logs: list[list[Any]]) -> float:
    scheduler = Scheduler(enable_fuzzing=False)
    histories = [[(Rating(each.rating), each.reviewed_at) for each in log] for log in logs]
    began = time.process_time()
    for history in histories:
        card = Card(card_id=1)
        for rating, at in history:
            card, _ = scheduler.review_card(card, rating, at)
    return time.process_time() - began
