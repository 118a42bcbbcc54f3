"""What several tests of the planner ask."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

OWN_7B = {"model": "own", "parameters": "7B", "ranks": "8"}


def estimated(client: TestClient, body: str) -> Any:
    return client.post("/api/v1/estimate", content=body, headers={"content-type": "application/json"})
