"""The planner's pages without anything behind them."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.main import create_app


@pytest.fixture
def page(sqlite: Database, settings_for: Any) -> Any:
    """The application on SQLite alone: the planner keeps nothing."""
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client
