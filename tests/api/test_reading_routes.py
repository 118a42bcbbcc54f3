"""Every GET of the application answers from a database that takes no writes: looking changes nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.orm import Session

from app.content.players.catalogue import FIGURES
from app.core.db import Database
from app.core.settings import Settings
from app.main import create_app
from tests.conftest import Clock
from tests.support.judged import judge_next

SPEC = {"model": "gpt-mini", "training": {"steps": 10, "sequence": 32}, "parallel": {"data": 2}}
ANSWERS = (200, 303)
BY_QUERY = {
    "/study/check": "?card_id=C27&answer=1",
    "/study/reports/new": "?card_id=C27",
    "/search/results": "?q=ring",
    "/api/v1/search": "?q=ring",
}
# this install has neither worker nor Redis, so no run of it was watched
# What the run of these tests, which never ran, does not have.
NOT_READY = {
    "/readyz": 503,
    "/lab/runs/{run_id}/film/{rank}": 404,
    "/api/v1/lab/runs/{run_id}/checkpoint": 404,
    "/api/v1/lab/runs/{run_id}/snapshot/{rank}": 404,
    "/api/v1/lab/runs/{run_id}/artifacts/{name}": 404,
}


@dataclass(frozen=True)
class ReadOnly(Database):
    """A database whose sessions only read: asking for one that may write is refused, and so is a write in any other."""

    @contextmanager
    def write(self) -> Iterator[Session]:
        raise AssertionError("a GET asked for a session that writes")
        yield


def _addresses(client: TestClient, database: Database, clock: Clock) -> dict[str, list[str]]:
    """What there is to look at, by path: every one with a parameter needs at least one example."""
    headers = {"Accept": "application/json"}
    day = (clock() + timedelta(days=4)).date().isoformat()
    assert client.post("/progress/plan", data={"day": day, "minutes_per_day": "30"}).status_code == 303
    seed = client.post("/practice/P03/variants").headers["location"].rsplit("/", 1)[1]
    own = client.post("/study/own", data={"kind": "basic", "deck": "Mine", "question": "One?", "answer": "Two."})
    assert own.status_code in ANSWERS, own.text
    reported = client.post("/study/reports", data={"card_id": "C27", "revision": "1", "text": "Look here, please."})
    assert reported.status_code == 303
    shown_card = client.get("/api/v1/study/next").json()["card"]
    review = {"card_id": shown_card["card_id"], "level": 3, "version": shown_card["version"]}
    assert client.post("/api/v1/study/reviews", json=review).status_code == 201
    said = client.post("/rubrics/R01", data={"text": "Gradients are averaged with an all-reduce."})
    assert said.status_code == 303, said.text
    run = client.post("/api/v1/lab/runs", json={"spec": SPEC}).json()["id"]
    assert client.post(f"/api/v1/lab/runs/{run}/cancel", headers=headers).status_code == 200
    knobs = [{"field": "training.micro_batch", "values": [1, 2]}]
    swept = client.post("/api/v1/lab/sweeps", json={"spec": SPEC, "knobs": knobs}).json()["id"]
    handed_in = client.post("/api/v1/labs/CL01/submissions", json={"code": "x = 1"}).json()["id"]
    judge_next(database)
    sitting = client.post("/interview/does-it-fit").headers["location"]
    job = client.post("/study/exchange", files={"file": ("cards.csv", b"question,answer\nThree?,Four.\n")})
    at = job.headers["location"]
    while "/jobs/" in (shown := client.get(at)).headers.get("location", at):
        assert shown.status_code == 200
        time.sleep(0.3)
    return {
        "/study/cards/{card_id}": ["/study/cards/C27"],
        "/study/placement/{deck_id}": ["/study/placement/DK1"],
        "/api/v1/study/reviews/{card_id}/{version}": [
            f"/api/v1/study/reviews/{shown_card['card_id']}/{shown_card['version']}"
        ],
        "/study/own/{card_id}": [_own_card(client)],
        "/study/exchange/jobs/{job_id}": [at],
        "/study/exchange/rankzero{ending}": [f"/study/exchange/rankzero{each}" for each in (".apkg", ".csv", ".zip")],
        "/study/exchange/{report_id}": [shown.headers["location"]],
        "/practice/{key}": ["/practice/P01", "/practice/P03"],
        "/practice/{key}/{seed}": [f"/practice/P03/{seed}", "/practice/P01/7"],
        "/api/v1/problems/{key}/variants/{seed}": [f"/api/v1/problems/P03/variants/{seed}"],
        "/rubrics/{key}": ["/rubrics/R01"],
        "/rubrics/{key}/{answer_id}": [said.headers["location"]],
        "/api/v1/labs/{key}": ["/api/v1/labs/CL01"],
        "/labs/{key}": ["/labs/CL01"],
        "/labs/{key}/puzzle": ["/labs/CL01/puzzle", "/labs/CL15/puzzle"],
        "/api/v1/labs/{key}/puzzle": ["/api/v1/labs/CL01/puzzle"],
        "/labs/submissions/{submission_id}": [f"/labs/submissions/{handed_in}"],
        "/labs/submissions/{submission_id}/film/{which}/{rank}": [
            f"/labs/submissions/{handed_in}/film/{which}/1" for which in ("yours", "reference")
        ],
        **{
            f"/api/v1/labs/submissions/{{submission_id}}{part}": [f"/api/v1/labs/submissions/{handed_in}{part}"]
            for part in ("", "/events", "/trace", "/proof")
        },
        "/lab/experiments/{key}": ["/lab/experiments/L10"],
        "/lab/experiments/{key}/runs": ["/lab/experiments/L10/runs"],
        "/lab/sweeps/{sweep_id}": [f"/lab/sweeps/{swept}"],
        "/lab/runs/{run_id}": [f"/lab/runs/{run}"],
        "/lab/runs/{run_id}/film/{rank}": [f"/lab/runs/{run}/film/0"],
        "/lab/runs/{run_id}/figure": [f"/lab/runs/{run}/figure"],
        "/lab/runs/{run_id}/figure/frames": [f"/lab/runs/{run}/figure/frames"],
        "/lab/runs/{run_id}/live": [f"/lab/runs/{run}/live"],
        "/lab/runs/{run_id}/events": [f"/lab/runs/{run}/events"],
        "/api/v1/lab/runs/{run_id}/events": [f"/api/v1/lab/runs/{run}/events"],
        "/api/v1/lab/runs/{run_id}": [f"/api/v1/lab/runs/{run}"],
        "/api/v1/lab/runs/{run_id}/trace": [f"/api/v1/lab/runs/{run}/trace"],
        "/api/v1/lab/runs/{run_id}/spec": [f"/api/v1/lab/runs/{run}/spec"],
        "/api/v1/lab/runs/{run_id}/record": [f"/api/v1/lab/runs/{run}/record"],
        "/api/v1/lab/runs/{run_id}/script": [f"/api/v1/lab/runs/{run}/script"],
        "/api/v1/lab/runs/{run_id}/file": [f"/api/v1/lab/runs/{run}/file"],
        "/api/v1/lab/runs/{run_id}/checkpoint": [f"/api/v1/lab/runs/{run}/checkpoint"],
        "/api/v1/lab/runs/{run_id}/snapshot/{rank}": [f"/api/v1/lab/runs/{run}/snapshot/0"],
        "/api/v1/lab/runs/{run_id}/artifacts": [f"/api/v1/lab/runs/{run}/artifacts"],
        "/api/v1/lab/runs/{run_id}/artifacts/{name}": [f"/api/v1/lab/runs/{run}/artifacts/trace.json"],
        "/interview/{key}": ["/interview/does-it-fit", "/interview/M1"],
        "/interview/sittings/{sitting_id}": [sitting],
        "/reference/figures/{key}": ["/reference/figures/" + next(iter(FIGURES))],
        "/reference/figures/{key}/frames": ["/reference/figures/" + next(iter(FIGURES)) + "/frames"],
        "/reference/formulas/{key}": ["/reference/formulas/F01"],
        "/reference/{slug}": ["/reference/" + _page(client)],
    }


def _own_card(client: TestClient) -> str:
    found = re.search(r'href="(/study/own/(?!new)\w[^"/?]*)"', client.get("/study/own").text)
    assert found is not None
    return found[1]


def _page(client: TestClient) -> str:
    known = {"concepts", "glossary", "errata", "validation"}
    found = re.findall(r'href="/reference/([a-z0-9-]+)"', client.get("/reference").text)
    return next(slug for slug in found if slug not in known)


@pytest.fixture
def shop(sqlite: Database, clock: Clock, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    app = create_app(settings_for(), sqlite)
    app.state.clock = clock
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("hours_later", [0, 30])  # while a sitting runs; the next day, when nothing swept yet
def test_no_get_writes(shop: TestClient, sqlite: Database, clock: Clock, hours_later: int) -> None:
    examples = _addresses(shop, sqlite, clock)
    clock.advance(hours=hours_later)
    event.listen(sqlite.engine, "begin", _refuse_writes)
    app: Any = shop.app
    app.state.database = ReadOnly(sqlite.engine, sqlite.reading, sqlite.writing)
    paths = {str(each.path) for each in iter_route_contexts(app.routes) if "GET" in (each.methods or ())}
    assert len(paths) > 60
    wrong = []
    for path in sorted(paths):
        for address in examples.get(path, [path + BY_QUERY.get(path, "")]):
            assert "{" not in address, f"give an example of {path}"
            reply = shop.get(address)
            if reply.status_code not in (*ANSWERS, NOT_READY.get(path)):
                wrong.append((address, reply.status_code, reply.text[:300]))
    assert wrong == []


def _refuse_writes(connection: Any) -> None:
    connection.exec_driver_sql("PRAGMA query_only=ON")  # SQLite itself then refuses


@pytest.mark.slow
def test_the_database_of_that_test_takes_no_writes(shop: TestClient, sqlite: Database) -> None:
    event.listen(sqlite.engine, "begin", _refuse_writes)
    app: Any = shop.app
    assert shop.post("/practice/P03/variants").status_code == 503
    app.state.database = ReadOnly(sqlite.engine, sqlite.reading, sqlite.writing)
    with pytest.raises(AssertionError, match="asked for a session that writes"):
        shop.post("/practice/P03/variants")
