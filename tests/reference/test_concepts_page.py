"""The concept map as a page."""

from __future__ import annotations

import re
from html import unescape

from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.content.concept_map import below, longest_way, way_to
from app.content.diagrams.svg import text_width
from app.reference.concept_chart import BAR, MOST_ROWS, WIDTH, Place, draw
from app.reference.concepts import weak_chain


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


def test_the_map_lights_the_way_to_an_idea_and_refuses_what_is_none(client: TestClient, content: Catalogue) -> None:
    html = client.get("/reference/concepts").text.split("data-map")[1].split("</nav>")[0]
    assert set(re.findall(r'data-idea="([\w-]+)"', html)) == set(content.concepts)
    lit = re.findall(r'class="idea on[ a-z]*"\s+href="\?to=([\w-]+)#map"', html)
    assert lit == longest_way(content.concepts)
    assert len(lit) > 5
    html = unescape(client.get("/reference/concepts?to=fsdp").text)
    way = way_to(content.concepts, "fsdp")
    assert f"FSDP rests on {len(way) - 1} ideas" in html
    assert set(re.findall(r'class="idea on[ a-z]*"\s+href="\?to=([\w-]+)#map"', html)) == set(way)
    between = re.findall(r'<path class="on" data-need="([\w-]+)" data-concept="([\w-]+)"', html)
    assert {each for pair in between for each in pair} == set(way), "every idea on the way hangs on a line"
    refused = client.get("/reference/concepts?to=nothing")
    assert refused.status_code == 404
    assert "Accepted: backprop" in unescape(refused.text)


def test_the_weak_path_is_the_longest_chain_of_weak_ideas(content: Catalogue) -> None:
    weak = ("data-parallel-traffic", "training-state", "zero-stages", "activations")
    assert weak_chain(content.concepts, weak) == ("training-state", "zero-stages", "data-parallel-traffic")
    assert weak_chain(content.concepts, ("activations", "training-state")) == ("activations",), "the weakest of two"
    assert weak_chain(content.concepts, ()) == ()


def test_every_need_lies_to_the_left_and_is_reached_by_lines_that_cross_no_concept(content: Catalogue) -> None:
    chart = draw(content.concepts)
    places, leads = chart.places, {(line.need, line.concept) for line in chart.lines}
    assert set(places) == set(content.concepts)
    assert len({(each.column, each.row) for each in places.values()}) == len(places), "two at one place"
    assert max(map(len, chart.columns)) <= MOST_ROWS
    for concept in content.concepts.values():
        assert all(places[need].column < places[concept.id].column for need in concept.needs)
        reached, waiting = set[str](), [concept.id]
        while waiting:
            found = [need for need, to in leads if to == waiting[-1]]
            waiting = waiting[:-1] + [need for need in found if need not in reached]
            reached.update(found)
        assert reached == below(content.concepts, concept.id), "what another need rests on is reached through it"
    for line in chart.lines:
        _passes_beside(line.path + line.passing, list(places.values()))


def _passes_beside(path: str, places: list[Place]) -> None:
    """Where a line runs flat past a column, no bar and no name is at its height."""
    at = 0.0, 0.0
    for command, numbers in re.findall(r"([MCH])([\d. ]+)", path):
        given = [float(each) for each in numbers.split()]
        if command == "H":
            for each in places:
                is_past = at[0] < 10 * (each.x + WIDTH) and given[0] > 10 * each.x
                assert not is_past or not each.top + BAR - 1 <= at[1] <= each.top + BAR + 3
            at = given[0], at[1]
        else:
            at = given[-2], given[-1]


def test_no_word_of_a_title_is_wider_than_its_place_on_a_page_of_1184_px(content: Catalogue) -> None:
    words = {word for each in content.concepts.values() for word in re.split(r"(?<=-)|\s", each.title)}
    assert {word for word in words if text_width(word) > 1184 * WIDTH / 100} == set()
