"""Search over everything we ship, as page, fragment and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.settings import Settings
from app.decks import service as decks
from app.decks.drafts import Draft
from app.main import create_app
from app.search.service import build_index
from tests.conftest import NOW


@pytest.fixture
def page(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize(
    ("query", "group", "first"),
    [
        ("C62", "cards", "C62"),
        ("P15", "problems", "P15"),
        ("L10", "experiments", "L10"),
        ("E026", "errata", "E026"),
        ("F10", "formulas", "ring_all_reduce"),
        ("MFU", "terms", "MFU"),
        ("zero", "terms", "ZeRO"),
        ("reduce-scatter", "terms", "Reduce-scatter"),
        ("pipeline bubble", "problems", "P15"),
        ("number formats", "pages", "number-formats#"),
        ("sixty second", "pages", "sixty-second-answers#"),
        ("training state", "formulas", "training_state"),
    ],
)
def test_what_one_looks_for_is_the_first_of_its_group(page: TestClient, query: str, group: str, first: str) -> None:
    found = {each["group"]: each for each in page.get("/api/v1/search", params={"q": query}).json()["groups"]}
    assert found[group]["hits"][0]["key"].startswith(first)


def test_a_hit_says_where_it_leads_and_what_was_found(page: TestClient) -> None:
    reply = page.get("/api/v1/search", params={"q": "does zero-2 halve", "limit": 2}).json()
    cards = next(group for group in reply["groups"] if group["group"] == "cards")
    assert len(cards["hits"]) <= 2
    first = cards["hits"][0]
    assert (first["key"], first["href"], first["note"]) == ("C67", "/study/cards/C67", "card C67")
    assert any(piece["is_hit"] for piece in first["snippet"])
    assert page.get(first["href"]).status_code == 200
    assert reply["count"] >= len(cards["hits"])


@pytest.mark.slow
def test_every_kind_of_thing_is_found_and_opens(page: TestClient, content: Catalogue) -> None:
    index = build_index(content)
    assert {each.group for each in index.documents} == {
        "labs",
        "pages",
        "terms",
        "cards",
        "problems",
        "rubrics",
        "experiments",
        "formulas",
        "errata",
    }
    addresses = {each.href.partition("#")[0] for each in index.documents}
    for address in addresses:
        assert page.get(address, follow_redirects=True).status_code == 200, address


def test_the_page_shows_groups_with_found_words_marked(page: TestClient) -> None:
    html = page.get("/search", params={"q": "bubble"}).text
    assert "<mark>bubble</mark>" in html
    assert 'href="/practice/' in html
    assert 'value="bubble"' in html
    assert "results for “bubble”" in html


def test_the_dialog_gets_the_list_alone(page: TestClient) -> None:
    html = page.get("/search/results", params={"q": "bubble"}).text
    assert "<html" not in html
    assert "data-hit" in html
    assert "Type a word" in page.get("/search/results").text
    assert "Nothing is called “zzzz”" in page.get("/search/results", params={"q": "zzzz"}).text


@pytest.mark.parametrize("query", ["<script>alert(1)</script>", "{{ 7 * 7 }}", "\x00", "a" * 1000, "%", '"'])
def test_no_query_breaks_the_page(page: TestClient, query: str) -> None:
    reply = page.get("/search", params={"q": query})
    assert reply.status_code == 200
    assert "<script>alert" not in reply.text
    assert page.get("/api/v1/search", params={"q": query}).status_code == 200


@pytest.fixture
def shop(database: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    """The pages over both databases, with cards of the learner's own."""
    with database.write() as session:
        for question, answer in (
            (r"How many bytes does a zebra-wise $\frac{2(n-1)}{n} S$ move?", "As many as a ring."),
            ("What else?", "The **bubble** of a zebra pipeline."),
        ):
            decks.add(session, 1, Draft(sections={"Question": question, "Answer": answer}), NOW, None)
    app = create_app(settings_for(), database)
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def test_own_cards_are_found(shop: TestClient) -> None:
    found = shop.get("/api/v1/search", params={"q": "zebra"}).json()
    assert [(group["group"], group["count"]) for group in found["groups"]] == [("own", 2)]
    titles = {hit["title"] for hit in found["groups"][0]["hits"]}
    assert "How many bytes does a zebra-wise 2(n − 1)/n S move?" in titles
    for hit in found["groups"][0]["hits"]:
        assert any(piece["is_hit"] for piece in hit["snippet"])
        assert shop.get(hit["href"]).status_code == 200
    assert shop.get("/api/v1/search", params={"q": "zebra", "limit": 1}).json()["groups"][0]["count"] == 2


def test_own_cards_come_first_where_they_are_called_so(shop: TestClient) -> None:
    groups = [group["group"] for group in shop.get("/api/v1/search", params={"q": "bubble"}).json()["groups"]]
    assert len(groups) > 1
    assert groups[-1] == "own", "it is only mentioned there"
    groups = [group["group"] for group in shop.get("/api/v1/search", params={"q": "bytes zebra"}).json()["groups"]]
    assert groups[0] == "own"
    assert "Your cards" in shop.get("/search/results", params={"q": "bubble"}).text


@pytest.mark.parametrize("query", ["\x00", "%", "_", "\\"])
def test_own_cards_are_not_found_by_signs(shop: TestClient, query: str) -> None:
    found = shop.get("/api/v1/search", params={"q": query}).json()
    assert "own" not in [group["group"] for group in found["groups"]]


def test_a_query_beyond_all_bounds_is_refused(page: TestClient) -> None:
    assert page.get("/api/v1/search", params={"q": "a" * 1001}).status_code == 422
    assert page.get("/api/v1/search", params={"q": "a", "limit": 0}).status_code == 422
