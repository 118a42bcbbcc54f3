"""What ranks, workers and forms say is text on a run's pages, and a hostile path or request finds nothing there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from app.core.db import Database
from app.lab import work
from app.lab.live import PARTS
from tests.attacks.conftest import ClientOf
from tests.conftest import NOW

SPEC = {"model": "gpt-mini", "parallel": {"data": 2}}
HTML = {"Accept": "text/html"}
SCRIPTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "</pre><svg/onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
)


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
@pytest.mark.parametrize("field", ["cause", "message", "lines", "device"])
def test_what_a_rank_or_worker_says_stays_text(client_of: ClientOf, sqlite: Database, field: str, script: str) -> None:
    client = client_of()
    client.post("/api/v1/lab/runs", json={"spec": SPEC})
    device = script if field == "device" else "CPU"
    failure = work.RunFailure("x", "x", rank=0, step=1, lines=("x",), lines_rank=0)
    if field != "device":
        told: dict[str, Any] = {field: (script,) if field == "lines" else script}
        failure = replace(failure, **told)
    with sqlite.write() as session:
        claim = work.claim_next(session, "w1", lambda _: device, NOW)
        assert claim is not None
        assert work.end_run(session, claim, "failed", NOW, failure)
    for path in ("/lab/runs/1", "/lab"):
        page = client.get(path, headers=HTML)
        assert page.status_code == 200
        assert script not in page.text
        assert "<img src=x" not in page.text
    stream = client.get("/lab/runs/1/live")  # of a run that has ended: it ends, too
    parts = [json.loads(line.removeprefix("data: ")) for line in stream.text.splitlines() if '"html"' in line]
    assert len(parts) == len(PARTS)
    assert all(script not in part["html"] and "<img src=x" not in part["html"] for part in parts)


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
@pytest.mark.parametrize("field", ["model", "program", "device"])
def test_a_refused_spec_is_repeated_as_text(client_of: ClientOf, field: str, script: str) -> None:
    typed = {"spec": json.dumps({**SPEC, field: script})}
    reply = client_of().post("/lab/runs", data=typed, headers=HTML)
    assert reply.status_code == 422
    assert script not in reply.text
    assert "<img src=x" not in reply.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1.evil.example", "https://localhost.x"]
)
@pytest.mark.parametrize("path", ["/lab/runs", "/lab/runs/1/cancel", "/api/v1/lab/runs", "/api/v1/lab/runs/1/cancel"])
def test_no_other_site_starts_or_ends_a_run(client_of: ClientOf, path: str, origin: str) -> None:
    client = client_of()
    client.post("/api/v1/lab/runs", json={"spec": SPEC})
    reply = client.post(path, data={"spec": json.dumps(SPEC)}, headers={"Origin": origin})
    assert reply.status_code == 403
    assert client.get("/api/v1/lab/runs/1").json()["status"] == "queued"
    assert client.get("/api/v1/lab/runs/2").status_code == 404


@pytest.mark.parametrize(
    "run", ["0", "-1", "2147483648", "9" * 400, "1.0", "../1", "..%2f1", "%2e%2e/%2e%2e/etc/passwd", "1%00", "1;x", "²"]
)
@pytest.mark.parametrize("rest", ["", "/events", "/script", "/trace"])
def test_a_run_that_is_none_is_not_found(client_of: ClientOf, run: str, rest: str) -> None:
    reply = client_of().get(f"/api/v1/lab/runs/{run}{rest}")
    assert reply.status_code in (404, 405, 422)
    assert "root:" not in reply.text
