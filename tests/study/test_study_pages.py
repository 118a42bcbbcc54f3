"""The study room's pages over HTTP: what they carry, what they refuse, and what a first visit weighs."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urljoin

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.study.models import InterviewPlan
from tests.conftest import NOW, Clock

HTMX = {"HX-Request": "true"}
FIRST_PAGE_BYTES = 150_000


def _next(client: TestClient) -> dict:  # type: ignore[type-arg]
    return client.get("/api/v1/study/next").json()


def _answer(client: TestClient, level: int = 4, **more: str):  # type: ignore[no-untyped-def]
    card = _next(client)["card"]
    form = {"card_id": card["card_id"], "version": str(card["version"]), "level": str(level), **more}
    return card["card_id"], client.post("/study/reviews", data=form, headers=HTMX)


def test_a_first_visit_weighs_little(client: TestClient) -> None:
    """The page with every stylesheet, script and module it loads, as it goes over the wire, headers left aside."""
    reply = client.get("/study")
    waiting = re.findall(r'<(?:link[^>]*href|script[^>]*src)="(/static/[^"]+)"', reply.text)
    total, seen = len(reply.content), set()
    while waiting:
        address = waiting.pop().split("?")[0]
        if address in seen:
            continue
        seen.add(address)
        found = client.get(address)
        assert found.status_code == 200, address
        with client.stream("GET", address) as sent:
            total += sum(map(len, sent.iter_raw()))
        waiting += [urljoin(address, name) for name in re.findall(r'from "(\./[^"]+)"', found.text)]
    assert {"/static/study.css", "/static/study-swipe.js", "/static/dom.js"} <= seen
    assert FIRST_PAGE_BYTES / 10 < total <= FIRST_PAGE_BYTES, total


def test_a_filter_travels_from_card_to_card(client: TestClient) -> None:
    page = client.get("/study?deck=DK7&more=6").text
    assert "Only ZeRO and FSDP." in page
    for name, value in (("deck", "DK7"), ("more", "6")):
        assert page.count(f'<input type="hidden" name="{name}" value="{value}">') >= 3
    card = re.search(r'data-card="(\w+)"', page)
    assert card
    form = {"card_id": card[1], "version": "0", "level": "4", "deck": "DK7"}
    assert "Only ZeRO and FSDP." in client.post("/study/reviews", data=form, headers=HTMX).text
    assert client.post("/study/undo", data={"deck": "DK7"}).headers["location"] == "/study?deck=DK7"
    refused = client.get("/study?state=odd", headers={"Accept": "application/json"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "state"


def test_the_same_key_counts_once_and_says_so(client: TestClient) -> None:
    card = _next(client)["card"]["card_id"]
    form = {"card_id": card, "version": "0", "level": "4", "key": "k-1"}
    first = client.post("/study/reviews", data=form, headers=HTMX)
    again = client.post("/study/reviews", data=form, headers=HTMX)
    other = client.post("/study/reviews", data={**form, "key": "k-2"}, headers=HTMX)
    assert "was counted" not in first.text
    assert f"Your answer to {card} was counted." in again.text
    assert "Nothing was counted twice" in other.text
    assert _next(client)["progress"]["done"] == 1


def test_a_page_without_a_reply_can_ask_what_became_of_its_answer(client: TestClient) -> None:
    card = _next(client)["card"]["card_id"]
    address = f"/api/v1/study/reviews/{card}/0?key=k-1"
    assert client.get(address).json() == {"recorded": False}
    client.post("/study/reviews", data={"card_id": card, "version": "0", "level": "3", "key": "k-1"})
    assert client.get(address).json() == {"recorded": True, "same_request": True, "level": 3, "undone": False}
    assert client.get(address.replace("k-1", "k-2")).json()["same_request"] is False
    client.post("/study/undo")
    assert client.get(address).json()["undone"] is True


def test_burying_goes_on_and_can_be_taken_back_where_it_is_said(client: TestClient) -> None:
    card = _next(client)["card"]["card_id"]
    page = client.post("/study/marks", data={"card_id": card, "action": "bury"}, headers=HTMX).text
    assert f"{card} waits until tomorrow." in page
    assert f'data-card="{card}"' not in page
    assert 'value="unbury"' in page
    back = client.post("/study/marks", data={"card_id": card, "action": "unbury"}, headers=HTMX).text
    assert f'data-card="{card}"' in back


def test_a_note_is_text_whatever_was_typed(client: TestClient) -> None:
    card = _next(client)["card"]["card_id"]
    form = {"card_id": card, "action": "note", "note": "<script>alert(1)</script> {{ 7 * 7 }}", "revealed": card}
    page = client.post("/study/marks", data=form, headers=HTMX).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{ 7 * 7 }}" in page
    assert "<script>alert" not in page
    assert "data-answer hidden" not in page, "an open card stays open"
    assert "{{ 7 * 7 }}" in client.get(f"/study/cards/{card}").text
    assert "&lt;script&gt;" in client.get("/study/cards?state=noted").text


def test_a_cards_own_page_has_its_history_and_its_marks(client: TestClient) -> None:
    card, _ = _answer(client, 5)
    page = client.get(f"/study/cards/{card}").text
    assert "1 entry" in page
    assert "easy" in page
    reply = client.post(f"/study/cards/{card}/marks", data={"action": "suspend"})
    assert (reply.status_code, reply.headers["location"]) == (303, f"/study/cards/{card}")
    assert "Bring it back" in client.get(f"/study/cards/{card}").text


@pytest.mark.parametrize(
    ("query", "has", "has_not"),
    [
        ("", ["C01", "Page 1 of"], []),
        ("deck=DK7", ["C62"], ["C27,"]),
        ("q=bubble", ["C55"], ["C27,"]),
        ("state=suspended", ["No card is like that"], []),
        ("state=new&concept=backprop", ["C01"], ["C62,"]),
    ],
)
def test_the_list_is_narrowed(client: TestClient, query: str, has: list[str], has_not: list[str]) -> None:
    page = client.get(f"/study/cards?{query}").text
    listing = page[page.index('id="found"') :]
    for text in has:
        assert text in listing, query
    for text in has_not:
        assert text not in listing, query


def test_looking_through_cards_goes_from_one_to_the_next_and_counts_nothing(client: TestClient) -> None:
    page = client.get("/study/cram?deck=DK7").text
    seen = []
    while (after := re.search(r'rel="next" href="([^"]+)"', page)) and len(seen) < 99:
        seen.append(re.search(r"· (\w+) · new", page)[1])  # type: ignore[index]
        page = client.get(after[1].replace("&amp;", "&")).text
    size = int(re.search(r"through (\d+) cards", page)[1])  # type: ignore[index]
    assert len(set(seen)) == size - 1
    assert _next(client)["progress"]["done"] == 0
    assert 'id="answer"' in client.get("/study/cram?deck=DK7&reveal=true").text


def test_settings_are_kept_and_what_is_wrong_is_said_at_its_field(client: TestClient) -> None:
    form = {"new_per_day": "7", "reviews_per_day": "", "desired_retention": "92.5 %"}
    assert client.post("/settings", data=form).status_code == 303
    assert _next(client)["progress"]["left"] == 7
    page = client.get("/settings?saved=true").text
    assert 'value="92.5"' in page
    wrong = client.post("/settings", data={**form, "new_per_day": "many", "desired_retention": "99"})
    assert wrong.status_code == 422
    assert 'value="many"' in wrong.text
    assert "It is no number. Accepted: a whole number from 0 to 9999." in wrong.text
    assert client.post("/settings", data={**form, "desired_retention": "99"}).text.count("aria-invalid") == 1
    assert _next(client)["progress"]["left"] == 7, "nothing was changed"


def test_the_settings_say_what_an_interview_plan_sets_instead(client: TestClient, database: Database) -> None:
    client.post("/settings", data={"new_per_day": "7", "reviews_per_day": "", "desired_retention": "92"})
    assert "interview plan" not in client.get("/settings").text
    day = NOW.date() + timedelta(days=14)
    with database.write() as session:
        session.add(
            InterviewPlan(
                learner_id=1,
                day=day,
                minutes_per_day=20,
                started_on=NOW.date(),
                set_at=NOW,
                card_order=[],
                strategy={"retention": 0.8},
                planned_day=NOW.date().toordinal(),
                new_today=31,
            )
        )
    page = client.get("/settings").text
    assert "Your interview plan goes first" in page
    assert "Today your plan takes 31 instead." in page
    assert "Your plan goes by 80 % instead." in page
    assert 'value="7"' in page, "the field keeps the learner's own choice"
    assert 'value="92"' in page


def test_a_placement_test_is_taken_in_the_browser(client: TestClient, clock: Clock) -> None:
    assert "/study/placement/DK7" in client.get("/settings").text
    page = client.get("/study/placement/DK7").text
    names = sorted(set(re.findall(r'type="radio" name="(\w+)"', page)))
    assert len(names) == 6
    done = client.post("/study/placement/DK7", data=dict.fromkeys(names, "known"))
    assert "You knew 100 % of the sample." in done.text
    clock.advance(days=12)
    assert _next(client)["progress"]["left"] > 12
    assert client.post("/study/placement/DK7", data={"C999": "known"}).status_code == 422


def test_a_lapse_too_many_is_said_above_the_next_card(client: TestClient, clock: Clock) -> None:
    card = _next(client)["card"]["card_id"]
    said = ""
    for lapse in range(9):
        for level in (5, 1) if lapse else (5,):
            shown = client.get(f"/api/v1/study/next?state={'due' if lapse else ''}").json()["card"]
            assert shown["card_id"] == card
            form = {"card_id": card, "version": str(shown["version"]), "level": str(level)}
            said = client.post("/study/reviews", data=form, headers=HTMX).text
            clock.advance(**({"minutes": 11} if level == 1 else {"days": 400}))
    assert f"{card}, " in said
    assert "was forgotten 8 times" in said
    assert "/reference/" in said


def test_an_address_that_only_takes_a_form_leads_to_its_page(client: TestClient) -> None:
    for address, page in (
        ("/interview/sittings/7/answers", "/interview/sittings/7"),
        ("/interview/sittings/7/judgements/2", "/interview/sittings/7"),
        ("/practice/P01/3/hints", "/practice/P01/3"),
        ("/labs/CL01/hints", "/labs/CL01"),
        ("/lab/runs/7/name", "/lab/runs/7"),
        ("/progress/fit", "/progress"),
    ):
        reply = client.get(address, headers={"accept": "text/html"}, follow_redirects=False)
        assert (reply.status_code, reply.headers["location"]) == (303, page)
    assert client.get("/api/v1/study/reviews").status_code == 405
