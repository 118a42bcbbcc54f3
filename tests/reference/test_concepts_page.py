"""The concept map as a page."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.content.diagrams.svg import LINE, NARROW, text_width
from app.reference.concepts import TALL, map_of, title_lines


def test_every_concept_is_listed_with_what_it_needs_and_the_cards_that_teach_it(
    client: TestClient, content: Catalogue
) -> None:
    html = unescape(client.get("/reference/concepts").text)
    for concept in content.concepts.values():
        entry = html.split(f'<li id="{concept.id}" data-sift-item>')[1].split("</li>")[0]
        assert f"<h3>{concept.title}</h3>" in entry
        assert set(re.findall(r'href="#([\w-]+)"', entry)) >= set(concept.needs)
    zero = html.split('<li id="zero-stages" data-sift-item>')[1].split("</li>")[0]
    assert 'href="/study/cards/C62"' in zero
    assert f'href="/practice/{content.problems["P03"].slug}"' in zero
    assert 'href="#fsdp"' in zero.split("Opens")[1], "what builds on it"


def test_the_map_leads_to_the_lists_and_is_no_second_way_for_the_keyboard(
    client: TestClient, content: Catalogue
) -> None:
    html = client.get("/reference/concepts").text.split('class="figures"')[1].split("<section")[0]
    assert set(re.findall(r'<a href="#([\w-]+)" tabindex="-1">', html)) == set(content.concepts)
    assert "style=" not in html, "the content security policy allows no inline style"
    for group in {concept.group for concept in content.concepts.values()}:
        assert f"<b>{group}</b>" in html


def test_no_line_runs_through_a_concept_and_no_title_is_clipped(content: Catalogue) -> None:
    for group in {concept.group for concept in content.concepts.values()}:
        members = {key: each for key, each in content.concepts.items() if each.group == group}
        drawn = map_of(members)
        for line in drawn.lines:
            for (x0, y0), (x1, y1) in pairwise(line):
                for at in range(1, 200):
                    x, y = x0 + (x1 - x0) * at / 200, y0 + (y1 - y0) * at / 200
                    inside = [
                        key
                        for key, (left, top) in drawn.places.items()
                        if left < x < left + drawn.width and top < y < top + TALL
                    ]
                    assert not inside, (group, inside)
        for concept in members.values():
            lines = title_lines(concept, drawn.width)
            assert len(lines) * LINE <= TALL, concept.title
            assert all(text_width(each) <= drawn.width for each in lines), concept.title
            assert "".join(lines).replace("-", "").replace(" ", "") == re.sub(r"[- ]", "", concept.title)
        assert max(left + drawn.width for left, _ in drawn.places.values()) <= NARROW
        needs = sum(need in members for each in members.values() for need in each.needs)
        assert len(drawn.lines) == needs
