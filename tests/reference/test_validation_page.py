"""The page that says how far off we are shows every row and what it sums up to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import unescape
from math import inf

import pytest
from fastapi.testclient import TestClient

from app.content.published import published_tables
from app.core.db import Database
from app.core.settings import ROOT, Settings
from app.main import create_app
from app.reference.validation import Report, percent, report
from app.theory.planner import parse_estimate_request, predict
from app.theory.planner.validation import attention_rate


@pytest.fixture(scope="module")
def shown() -> Report:
    """What the page shows, computed for all tests of this file together."""
    return report(ROOT / "cards")


@pytest.fixture
def text(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[str]:
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1") as client:
        yield client.get("/reference/validation").text


def test_every_row_is_shown_with_its_error(text: str, shown: Report) -> None:
    tables = published_tables(ROOT / "cards")
    assert [lane.table.slug for lane in shown.lanes] == [table.slug for table in tables]
    for table, lane in zip(tables, shown.lanes, strict=True):
        assert len(lane.lines) == sum(len(row.measured) for row in table.rows)
        assert table.title in text
        for line in lane.lines:
            assert f">{line.name}<" in text
            assert line.unit in text
            assert f">{line.error}</td>" in text
        assert f'<details class="shut" id="{table.slug}"' in text, "what the table by source leads to"
    assert f"Off by {percent(shown.speed.mean_error)} on average" in text
    held = " ".join(text.split('id="v-held"')[1].partition("</table>")[0].split())
    for each in (shown.held, shown.blind, shown.held_memory):
        figures = (str(each.rows), percent(each.of_rows), percent(each.of_publications))
        assert " ".join(f'<td class="r">{figure}</td>' for figure in figures) in held


def test_the_page_says_at_what_rate_attention_ran_where_it_is_most_of_a_step(text: str, shown: Report) -> None:
    """As what is said about the table has it: three quarters alone, and less in rings whatever their size, but once."""
    (lane,) = (lane for lane in shown.lanes if lane.attention)
    rates = [float(times) for _, _, times in lane.attention]
    assert all(f">{name}</th>" in text and f">{times}</td>" in text for name, _, times in lane.attention)
    assert [round(rate, 2) for rate in (min(rates), max(rates))] == [0.58, 0.85]
    assert all(
        0.7 < rate < 0.8 for (name, _, _), rate in zip(lane.attention, rates, strict=True) if "context" not in name
    )
    assert sum(0.58 <= rate <= 0.66 for rate in rates) == len(rates) - 3


def test_a_rate_of_attention_gives_the_time_it_was_taken_from() -> None:
    request = parse_estimate_request(
        {
            "model": "llama-3-8b",
            "training": {"sequence": 32768, "global_batch": 8},
            "parallel": {"data": 8, "zero": 3},
            "cluster": {"gpu": "h100-80gb"},
        }
    )
    now = predict(request).step_seconds
    same, slower = attention_rate(request, now), attention_rate(request, 2 * now)
    assert same.times == pytest.approx(1.0)
    assert slower.times == pytest.approx(same.share / (1 + same.share), rel=1e-3), "all that is longer is attention"
    assert attention_rate(request, (1 - same.share) * now / 2).times == inf


def test_all_five_constants_are_shown_with_their_values(text: str, shown: Report) -> None:
    assert len(shown.constants) == 5
    for name, value, meaning in shown.constants:
        assert f">{name}<span" in text
        assert f">{value}</td>" in text
        assert meaning in unescape(text)


def test_errors_are_written_with_their_sign() -> None:
    assert percent(0.0333) == "3.3 %"
    assert percent(-0.04, sign=True) == "−4.0 %"
    assert percent(0.05, sign=True) == "+5.0 %"


def test_a_dot_stands_where_its_ratio_is(shown: Report) -> None:
    """The middle is the measurement; the edges are half as fast again and its inverse, in logarithms."""
    for lane in shown.lanes:
        for line, measured in zip(lane.lines, lane.table.comparisons(), strict=True):
            faster = measured.error > 0 if measured.quantity != "step_seconds" else measured.error < 0
            assert float(line.place) == 50 or (float(line.place) > 50) == faster, "to the places that are shown"


def test_the_readme_quotes_the_mean(shown: Report) -> None:
    assert f"{percent(shown.speed.mean_error)} on average" in (ROOT / "README.md").read_text()
