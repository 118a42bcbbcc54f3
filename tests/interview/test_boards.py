"""The whiteboard beside an answer in words: what it takes, what it says, and that it is heard, kept and drawn again."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.core.errors import DomainError
from app.interview.board_doubts import board_doubt
from app.interview.boards import LONGEST_BOARD, MOST_ARROWS, MOST_ITEMS, Board, BoardItem, heard, read_board
from app.interview.drawing import draw, values_of
from app.interview.parts import has_board, known_to, parts_of
from app.interview.questions import rubric_of
from app.interview.scoring import scorecard
from tests.support.sat import sit

JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}
A = {"id": "b1", "x": 0, "y": 0, "label": "Stage 0"}
B = {"id": "b2", "x": 6, "y": 4, "label": "Stage 1"}
SENT = {"start": "b1", "end": "b2", "label": "activations"}


def _text(items: list[Any], arrows: list[Any] | None = None) -> str:
    return json.dumps({"items": items, "arrows": arrows or []})


def _chain(count: int, arrows: int = 0) -> str:
    items = [{"id": f"b{each}", "x": 0, "y": 0} for each in range(count)]
    return _text(items, [{"start": "b0", "end": "b1"}] * arrows)


@pytest.mark.parametrize(
    "text",
    [
        _chain(MOST_ITEMS + 1),
        _chain(2, MOST_ARROWS + 1),
        "x" * (LONGEST_BOARD + 1),
        "[" * 5_000,
        "no JSON",
        "[]",
        '{"items": [{"id": "b1", "x": NaN, "y": 0}]}',
        '{"items": [{"id": "b1", "x": Infinity, "y": 0}]}',
        '{"items": [{"id": "b1", "x": 1e400, "y": 0}]}',
        _text([{**A, "x": 10}]),
        _text([{**A, "y": -1}]),
        _text([{**A, "x": 0.5}]),
        _text([{**A, "x": "0"}]),
        _text([{**A, "x": True}]),
        _text([{**A, "kind": "script"}]),
        _text([{**A, "style": "position: fixed"}]),
        _text([{**A, "id": "b1 onload"}]),
        _text([{**A, "label": "x" * 41}]),
        _text([A, A]),
        _text([A], [SENT]),
        _text([A, B], [{**SENT, "end": "b1"}]),
    ],
)
def test_what_is_no_board_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(DomainError) as refused:
        read_board("mlp", text)
    (violation,) = refused.value.violations
    assert violation.field == "mlp.board"
    assert violation.message


def test_it_says_its_arrows_and_what_stands_alone() -> None:
    alone = {"id": "b3", "kind": "text", "x": 9, "y": 10, "label": " tied\tembeddings\u0000 "}
    board = read_board("mlp", _text([A, B, alone], [SENT, {"start": "b2", "end": "b1"}]))
    assert board.says[:2] == ("Stage 0 → Stage 1: activations.", "Stage 1 → Stage 0.")
    assert board.says[2].startswith("tied embeddings")
    assert read_board("mlp", "") == Board()
    assert heard({"mlp": "By columns. ", "mlp.board": _text([A, B], [SENT]), "x.board": "broken"}) == {
        "mlp": "By columns.\nStage 0 → Stage 1: activations.",
        "mlp.board": "Stage 0 → Stage 1: activations.",
    }


def test_an_arrow_runs_from_side_to_side() -> None:
    beside, below = read_board("", _text([A, B], [SENT])), read_board("", _text([A, {**B, "x": 1}], [SENT]))
    (across,), (down,) = beside.routes, below.routes
    assert (across.points, across.way) == (((3, 1.0), (4.5, 1.0), (4.5, 5.0), (6, 5.0)), "right")
    assert (across.spot, across.is_beside) == ((4.5, 3.0), False)
    (near,) = read_board("", _text([{**A, "y": 3}, {**B, "x": 4, "y": 3}], [SENT])).routes
    assert near.spot == (3.5, pytest.approx(2.65)), "over the boxes, between which there is no room"
    assert read_board("", _text([A, {**B, "x": 0}], [SENT])).routes[0].is_beside
    assert (down.points, down.way) == (((1.5, 2), (1.5, 3.0), (2.5, 3.0), (2.5, 4)), "down")


def test_what_is_drawn_is_heard_like_words(content: Catalogue) -> None:
    interview = content.interviews["M4"]
    values = values_of(interview, draw(interview, 1))
    words = {"mlp": "A is cut by columns."}
    summed = _text(
        [{**A, "label": "Partial sums of Z"}, {**B, "label": "Z whole"}],
        [{**SENT, "label": "one all-reduce in forward adds them"}],
    )
    without, with_it = (
        scorecard(interview, values, heard({**words, **more}), {}).row("mlp") for more in ({}, {"mlp.board": summed})
    )
    assert with_it.reached > without.reached
    quoted = [quote for point in with_it.rubric for quote in point.evidence]
    assert any("all-reduce in forward" in each for each in quoted)


def test_two_interviews_ask_to_draw(content: Catalogue) -> None:
    asking = [each.id for each in content.interviews.values() if any(map(has_board, parts_of(each)))]
    assert {"M4", "M5"} <= set(asking)


def test_it_is_saved_with_the_words_given_and_drawn_again(client: TestClient) -> None:
    sitting = client.post("/interview/M4").headers["location"]
    evil = {**A, "label": "</svg><script>x()</script>"}
    drawn = {"part": "mlp", "answer": "By columns.", "board": _text([evil, B], [SENT])}
    assert client.post(f"{sitting}/answers", data=drawn, headers=JSON).status_code == 200
    bad = client.post(f"{sitting}/answers", data={**drawn, "answer": "Lost?", "board": _text([A, A])}, headers=JSON)
    assert (bad.status_code, bad.json()["errors"][0]["field"]) == (422, "mlp.board")
    page = client.get(f"{sitting}?part=mlp").text
    assert "By columns." in page, (
        "what was saved stays, and the words that came with a board that is none are not taken"
    )
    assert "<script>x()" not in page
    assert "&lt;/svg&gt;&lt;script&gt;" in page
    version = re.search(r'name="over" value="(\w+)"', page)
    assert version is not None
    stale = {"part": "mlp", "answer": "By columns.", "over": version.group(1)}
    other = {**stale, "board": _text([A])}
    assert client.post(f"{sitting}/answers", data=other, headers=JSON).status_code == 200
    stale["board"] = _text([B])
    assert client.post(f"{sitting}/answers", data=stale, headers=JSON).status_code == 409, "another tab drew since"
    # a save without the board leaves it; the answer takes it along for good
    client.post(f"{sitting}/answers", data={"part": "mlp", "answer": " ", "board": _text([A, B], [SENT])}, headers=JSON)
    given = client.post(
        f"{sitting}/answers", data={"part": "mlp", "answer": "", "board": _text([A, B], [SENT]), "final": "true"}
    )
    assert given.status_code == 303, "what is drawn is an answer"
    late = client.post(f"{sitting}/answers", data={**drawn, "board": _text([A])}, headers=JSON)
    assert late.status_code == 409
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": ""})
    debrief = client.get(sitting).text
    assert 'aria-label="Stage 0 → Stage 1: activations."' in debrief
    assert '<polyline points="3,1 4.5,1 4.5,5 6,5"/>' in debrief
    assert "Stage 0 → Stage 1: activations." in debrief.split('class="board"')[0], "and heard, behind the words"


def test_a_board_where_none_stands_is_not_kept(client: TestClient) -> None:
    sitting = client.post("/interview/M9").headers["location"]
    data = {"part": "q3", "answer": "words", "board": _text([A, B])}
    assert client.post(f"{sitting}/answers", data=data, headers=JSON).status_code == 200
    assert "Stage 0" not in client.get(f"{sitting}?part=q3").text


def test_a_board_that_says_something_else_than_the_words_is_remarked_once(content: Catalogue) -> None:
    sat = sit(content, "M5")
    part = next(each for each in parts_of(sat.interview) if each.id == "commit")
    sat.given |= {"state": "20 GB", "bubble": "3 %"}
    board = Board(items=(BoardItem(id="b1", x=0, y=0, label="TP 16, PP 1, DP 32"),))
    words = "I start with tensor 8, data 64 and ZeRO-1."
    rubric = rubric_of(part, known_to(part, sat.values, sat.given) or {})
    answers = heard({"commit": words, "commit.board": board.model_dump_json()})
    says = board_doubt("commit", answers, rubric)
    assert says == "Your drawing has tensor 16, data 32, and you say tensor 8, data 64. I go by what you say."
    same = Board(items=(BoardItem(id="b1", x=0, y=0, label="TP 8, DP 64"),))
    assert board_doubt("commit", heard({"commit": words, "commit.board": same.model_dump_json()}), rubric) == ""
    assert board_doubt("commit", {"commit": words}, rubric) == ""
    card = scorecard(sat.interview, sat.values, {**sat.given, **answers}, {})
    assert says in card.row("commit").notes
