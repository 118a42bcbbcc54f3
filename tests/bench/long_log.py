"""A database with years of study in it: a log of many reviews of many cards, written straight into its tables."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from app.core.days import day_number, day_start
from app.study.fsrs.parameters import DEFAULT_ID
from app.study.fsrs.scheduling import SCHEDULER_NAME

YEAR_DAYS = 365
SHARE_DUE = 0.01  # of the cards, today


def write_long_log(database: Path, card_ids: list[str], reviews: int, now: datetime, zone: str) -> None:
    """Give learner 1 `reviews` reviews over `card_ids`, the last of them before today, and the states they left."""
    draw, each = random.Random(7), reviews // len(card_ids)
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA synchronous=OFF")
    with connection:
        _insert(connection, "review", _log(card_ids, each, now, zone))
        last = dict(connection.execute("SELECT card_id, max(id) FROM review GROUP BY card_id").fetchall())
        _insert(connection, "card_state", _states(card_ids, each, now, zone, last, draw))
    connection.execute("ANALYZE")
    connection.close()


def _log(card_ids: list[str], each: int, now: datetime, zone: str) -> Iterator[dict[str, Any]]:
    """Round by round, as it is written in real life: the entries of a card lie apart."""
    for round_ in range(each):
        days_ago = 3 * YEAR_DAYS * (each - round_) / each + 1
        for index, card_id in enumerate(card_ids):
            at = now - timedelta(days=days_ago, seconds=index % 40_000)
            memory = _memory(2.0 + 3 * round_, at, at + timedelta(days=20))
            yield {
                "learner_id": 1,
                "card_id": card_id,
                "revision": 1,
                "level": 4,
                "rating": 3,
                "reviewed_at": _text(at),
                "elapsed_milliseconds": 9000,
                "due_at": _text(at + timedelta(days=20)),
                "memory_before": memory,
                "memory_after": memory,
                "time_zone": zone,
                "day_starts_hour": 4,
                "scheduler": SCHEDULER_NAME,
                "parameters_id": DEFAULT_ID,
                "phase": 2 if round_ else 0,
                "version": round_,
                "repetition": round_,
            }


def _states(
    card_ids: list[str], each: int, now: datetime, zone: str, last: dict[str, int], draw: random.Random
) -> Iterator[dict[str, Any]]:
    where = ZoneInfo(zone)
    today = day_number(now, where)
    for card_id in card_ids:
        days = 0 if draw.random() < SHARE_DUE else 1 + int(YEAR_DAYS * draw.random())
        due = day_start(today + days, where)
        yield {
            "learner_id": 1,
            "card_id": card_id,
            "revision": 1,
            "version": each,
            "memory": _memory(60.0, now - timedelta(days=40), due),
            "is_learning": 0,
            "due_at": _text(due),
            "available_at": _text(due),
            "last_review_at": _text(now - timedelta(days=40)),
            "reviews": each,
            "lapses": 1,
            "position": draw.getrandbits(31),
            "parameters_id": DEFAULT_ID,
            "last_review_id": last[card_id],
        }


def _memory(stability: float, at: datetime, due: datetime) -> str:
    fields = {"state": 2, "step": None, "stability": stability, "difficulty": 5.0}
    return json.dumps({**fields, "due": due.isoformat(), "last_review": at.isoformat()})


def _text(at: datetime) -> str:
    """As SQLAlchemy stores a time in SQLite."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _insert(connection: sqlite3.Connection, table: str, rows: Iterator[dict[str, Any]]) -> None:
    first = next(rows)
    names = ", ".join(first)
    statement = f"INSERT INTO {table} ({names}) VALUES ({', '.join(':' + name for name in first)})"  # noqa: S608
    connection.execute(statement, first)
    connection.executemany(statement, rows)
