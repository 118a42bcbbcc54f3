"""The learner's pages of code labs, without JavaScript."""

from __future__ import annotations

from fastapi.testclient import TestClient

from app.core.db import Database
from tests.support.judged import judge_next

CODE = "def ring_all_reduce(x, rank, n, send, recv):\n    print('<b>')\n"


def test_the_list_says_where_one_stands(client: TestClient, database: Database) -> None:
    assert "CL01, Ring all-reduce" in client.get("/labs").text
    assert "✓ passed" not in client.get("/labs").text
    client.post("/labs/CL01", data={"code": CODE, "mode": "submit"})
    judge_next(database)
    assert "✓ passed" in client.get("/labs").text


def test_a_form_hands_in_and_shows_what_became_of_it(client: TestClient, database: Database) -> None:
    reply = client.post("/labs/CL01", data={"code": CODE.replace("\n", "\r\n"), "mode": "submit"})
    assert (reply.status_code, reply.headers["location"]) == (303, "/labs/submissions/1")
    assert 'http-equiv="refresh"' in client.get("/labs/submissions/1").text
    waiting = client.get("/labs/CL01").text
    assert "Waiting for a worker, number 1" in waiting
    assert "print(&#39;&lt;b&gt;&#39;)" in waiting
    judge_next(database, passed=False, mistake="everyone-sends-first")
    assert 'http-equiv="refresh"' not in client.get("/labs/submissions/1").text
    found = client.get("/labs/CL01").text
    assert "✗ Everyone sends first" in found
    assert "/study/cards/C33" in found
    assert "The reference" not in found
    client.post("/labs/CL01", data={"code": CODE, "mode": "submit"})
    judge_next(database)
    assert "The reference" in client.get("/labs/CL01").text


def test_what_is_refused_stays_in_the_form(client: TestClient) -> None:
    reply = client.post("/labs/CL01", data={"code": "kept = 1\0", "mode": "run"})
    assert reply.status_code == 422
    assert "NUL character" in reply.text
    assert "kept = 1" in reply.text


def test_a_hint_says_its_cost_before_and_keeps_what_is_typed(client: TestClient) -> None:
    assert "Passing then counts 75 %" in client.get("/labs/CL01").text
    assert client.post("/labs/CL01/hints", data={"code": "typed = 1"}).status_code == 303
    found = client.get("/labs/CL01").text
    assert "typed = 1" in found
    assert "Passing then counts 56 %" in found
    assert "tensor_split" in found


def test_somebody_looks_for_what_is_not_there(client: TestClient) -> None:
    assert client.get("/labs/CL99").status_code == 404
    assert client.get("/labs/submissions/99").status_code == 404
    assert client.post("/labs/CL99", data={"code": "x"}).status_code == 404
