"""A database as it is after months of study, for pages and their tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import insert

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.study.fsrs.parameters import DEFAULT, DEFAULT_ID
from app.study.models import CardState, Review
from tests.support.review_logs import simulate_reviews


def seed_reviews(database: Database, catalogue: Catalogue, now: datetime, days: int = 120, cards: int = 90) -> int:
    """Reviews of the first `cards` cards over the `days` before `now`, and the states they lead to; how many."""
    rng, ids = np.random.default_rng(11), list(catalogue.cards)[:cards]
    rows = list(simulate_reviews(ids, days, DEFAULT, now - timedelta(days=days), rng))
    rows = sorted((row for row in rows if row["reviewed_at"] <= now), key=lambda row: row["reviewed_at"])
    for row in rows:
        checked = catalogue.cards[row["card_id"]].is_checked
        row["verdict"] = ("correct" if row["rating"] > 1 else "wrong") if checked else None
        row["elapsed_milliseconds"] = int(rng.lognormal(9.6, 0.5))
        if checked and rng.random() < 0.15:
            row["level"] = 4
    with database.write() as session:
        session.execute(insert(Review), rows)
        session.execute(insert(CardState), [_state(rows, card_id) for card_id in {row["card_id"] for row in rows}])
    return len(rows)


def _state(rows: list[dict[str, Any]], card_id: str) -> dict[str, Any]:
    mine = [row for row in rows if row["card_id"] == card_id]
    last = mine[-1]
    return {
        "learner_id": 1,
        "card_id": card_id,
        "revision": 1,
        "version": len(mine),
        "memory": last["memory_after"],
        "is_learning": last["memory_after"]["state"] != 2,
        "due_at": last["due_at"],
        "available_at": last["due_at"],
        "last_review_at": last["reviewed_at"],
        "reviews": len(mine),
        "lapses": 0,
        "position": 0,
        "parameters_id": DEFAULT_ID,
    }
