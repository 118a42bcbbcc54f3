"""Fixtures of the room's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.core.settings import Settings
from app.main import create_app


@pytest.fixture
def page(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    """The application on SQLite alone, where nothing depends on the database; `client` is on both."""
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def opened(client: TestClient, key: str) -> str:
    """The address of the variant under way: what a click on a problem leads to."""
    reply = client.get(f"/practice/{key}")
    if reply.status_code == 200:
        assert "data-start" in reply.text
        reply = client.post(f"/practice/{key}/variants")
    assert reply.status_code == 303
    return str(reply.headers["location"])
