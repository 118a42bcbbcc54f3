"""Runs asked for over HTTP, and ended as if a worker had run them."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from app.core.db import Database
from app.lab import service
from tests.conftest import NOW

HTML = {"Accept": "text/html"}
SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 4}, "parallel": {"data": 2, "zero": 3}}


def submit(client: TestClient, **changed: Any) -> int:
    reply = client.post("/api/v1/lab/runs", json={"spec": {**SPEC, **changed}})
    assert reply.status_code == 201, reply.text
    return int(reply.json()["id"])


def finish(database: Database, run_id: int, **measured: Any) -> None:
    with database.write() as session:
        run = service.find_run(session, 1, run_id)
        run.status, run.started_at, run.ended_at, run.result = "finished", NOW, NOW, measured
