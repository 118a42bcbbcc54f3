"""The progress page over a log of a million reviews of 20,000 cards, beside the same page over an empty one."""

from __future__ import annotations

import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from app.core.db import open_database
from app.core.migrate import migrate
from app.core.settings import Settings
from app.main import create_app
from tests.bench.long_log import write_long_log

REVIEWS, CARDS = 1_000_000, 20_000
TURNS = 7
TARGET_SECONDS = 1.0  # of processor time: a shared machine stretches the clock, not the work


def measure(data: Path) -> dict[str, Any]:
    """Median processor seconds of GET /progress in this process, after one to warm up."""
    empty, long = _seconds(data / "empty", 0), _seconds(data / "long", REVIEWS)
    return {
        "empty_seconds": empty,
        "long_seconds": long,
        "target_seconds": TARGET_SECONDS,
        "lines": [
            f"{REVIEWS:,} reviews of {CARDS:,} cards: {long:.2f} s of processor time, empty {empty:.3f} s, median of "
            f"{TURNS} (target ≤ {TARGET_SECONDS:g} s)"
        ],
    }


def _seconds(folder: Path, reviews: int) -> float:
    folder.mkdir(parents=True)
    settings = Settings(data=folder, redis_url=f"unix://{folder}/nothing.sock", log_level="error", token="off")
    database, now = open_database(settings.sqlalchemy_url), datetime.now(UTC)
    migrate(database, now)
    if reviews:
        database.engine.dispose()
        write_long_log(folder / "rankzero.sqlite3", [f"B{index}" for index in range(CARDS)], reviews, now, "UTC")
    with TestClient(create_app(settings, database), base_url="http://127.0.0.1") as client:
        taken = [_timed(client) for _ in range(TURNS + 1)][1:]
    return statistics.median(taken)


def _timed(client: TestClient) -> float:
    began = time.process_time()
    reply = client.get("/progress")
    assert reply.status_code == 200, reply.text[:300]
    return time.process_time() - began


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder)), indent=2))  # noqa: T201
