"""Interviews over HTTP: solutions never reach the page before the sitting is closed."""

from __future__ import annotations

import re
from typing import Any

from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.interview import closing, overdue
from tests.conftest import Clock

HTML = {"Accept": "text/html"}
JSON = {"Accept": "application/json"}


def _start(client: TestClient) -> str:
    location: str = client.post("/interview/does-it-fit").headers["location"]
    return location


def _debrief(client: TestClient, sitting: str, level: str = "") -> str:
    """The scorecard's page, behind the question that comes before it."""
    client.post(f"{sitting}/expectation", data={"level": level})
    return client.get(sitting).text


def test_no_solution_is_on_the_page_while_it_runs(client: TestClient) -> None:
    sitting = _start(client)
    for part in ("q1", "q2", "q3"):
        html = client.get(f"{sitting}?part={part}").text
        for secret in (
            "The reduce-scatter moves half of an all-reduce",
            "reshard_after_forward",
            "exemplar",
            "16 for each",
        ):
            assert secret not in html


def test_typing_is_saved_and_comes_back(client: TestClient, clock: Clock) -> None:
    sitting = _start(client)
    clock.advance(minutes=2)
    saved = client.post(f"{sitting}/answers", data={"part": "q3", "answer": "so far"}, headers=JSON)
    assert saved.status_code == 200
    assert "saved_at" in saved.json()
    assert "so far" in client.get(f"{sitting}?part=q3").text
    assert client.get("/interview/M9").headers["location"] == sitting


def test_words_are_not_saved_over_what_another_tab_saved(client: TestClient) -> None:
    sitting = _start(client)

    def save(answer: str, over: str, final: str = "false", accept: dict[str, str] = JSON) -> Any:
        fields = {"part": "q3", "answer": answer, "over": over, "final": final}
        return client.post(f"{sitting}/answers", data=fields, headers=accept)

    first = _version(client.get(f"{sitting}?part=q3").text)
    theirs = save("A whole sentence.", first).json()["version"]
    late = save("A", first)
    assert (late.status_code, late.json()["type"]) == (409, "urn:rankzero:stale")
    page = save("A", first, "true", HTML)
    assert page.status_code == 409
    assert "A whole sentence.</pre>" in page.text, "which text is meant is asked with both in sight"
    assert "autofocus>A</textarea>" in page.text
    assert _version(page.text) == theirs, "so that the other may be replaced knowingly"
    assert "A whole sentence.</textarea>" in client.get(f"{sitting}?part=q3").text, "nothing was written over it"
    assert save("A whole sentence.", first).status_code == 200, "the same text is no other"
    assert save("A", theirs, "true").status_code == 200
    given = save("A whole sentence.", first)
    assert given.json()["type"] == "urn:rankzero:already-answered", "what was given is not asked for again"


def _version(html: str) -> str:
    found = re.search(r'name="over" value="(\w+)"', html)
    assert found is not None
    return found.group(1)


def test_a_late_answer_is_refused_and_what_was_saved_stays(client: TestClient, clock: Clock) -> None:
    sitting = _start(client)
    client.post(f"{sitting}/answers", data={"part": "q2", "answer": "memory-alone", "final": "true"})
    clock.advance(minutes=10, seconds=3)
    late = client.post(f"{sitting}/answers", data={"part": "q3", "answer": "my late words"}, headers=HTML)
    assert late.status_code == 409
    assert "3 s before this arrived" in late.text
    assert "my late words" in late.text, "what was sent can still be copied"
    scorecard = _debrief(client, sitting)
    assert "Scorecard" in scorecard
    assert "my late words" not in scorecard
    quiet = client.post(f"{sitting}/answers", data={"part": "q3", "answer": "x"}, headers=JSON)
    assert quiet.status_code == 409
    assert quiet.headers["content-type"] == "application/problem+json"


def test_looking_after_the_deadline_writes_nothing(
    client: TestClient, clock: Clock, database: Database, content: Catalogue
) -> None:
    sitting = _start(client)
    client.post(f"{sitting}/answers", data={"part": "q2", "answer": "memory-alone", "final": "true"})
    clock.advance(minutes=10, seconds=3)
    looked = client.get(sitting).text
    assert "Which level was that?" in looked
    with database.write() as session:
        assert overdue.has_overdue(session, clock())
        assert closing.close_overdue(session, content, clock()) == 1
    assert client.get(sitting).text == looked


def test_a_sitting_whose_time_was_up_when_it_was_looked_at_can_be_judged(client: TestClient, clock: Clock) -> None:
    sitting = _start(client)
    client.post(f"{sitting}/answers", data={"part": "q3", "answer": "Freed, then needed.", "final": "true"})
    clock.advance(minutes=10, seconds=3)
    assert "Scorecard" in _debrief(client, sitting)
    client.post(f"{sitting}/judgements/q3", data={"met": ["freed", "needed"]})
    assert client.get(sitting).text.count(" checked>") == 2


def test_finishing_shows_the_scorecard_and_twice_is_harmless(client: TestClient) -> None:
    sitting = _start(client)
    for _ in range(2):
        assert client.post(f"{sitting}/finish").headers["location"] == sitting
    assert "Scorecard" in _debrief(client, sitting)


def test_the_level_is_expected_before_the_debrief_and_the_first_word_stands(client: TestClient) -> None:
    sitting = _start(client)
    assert client.post(f"{sitting}/expectation", data={"level": "hire"}).status_code == 422
    client.post(f"{sitting}/finish")
    before = client.get(sitting).text
    assert "Which level was that?" in before
    assert "No hire: " not in before + client.get("/interview").text, "nothing gives the level away"
    refused = client.post(f"{sitting}/expectation", data={"level": "excellent"})
    assert (refused.status_code, "strong hire, hire" in refused.text) == (422, True)
    for level in ("hire", "no hire"):
        debrief = _debrief(client, sitting, level)
        assert "You expected hire, 2 levels too high." in debrief
    assert "you expected" in client.get("/interview").text


def test_judging_ticks_points(client: TestClient) -> None:
    sitting = _start(client)
    client.post(f"{sitting}/answers", data={"part": "q3", "answer": "Freed, then needed.", "final": "true"})
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/judgements/q3", data={"met": ["freed", "needed"]})
    html = _debrief(client, sitting)
    assert html.count(" checked>") == 2
    assert client.post(f"{sitting}/judgements/q3", data={"met": ["luck"]}).status_code == 422


def test_unknown_things_say_so(client: TestClient) -> None:
    assert client.get("/interview/M99", headers=HTML).status_code == 404
    assert client.get("/interview/sittings/99", headers=HTML).status_code == 404
    assert client.post("/interview/sittings/99/finish").status_code == 404


def _sat(client: TestClient, words: str, choice: str) -> str:
    """A sitting of M9 with a choice and words, ended."""
    sitting = _start(client)
    for part, answer in (("q2", choice), ("q3", words)):
        client.post(f"{sitting}/answers", data={"part": part, "answer": answer, "final": "1"})
    client.post(f"{sitting}/finish", data={})
    return sitting


def test_a_debrief_stands_beside_the_earlier_sittings(client: TestClient) -> None:
    first = _sat(client, "I do not know.", "half")
    assert "Beside your earlier sittings" not in _debrief(client, first), "there is none before the first"
    second = _sat(
        client, "A layer's weights are freed after forward, and backward needs the weights again.", "memory-alone"
    )
    html = _debrief(client, second)
    beside = html.partition('id="before"')[2].partition("</section>")[0]
    assert f'href="{first}"' in beside
    assert "No hire" in beside
    assert "Communication" in beside
    met = beside.partition("Missed last time, met now")[2]
    assert 'href="#part-q2"' in met
    assert 'href="#part-q3"' in met
    assert 'href="#part-q1"' not in met
    assert "Beside your earlier sittings" not in client.get(first).text, "a later sitting is not an earlier one"


def test_a_level_that_was_not_guessed_yet_is_not_told_beside_a_later_sitting(client: TestClient) -> None:
    _sat(client, "I do not know.", "half")
    assert "Beside your earlier sittings" not in _debrief(client, _sat(client, "I do not know.", "half"))
