"""Hints to a number: each at its price, once, in order, before the answer and never after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from app.content.catalogue import Catalogue
from app.content.questions import hint_findings
from app.core.db import Database
from app.grading.hints import HINT_FACTOR
from app.grading.questions import NumberQuestion
from app.interview import drawing, stored
from app.interview.hints import hint_id
from app.interview.models import Sitting
from app.interview.parts import PUSHED_SHARE, Reaction, again_id, known_to, parts_of
from app.interview.questions import number_of
from app.interview.rows import CORRECTED, Row
from app.interview.scoring import scorecard
from app.units import SCALES
from tests.support.shipped import shipped

JSON = {"Accept": "application/json"}
HINTED = ("M1", "M4", "M5")


def _rows(identity: str, seed: int, opened: int, share: float, again: float | None = None) -> Iterator[Row]:
    """Every hinted number of an interview, alone, with so many hints open: said at `share` of what is right."""
    interview = shipped().interviews[identity]
    values = drawing.values_of(interview, drawing.draw(interview, seed))
    for part in parts_of(interview):
        if not part.question.hints or part.is_follow_up or any(each.kind == "number" for each in part.builds_on):
            continue
        known = known_to(part, values, {each.id: "x" for each in part.builds_on})
        assert known is not None
        number = number_of(part, known)
        scale = SCALES[number.unit][1]

        def said(factor: float, key: float = number.key / scale, unit: str = number.unit) -> str:
            return f"{factor * key!r} {unit}"

        answers = {part.id: said(share)} | {hint_id(part.id, n): "It." for n in range(1, opened + 1)}
        reactions = {}
        if again is not None:
            reactions[part.id] = Reaction(again_id(part.id), said=answers[part.id])
            answers[again_id(part.id)] = said(again)
        yield scorecard(interview, values, answers, {}, reactions).row(part.id)


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(HINTED), st.integers(0, 99), st.integers(0, 2), st.floats(1.3, 1.45))
def test_each_open_hint_leaves_its_share_also_of_what_is_put_right(
    identity: str, seed: int, opened: int, off: float
) -> None:
    left = HINT_FACTOR**opened
    for row in _rows(identity, seed, opened, 1.0):
        assert (row.verdict, row.reached) == ("right", pytest.approx(row.points * left)), row
        assert len(row.hints) == opened
    for row, once in zip(
        _rows(identity, seed, opened, off, again=1.0), _rows(identity, seed, opened, off), strict=True
    ):
        lost = row.points * left - once.reached
        assert (row.verdict, row.reached) == (CORRECTED, pytest.approx(once.reached + PUSHED_SHARE * lost)), row
        assert row.reached <= row.points * left


def test_they_are_where_they_are_promised_and_the_check_hears_one_that_says_too_much() -> None:
    hinted = [each.id for each in shipped().interviews.values() if any(q.hints for q in each.questions)]
    assert hinted == [*HINTED, "T3"]
    state = NumberQuestion(112e9, "GB", 0.02)
    assert list(hint_findings("7e9 times 16 bytes on 112 ranks.", state)) == []
    assert list(hint_findings("That makes 0.112 TB.", state)) == ["a hint says what is right, 0.112 TB"]
    assert list(hint_findings("It takes 16 of them, not 8.", NumberQuestion(16, "GPUs", 0.001)))


def test_opening_charges_once_in_order_before_the_answer_alone(
    client: TestClient, database: Database, content: Catalogue
) -> None:
    sitting = client.post("/interview/M1").headers["location"]

    def press(part: str, hint: int, answer: str = "") -> int:
        status: int = client.post(f"{sitting}/hints", data={"part": part, "hint": hint, "answer": answer}).status_code
        return status

    shown = client.get(f"{sitting}?part=state").text
    assert "Open hint 1 of 2" in shown
    assert "leaves 8.1 of these 10.8 points" in shown, "the price is said before"
    assert "Count the" not in shown
    assert press("state", 2) == 422, "out of order"
    assert press("fp32", 1) == 404, "a choice has none"
    assert press("state.follow", 1) == 404
    assert press("state", 1, "7e9 × 1") == 303
    assert press("state", 1, "7e9 × 16 B") == 303, "another tab, or a second click"
    after = client.get(f"{sitting}?part=state").text
    assert "8.1 of 10.8 points" in " ".join(after.split())
    assert 'value="7e9 × 16 B"' in after, "what was typed stays"
    assert press("state", 2, "x" * 20_001) == 422
    assert press("state", 3) == 422, "there are two"
    assert (
        client.post(f"{sitting}/answers", data={"part": "state.hint.2", "answer": "x"}, headers=JSON).status_code == 404
    )
    with database.read() as session:
        found = session.get(Sitting, int(sitting.rpartition("/")[2]))
        assert found is not None
        saved = stored.answers_of(session, found)
        values = drawing.values_of(content.interviews["M1"], found.drawn)
    assert sorted(saved) == ["state", "state.hint.1"], "a draft that is refused opens nothing"
    right = f"{16 * values['small']} GB"  # type: ignore[operator]
    client.post(f"{sitting}/answers", data={"part": "state", "answer": right, "final": "true"})
    assert press("state", 2) == 409, "too late to be told"
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": ""})
    debrief = " ".join(client.get(sitting).text.split())
    assert "Hint 1, opened" in debrief
    assert "8.1 of 10.8 points" in debrief
    assert "right at the first attempt, with a hint." in debrief
    assert "Do “State” without a hint" in debrief or "Answer “" in debrief
