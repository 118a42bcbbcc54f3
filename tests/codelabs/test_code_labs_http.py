"""Code labs over HTTP: listed, shown, handed in, kept, taken back; and what their verdicts leave."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.codelabs import service, work
from app.content.catalogue import Catalogue
from app.core.db import Database
from app.grading.hints import HINT_FACTOR
from labs.spec.code import MOST_CODE_BYTES
from tests.conftest import NOW
from tests.support.judged import judge_next

API = "/api/v1/labs"


def handed_in(client: TestClient, code: str = "x = 1\n", **more: str) -> int:
    reply = client.post(f"{API}/CL01/submissions", json={"code": code, **more})
    assert reply.status_code == 201
    found: int = reply.json()["id"]
    return found


def test_labs_are_listed_and_shown_without_their_solutions(client: TestClient, content: Catalogue) -> None:
    listed = client.get(API).json()
    assert [each["id"] for each in listed] == list(content.labs)
    assert {"id", "slug", "title", "about", "minutes", "signature", "concepts", "status"} <= set(listed[0])
    shown = client.get(f"{API}/write-a-ring-all-reduce").json()
    assert shown["id"] == "CL01"
    assert shown["draft"] == shown["starter"] == content.labs["CL01"].starter
    assert (shown["hints"], shown["hints_left"], shown["reference"], shown["right"]) == ([], 3, None, [])
    assert content.labs["CL01"].reference not in json.dumps(shown)
    assert client.get(f"{API}/CL99").status_code == 404


def test_a_submission_waits_is_judged_and_streams_what_happened(client: TestClient, database: Database) -> None:
    number = handed_in(client)
    waiting = client.get(f"{API}/submissions/{number}").json()
    assert (waiting["status"], waiting["queue_position"], waiting["verdict"]) == ("queued", 1, None)
    judge_next(database, passed=False, mistake="chunk-index")
    found = client.get(f"{API}/submissions/{number}").json()
    assert (found["status"], found["queue_position"]) == ("judged", None)
    verdict = found["verdict"]
    assert {"lab", "passed", "score", "checks", "mistake", "autopsy", "mistake_says"} <= set(verdict)
    assert verdict["mistake_says"]["cure"] == "C33"
    assert verdict["checks"][0]["title"] == "Every rank ends with the sum over all ranks"
    text = client.get(f"{API}/submissions/{number}/events").text
    assert [line for line in text.splitlines() if line.startswith(("id:", "event:"))] == [
        "id: 1",
        "event: chunk",
        "id: 2",
        "event: chunk",
        "event: end",
    ]
    resumed = client.get(f"{API}/submissions/{number}/events", headers={"Last-Event-ID": "1"}).text
    assert "id: 1" not in resumed
    assert "id: 2" in resumed
    assert client.get(f"{API}/submissions/99/events").status_code == 404
    refused = client.get(f"{API}/submissions/{number}/events", headers={"Last-Event-ID": "the second"})
    assert refused.status_code == 422
    assert [each["field"] for each in refused.json()["errors"]] == ["Last-Event-ID"]


def test_the_first_pass_is_evidence_for_what_the_hints_left_of_it(client: TestClient, database: Database) -> None:
    for _ in range(2):
        handed_in(client)
        judge_next(database, passed=False)
    opened = client.post(f"{API}/CL01/hints").json()
    assert (len(opened["hints"]), opened["hints_left"], opened["share_left"]) == (1, 2, HINT_FACTOR)
    handed_in(client)
    judge_next(database, passed=True)
    handed_in(client)
    judge_next(database, passed=True)
    with database.read() as session:
        evidence = service.list_evidence(session, 1)
    assert [(each.kind, each.item_id, each.share) for each in evidence] == [("code lab", "CL01", HINT_FACTOR)]
    assert client.get(API).json()[0]["status"] == "passed"
    shown = client.get(f"{API}/CL01").json()
    assert "def ring_all_reduce" in shown["reference"]
    assert len(shown["right"]) >= 3


def test_a_visible_run_passes_nothing(client: TestClient, database: Database) -> None:
    handed_in(client, mode="run")
    judge_next(database, passed=True)
    with database.read() as session:
        assert service.list_evidence(session, 1) == []
    assert client.get(API).json()[0]["status"] == "tried"


def test_the_same_key_hands_in_once_and_a_waiting_one_can_be_taken_back(client: TestClient) -> None:
    key = {"Idempotency-Key": "k"}
    replies = [client.post(f"{API}/CL01/submissions", json={"code": "x"}, headers=key) for _ in range(2)]
    assert {reply.json()["id"] for reply in replies} == {1}
    assert client.post(f"{API}/submissions/1/cancel").json()["status"] == "cancelled"
    assert "event: end" in client.get(f"{API}/submissions/1/events").text


def test_no_more_wait_than_may(client: TestClient) -> None:
    for _ in range(service.MOST_WAITING):
        handed_in(client)
    reply = client.post(f"{API}/CL01/submissions", json={"code": "x"})
    assert reply.status_code == 422
    assert "wait already" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"code": "x" * (MOST_CODE_BYTES + 1)}, f"up to {MOST_CODE_BYTES:,} bytes"),
        ({"code": "x = 1\ny\0"}, "line 2 has a NUL character"),
        ({"code": "x = 1\n\ud800"}, "line 2"),
        ({"code": 3}, "code"),
        ({"code": "x", "mode": "cheat"}, "mode"),
        ({}, "code"),
    ],
)
def test_what_is_no_program_is_refused_by_field(client: TestClient, body: dict[str, Any], says: str) -> None:
    for method, path in (("POST", "CL01/submissions"), ("PUT", "CL01/draft")):
        if method == "PUT" and "mode" in body:
            continue
        data = json.dumps(body).encode()
        reply = client.request(method, f"{API}/{path}", content=data, headers={"Content-Type": "application/json"})
        assert reply.status_code == 422
        assert says in json.dumps(reply.json())
    assert client.get(f"{API}/CL01").json()["last_submission"] is None


def test_a_draft_is_kept_and_all_hints_can_be_taken(client: TestClient) -> None:
    assert client.put(f"{API}/CL01/draft", json={"code": "half a"}).status_code == 200
    assert client.get(f"{API}/CL01").json()["draft"] == "half a"
    for left in (2, 1, 0):
        assert client.post(f"{API}/CL01/hints").json()["hints_left"] == left
    assert client.post(f"{API}/CL01/hints").status_code == 409


def test_what_another_tab_saved_is_not_written_over(client: TestClient) -> None:
    first = client.get(f"{API}/CL01").json()["draft_version"]
    theirs = client.put(f"{API}/CL01/draft", json={"code": "theirs", "over": first}).json()["version"]
    for method, path in (("PUT", "draft"), ("POST", "submissions")):
        late = client.request(method, f"{API}/CL01/{path}", json={"code": "mine", "over": first})
        assert late.status_code == 409
    for address in ("/labs/CL01", "/labs/CL01/hints"):  # without scripts both texts stand on the page
        page = client.post(address, data={"code": "my own", "over": first}, follow_redirects=False)
        assert page.status_code == 409
        assert "my own</textarea>" in page.text
        assert ">theirs</pre>" in page.text
    kept = client.get(f"{API}/CL01").json()
    assert (kept["draft"], kept["draft_version"]) == ("theirs", theirs)
    assert (kept["hints"], kept["last_submission"]) == ([], None)
    assert client.put(f"{API}/CL01/draft", json={"code": "theirs", "over": first}).status_code == 200  # the same text
    mine = client.post(f"{API}/CL01/submissions", json={"code": "mine", "over": theirs}).json()["draft_version"]
    assert client.put(f"{API}/CL01/draft", json={"code": "mine too", "over": mine}).status_code == 200


def test_a_worker_that_is_gone_gives_it_up_once_and_then_for_good(client: TestClient, database: Database) -> None:
    number = handed_in(client)
    for status in ("queued", "failed"):
        with database.write() as session:
            claim = work.claim_next(session, "worker", NOW)
            assert claim is not None
            assert work.give_up_on_stale(session, NOW, lambda _: True) == 1
            with pytest.raises(work.LeaseLost):
                work.beat(session, claim, NOW)
        assert client.get(f"{API}/submissions/{number}").json()["status"] == status


def test_a_proof_is_there_once_it_was_judged(client: TestClient, database: Database) -> None:
    number = handed_in(client, "x = 1\n")
    assert client.get(f"{API}/submissions/{number}/proof").status_code == 422
    judge_next(database, passed=True)
    proof = client.get(f"{API}/submissions/{number}/proof").json()
    assert (proof["lab"], proof["code"], proof["seed"], proof["verdict"]["passed"]) == ("CL01", "x = 1\n", 7, True)
    assert {"python", "torch", "rankzero"} <= set(proof["versions"])
