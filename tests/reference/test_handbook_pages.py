"""Handbook, glossary and errata over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import NotFound
from app.core.settings import Settings
from app.main import create_app
from app.reference import handbook


@pytest.fixture
def page(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def links(html: str) -> set[str]:
    return {address.partition("#")[0] for address in re.findall(r'href="(/[^"?]*)"', html)}


def test_the_reference_lists_every_page_before_the_formulas(page: TestClient, content: Catalogue) -> None:
    html = page.get("/reference").text
    places = [html.index(f'href="/reference/{slug}"') for slug in content.pages]
    assert max(places) < html.index('href="/reference/formulas/')
    assert {"/reference/glossary", "/reference/errata", "/reference/concepts", "/reference/validation"} <= links(html)


def test_a_page_has_its_sections_figures_and_neighbours(page: TestClient) -> None:
    html = page.get("/reference/zero-and-fsdp").text
    assert "<h1>ZeRO and FSDP</h1>" in html
    for anchor in re.findall(r'<a href="#([a-z0-9-]+)">', html.partition('class="toc')[2].partition("</nav>")[0]):
        assert f'id="{anchor}"' in html
    assert 'class="live"' in html
    assert "Model state per GPU, 7B over 8 GPUs" in html
    assert 'href="/study/cards/C62"' in html
    assert 'href="/practice/zero-bytes' in html
    assert 'rel="prev" href="/reference/large-batch"' in html
    assert 'rel="next" href="/reference/deepspeed-and-fsdp"' in html


@pytest.mark.slow
def test_every_page_and_every_link_of_the_room_opens(page: TestClient, content: Catalogue) -> None:
    room = {"/reference", "/reference/glossary", "/reference/errata", *(f"/reference/{slug}" for slug in content.pages)}
    found = set[str]()
    for address in room:
        reply = page.get(address)
        assert reply.status_code == 200, address
        found |= links(reply.text)
    for address in found - room:
        if address.startswith(("/reference", "/study/cards", "/practice/", "/lab/experiments/")):
            assert page.get(address, follow_redirects=True).status_code == 200, address


def test_pages_turn_from_the_first_to_the_last(content: Catalogue) -> None:
    order = [each.slug for _, pages in handbook.page_groups(content) for each in pages]
    assert sorted(order) == sorted(content.pages)
    walked = [order[0]]
    while following := handbook.show_page(content, walked[-1]).next:
        walked.append(following.slug)
    assert walked == order
    assert handbook.show_page(content, order[0]).previous is None


def test_a_page_leads_to_the_cards_of_its_concepts(content: Catalogue) -> None:
    shown = handbook.show_page(content, "pipeline-parallelism")
    named = {link.href for link in shown.links}
    assert "/study/cards/C55" in named
    for card in shown.other_cards:
        assert set(card.head.concepts) & set(shown.page.head.concepts)
        assert f"/study/cards/{card.id}" not in named


def test_a_page_starts_a_session_of_all_its_cards(page: TestClient, content: Catalogue) -> None:
    shown = handbook.show_page(content, "zero-and-fsdp")
    cards = {card.id for card in shown.cards}
    assert cards >= {"C62", *(card.id for card in shown.other_cards)}
    assert (
        f'href="/study?page=zero-and-fsdp">Study these {len(cards)} cards' in page.get("/reference/zero-and-fsdp").text
    )
    html = page.get("/study?page=zero-and-fsdp").text
    assert "Only the cards of “ZeRO and FSDP”" in html
    assert '<input type="hidden" name="page" value="zero-and-fsdp">' in html, "an answer stays in it"
    assert re.findall(r'data-card="(\w+)"', html)[0] in cards
    assert "There is no such page" in page.get("/study?page=nowhere", headers={"Accept": "text/html"}).text


def test_a_note_stands_beside_the_text_it_follows(page: TestClient) -> None:
    html = page.get("/reference/key-takeaways").text
    beside = html.split('<div class="noted">')[1]
    assert beside.index("Time between failures") < beside.index('<aside class="side">')
    assert html.count("say these five") == 1


def test_what_is_no_page_is_not_found(page: TestClient, content: Catalogue) -> None:
    assert page.get("/reference/nowhere", headers={"Accept": "text/html"}).status_code == 404
    with pytest.raises(NotFound, match="no page 'nowhere'"):
        handbook.show_page(content, "nowhere")


def test_the_glossary_can_be_linked_to_by_term(page: TestClient) -> None:
    html = page.get("/reference/glossary").text
    entry = html[html.index('id="reduce-scatter"') :]
    assert entry.index("Half the bytes of an all-reduce") < 400
    assert '<a href="/reference/collectives">' in entry[:600]


def test_errata_stand_by_topic_with_where_they_are_taught(page: TestClient, content: Catalogue) -> None:
    html = page.get("/reference/errata").text
    for key in content.handbook.errata:
        assert html.count(f'id="{key}"') == 1
    entry = html[html.index('id="E026"') :].partition("</article>")[0]
    assert "ZeRO-2 communicates less than DDP" in entry
    assert 'href="/study/cards/C67"' in entry
    assert 'href="/reference/zero-and-fsdp"' in entry
    assert "Not taught: a difference in the last digits" in html


def test_answers_to_say_aloud_need_no_script(page: TestClient) -> None:
    html = page.get("/reference/sixty-second-answers").text
    assert html.count("<details><summary>What a full answer has") == 12
    assert "aloud.js" in html
    assert "aloud.js" not in page.get("/reference/ddp").text
