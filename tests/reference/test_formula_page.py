"""What stands beside a formula: how its value turns with each input, and where it is used."""

from __future__ import annotations

from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.reference.formula_page import Doubled, courses, doubled, taught_by
from app.reference.service import derive, find_formula


def test_each_number_is_doubled_in_turn() -> None:
    zero = find_formula("zero_state")
    opened = derive(zero, {"parameters": "7e9", "ranks": "8", "stage": "1"})
    assert opened.result == "38.5 GB"
    assert [(each.label, each.result, each.factor) for each in doubled(opened)] == [
        ("Parameters", "77 GB", "× 2"),
        ("Data-parallel ranks", "33.25 GB", "× 0.864"),  # 4 N + 12 N / 16
    ]
    whole = derive(zero, {"parameters": "7e9", "ranks": "8", "stage": "0"})
    assert doubled(whole)[1] == Doubled("Data-parallel ranks", "K", "112 GB", "the same")
    assert doubled(derive(zero, {"parameters": ""})) == ()
    drawn = courses(opened)
    assert drawn is not None
    assert [tick.text for tick in drawn.ticks] == ["0", "20", "40", "60", "80", "100", "120 GB"]
    parameters, ranks = drawn.curves
    assert (parameters.ends, ranks.ends) == (("1.203 GB", "77 GB"), ("112 GB", "33.25 GB"))
    assert (parameters.at, ranks.at) == (("0", "7B", "14B"), ("0", "8", "16"))
    assert parameters.path.endswith("L100.00 35.83"), "77 of 120, from above"
    assert (len(parameters.dots), len(ranks.dots)) == (0, 16), "a rank is whole: each count is a point"
    assert parameters.now == ranks.now == 100 * 38.5 / 120
    assert courses(derive(zero, {"parameters": ""})) is None


def test_a_formula_names_what_teaches_it(client: TestClient, content: Catalogue) -> None:
    links = {each.href for each in taught_by(content, find_formula("zero_state"))}
    assert {"/reference/zero-and-fsdp", "/study/cards/C62", f"/practice/{content.problems['P03'].slug}"} <= links
    html = client.get("/reference/formulas/zero_state?parameters=7e9&ranks=8&stage=3").text
    assert "If one of them doubles" in html
    assert '<td class="r num">28 GB</td>' in html
    assert all(f'href="{href}"' in html for href in links)
