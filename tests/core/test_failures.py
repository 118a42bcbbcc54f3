"""What a person, a program and a monitor are told when something under the pages gives way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database, open_database
from app.core.security import RESPONSE_HEADERS
from app.core.settings import Settings
from app.main import create_app

PAGE = {"Accept": "text/html"}


@pytest.fixture
def client_without_database(tmp_path: Path, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    """The application over a database that cannot be opened."""
    app = create_app(settings_for(), open_database(f"sqlite:///{tmp_path}/no/such/folder/rankzero.sqlite3"))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/study", "/practice", "/lab", "/interview"])
def test_a_page_says_that_the_database_is_away(client_without_database: TestClient, path: str) -> None:
    reply = client_without_database.get(path, headers=PAGE)
    assert reply.status_code == 503
    assert "The database does not answer" in reply.text
    assert "unable to open database file" in reply.text


def test_a_program_is_told_so_as_problem_details(client_without_database: TestClient) -> None:
    reply = client_without_database.get("/api/v1/study/next")
    assert (reply.status_code, reply.headers["content-type"]) == (503, "application/problem+json")


def test_a_monitor_hears_not_ready(client_without_database: TestClient) -> None:
    assert client_without_database.get("/healthz").status_code == 200
    assert client_without_database.get("/readyz").status_code == 503
    reply = client_without_database.get("/metrics")
    assert reply.status_code == 200
    assert "\nrankzero_ready 0.0\n" in reply.text


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_crash_is_an_answer_with_security_headers(
    sqlite: Database, settings_for: Callable[..., Settings], accept: str
) -> None:
    app = create_app(settings_for(), sqlite)

    @app.get("/crash")
    def crash() -> Any:
        raise RuntimeError("a mistake of ours")

    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        reply = client.get("/crash", headers={"Accept": accept})
    assert reply.status_code == 500
    assert "the log says what" in reply.text
    assert "a mistake of ours" not in reply.text
    assert set(RESPONSE_HEADERS.items()) <= set({name: reply.headers.get(name) for name in RESPONSE_HEADERS}.items())


@pytest.mark.parametrize(
    "path", ["/lab/runs/{}", "/api/v1/lab/runs/{}", "/interview/sittings/{}", "/lab/runs/{}/events"]
)
@pytest.mark.parametrize("identity", ["9" * 30, "2147483648", "0", "-1", "x"])
def test_an_id_no_row_can_have_is_no_crash(client: TestClient, path: str, identity: str) -> None:
    reply = client.get(path.format(identity))
    assert reply.status_code == 422
    assert identity in reply.text or f"{int(identity):,}" in reply.text


def test_what_is_no_json_is_said_where(client: TestClient) -> None:
    reply = client.post("/api/v1/lab/runs", content="{nope", headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    (error,) = reply.json()["errors"]
    assert (error["field"], error["accepted"]) == ("request", "JSON")
    assert "at 1" in error["message"]


def test_json_without_end_is_no_crash(client: TestClient) -> None:
    deep = json.dumps({"spec": {}}).replace("{}", "[" * 100_000)
    reply = client.post("/api/v1/lab/runs", content=deep, headers={"Content-Type": "application/json"})
    assert reply.status_code in (400, 422)
