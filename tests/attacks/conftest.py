"""The application as it is attacked: in this process, over a database of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.core.settings import Settings
from app.main import create_app

ClientOf = Callable[..., TestClient]


@pytest.fixture
def client_of(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[ClientOf]:
    """A client of an application with these settings."""
    with ExitStack() as stack:

        def make(**values: Any) -> TestClient:
            app = create_app(settings_for(**values), sqlite)
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1", follow_redirects=False))

        yield make
