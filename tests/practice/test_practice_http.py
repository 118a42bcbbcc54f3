"""Practice as programs call it and as pages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.practice.variants import make_variant
from tests.practice.conftest import opened

API = "/api/v1/problems"
HTMX = {"HX-Request": "true"}


def keys(content: Catalogue, problem: str, seed: int) -> dict[str, str]:
    return {part.id: part.answer_text for part in make_variant(content.problems[problem], seed).parts}


def issued(client: TestClient, problem: str = "P03") -> int:
    reply = client.post(f"{API}/{problem}/variants")
    assert reply.status_code == 201
    seed: int = reply.json()["seed"]
    return seed


def problem_details(reply: Any, status: int) -> dict[str, Any]:
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = reply.json()
    assert {"type", "title", "status", "detail"} <= set(body)
    assert body["status"] == status
    return body


def test_problems_are_listed(page: TestClient, content: Catalogue) -> None:
    listed = page.get(API).json()
    assert [each["id"] for each in listed] == list(content.problems)
    assert {"id", "slug", "title", "concepts", "minutes"} <= set(listed[0])


def test_a_variant_says_what_is_asked_and_not_the_key(page: TestClient, content: Catalogue) -> None:
    found = page.get(f"{API}/P03/variants/7").json()
    assert (found["id"], found["seed"]) == ("P03", 7)
    assert found["statement_html"].startswith("<p>A 3B model")
    assert [part["id"] for part in found["parts"]] == ["a", "b", "c"]
    for part in found["parts"]:
        assert {"id", "kind", "prompt", "choices", "unit", "tolerance"} <= set(part)
        assert part["kind"] == "number"
    assert all(key not in str(found) for key in keys(content, "P03", 7).values())


@pytest.mark.parametrize("name", ["P03", "p03", "zero-bytes-per-gpu"])
def test_an_id_is_accepted_wherever_a_slug_is(page: TestClient, name: str) -> None:
    assert page.get(f"{API}/{name}/variants/7").json()["id"] == "P03"
    assert page.post(f"{API}/{name}/variants").json()["id"] == "P03"


def test_answers_are_graded_part_by_part(client: TestClient, content: Catalogue) -> None:
    seed = issued(client)
    right = keys(content, "P03", seed)
    stage_3 = right["c"]
    reply = client.post(f"{API}/P03/variants/{seed}/answers", json={"answers": {"a": stage_3, "b": "112"}}).json()
    assert reply["score"] is None
    by_id = {part["id"]: part for part in reply["parts"]}
    assert (by_id["a"]["status"], by_id["a"]["misconception"]) == ("wrong", "everything-sharded")
    assert (by_id["b"]["status"], by_id["b"]["credit"]) == ("invalid", 0)
    assert "unit is missing" in by_id["b"]["message"]
    assert (by_id["c"]["status"], by_id["c"]["message"]) == ("invalid", "Not answered yet.")
    reply = client.post(f"{API}/P03/variants/{seed}/answers", json={"answers": right}).json()
    assert [part["status"] for part in reply["parts"]] == ["wrong", "correct", "correct"]
    assert reply["score"] == pytest.approx(2 / 3, abs=1e-4)


def test_the_same_idempotency_key_gets_the_same_variant(client: TestClient) -> None:
    def ask(key: str) -> int:
        return client.post(f"{API}/P03/variants", headers={"Idempotency-Key": key}).json()["seed"]  # type: ignore[no-any-return]

    assert ask("one") == ask("one")
    assert ask("one") != ask("two")


def test_the_same_idempotency_key_gets_the_same_grades(client: TestClient, content: Catalogue) -> None:
    seed = issued(client)
    address, sent = f"{API}/P03/variants/{seed}/answers", {"Idempotency-Key": "answers"}
    first = client.post(address, json={"answers": {"a": "1 B"}}, headers=sent).json()
    assert client.post(address, json={"answers": {"a": "1 B"}}, headers=sent).json() == first
    problem_details(client.post(address, json={"answers": keys(content, "P03", seed)}, headers=sent), 422)
    problem_details(client.post(f"{API}/P03/variants", headers=sent), 422)


def test_a_seed_nobody_was_given_is_graded_without_being_kept(page: TestClient, content: Catalogue) -> None:
    reply = page.post(f"{API}/P03/variants/7/answers", json={"answers": keys(content, "P03", 7)})
    assert reply.json()["score"] == 1.0
    assert "not tried" in page.get("/practice").text


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/P99/variants/1", None, 404),
        ("POST", "/P99/variants", None, 404),
        ("GET", "/P03/variants/-1", None, 404),
        ("GET", "/P03/variants/99999999999999999999", None, 404),
        ("POST", "/P03/variants/99999999999999999999/answers", {"answers": {"a": "1 GB"}}, 404),
        ("GET", "/P03/variants/seven", None, 422),
        ("POST", "/P03/variants/7/answers", {"answers": {"z": "1 GB"}}, 422),
        ("POST", "/P03/variants/7/answers", {"answers": {"a": 5}}, 422),
        ("POST", "/P03/variants/7/answers", {"answers": ["1 GB"]}, 422),
        ("POST", "/P03/variants/7/answers", {}, 422),
        ("POST", "/P03/variants/7/answers", {"answers": {"a": "1" * 10_000}}, 422),
        ("DELETE", "/P03/variants/7", None, 405),
    ],
)
def test_what_cannot_be_done_is_problem_details(
    page: TestClient, method: str, path: str, body: Any, status: int
) -> None:
    problem_details(page.request(method, API + path, json=body), status)


def test_an_unknown_part_is_named_with_those_there_are(page: TestClient) -> None:
    reply = page.post(f"{API}/P03/variants/7/answers", json={"answers": {"z": "1 GB"}})
    assert problem_details(reply, 422)["errors"] == [
        {"field": "answers.z", "value": "z", "message": "There is no such part.", "accepted": "a, b, c"}
    ]


@pytest.mark.parametrize("text", ["\\ud800", "5\\u0000 GB", "1e-320 B", "9**9**9 B", "\\ud83d\\ude42"])
def test_no_text_breaks_the_grading_or_the_page_afterwards(client: TestClient, text: str) -> None:
    seed = issued(client)
    reply = client.post(
        f"{API}/P03/variants/{seed}/answers",
        content=f'{{"answers": {{"a": "{text}"}}}}',
        headers={"content-type": "application/json"},
    )
    assert reply.json()["parts"][0]["status"] == "invalid"
    assert client.get(f"/practice/P03/{seed}").status_code == 200


def test_the_list_leads_to_every_problem(page: TestClient, content: Catalogue) -> None:
    html = page.get("/practice").text
    for problem in content.problems.values():
        assert f'href="/practice/{problem.slug}"' in html
    assert html.count('class="visually-hidden">not tried') == len(content.problems)


def test_opening_a_problem_leads_to_one_variant_until_it_is_settled(client: TestClient, content: Catalogue) -> None:
    first = client.get("/practice/P03")
    assert first.status_code == 200
    assert 'action="/practice/zero-bytes-per-gpu/variants" data-start' in first.text
    assert client.get("/practice/P03").status_code == 200  # nothing was issued
    address = client.post("/practice/P03/variants").headers["location"]
    assert client.get("/practice/P03").headers["location"] == address
    assert re.fullmatch(r"/practice/zero-bytes-per-gpu/\d+", address)
    assert client.get("/practice/zero-bytes-per-gpu").headers["location"] == address
    client.post(address, data=form(content, address))
    assert opened(client, "P03") != address


def form(content: Catalogue, address: str, **changed: str) -> dict[str, str]:
    """The answer fields of the variant at `address`, all right but for what is changed."""
    right = keys(content, "P03", int(address.rpartition("/")[2]))
    return {f"answer.{part}": text for part, text in (right | changed).items()}


def test_the_page_does_not_give_its_key_away(page: TestClient, content: Catalogue) -> None:
    html = page.get("/practice/P03/7").text
    assert "A 3B model" in html
    assert all(key not in html for key in keys(content, "P03", 7).values())


def test_answering_without_script_redirects_to_the_graded_page(client: TestClient, content: Catalogue) -> None:
    address = opened(client, "P03")
    assert "Worked solution" not in client.get(address).text
    reply = client.post(address, data=form(content, address, b="1 B"))
    assert (reply.status_code, reply.headers["location"]) == (303, address)
    after = client.get(address).text
    assert "Worked solution" in after
    assert "2 of 3 right" in after
    assert "score 67 %" in after
    assert "Another variant" in after
    assert "67 %" in client.get("/practice").text


def test_answering_with_htmx_gets_the_graded_part_of_the_page(page: TestClient, content: Catalogue) -> None:
    address = opened(page, "P03")
    reply = page.post(address, data=form(content, address), headers=HTMX)
    assert reply.status_code == 200
    assert "<html" not in reply.text
    assert 'id="problem"' in reply.text
    assert reply.text.count("Correct.") == 3


def test_an_unreadable_answer_stays_in_its_field_and_costs_nothing(page: TestClient, content: Catalogue) -> None:
    address = opened(page, "P03")
    reply = page.post(address, data=form(content, address, a='38.5 <b>"GB'), headers=HTMX)
    assert "Not counted." in reply.text
    assert 'value="38.5 &lt;b&gt;&#34;GB"' in reply.text
    assert "Worked solution" not in reply.text
    assert "Worked solution" in page.post(address, data=form(content, address), headers=HTMX).text


def test_a_hint_opens_and_what_was_typed_stays(client: TestClient) -> None:
    address = opened(client, "P03")
    reply = client.post(f"{address}/hints", data={"answer.a": "38 G"}, headers=HTMX)
    assert 'value="38 G"' in reply.text
    assert "Which of weights, gradients and optimizer does each stage shard?" in reply.text
    assert "1 of 3 opened" in reply.text
    assert client.post(f"{address}/hints").headers["location"] == address
    assert "2 of 3 opened" in client.get(address).text


def test_a_hint_for_a_variant_nobody_was_given_is_not_found(page: TestClient) -> None:
    for seed in ("7", "99999999999999999999"):
        assert page.post(f"/practice/P03/{seed}/hints").status_code == 404


def test_a_form_with_a_part_that_does_not_exist_says_so_on_the_page(page: TestClient) -> None:
    address = opened(page, "P03")
    for headers in ({}, HTMX):
        reply = page.post(address, data={"answer.z": "1 GB"}, headers=headers)
        assert reply.status_code == 422
        assert "There is no such part." in reply.text


def test_another_variant_is_a_new_one(page: TestClient, content: Catalogue) -> None:
    address = opened(page, "P03")
    page.post(address, data=form(content, address))
    fresh = page.post("/practice/P03/variants")
    assert fresh.status_code == 303
    assert fresh.headers["location"] != address
    assert page.get(fresh.headers["location"]).status_code == 200


@pytest.mark.parametrize("path", ["/practice/P99", "/practice/P99/7", "/practice/P03/-1", "/practice/nothing"])
def test_what_does_not_exist_is_a_page_that_says_so(page: TestClient, path: str) -> None:
    reply = page.get(path, headers={"accept": "text/html"})
    assert reply.status_code == 404
    assert reply.headers["content-type"].startswith("text/html")
    assert "There is no such page" in reply.text
