"""What an interviewer would write to the committee: by meaning, of what stands on the scorecard."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from app.content.catalogue import Catalogue
from app.interview.criteria import Criterion, criteria
from app.interview.fixes import fixes
from app.interview.lessons import lessons
from app.interview.letter import Pace, letter
from app.interview.questions import right_answer
from app.interview.rows import CORRECTED, JudgedPoint, Pushed, Row
from app.interview.scorecards import Scorecard
from app.interview.verdicts import verdict_in_words
from tests.support.sat import Sat, sit

PACE = Pace(20, 30, by_candidate=False)


def _row(name: str, verdict: str = "right", points: float = 4.0, **more: object) -> Row:
    reached = {"right": 1.0, CORRECTED: 0.5}.get(verdict, 0.0) * points
    return replace(Row(name, name.title(), "number", "1 GB", points, verdict, reached, key="2 GB"), **more)  # type: ignore[arg-type]


def _asked_again(row: Row, said: str) -> Row:
    return replace(row, pushed=(Pushed(f"{row.id}.again", "Sure?", said, "right"),))


def _said(*rows: Row, topics: dict[str, str] | None = None, pace: Pace = PACE) -> tuple[str, ...]:
    return letter(Scorecard(rows), criteria(rows), topics or {}, pace)


AT_PEAK = {"did": "ran the cluster at its peak", "learn": "Multiply the peak by the MFU: it is 40 %", "cure": "X23"}


def test_it_counts_what_was_right_unaided_and_names_what_stood_firm() -> None:
    first, *_ = _said(*(_row(f"r{each}") for each in range(3)), topics={"r0": "Training state"})
    assert "All that was to be computed or chosen was right at the first attempt." in first
    assert "The candidate is firm on training state." in first
    first, *_ = _said(_row("a"), _row("b", "wrong"), _row("c", "wrong", hints=("look",)))
    assert "Of three answers to compute or choose, one was right at the first attempt." in first


def test_a_slip_that_came_again_is_the_pattern_and_the_first_fix(content: Catalogue) -> None:
    """What was put right at once matters least, though it cost more points."""
    rows = (
        _row("a", CORRECTED, **AT_PEAK),
        _row("b", "wrong", 3.0, **AT_PEAK),
        _row("c", "wrong", 5.0, did="forgot the optimizer", learn="Count all 16 bytes"),
        _row("d", CORRECTED, 10.0, did="took one layer", learn="Count the layers"),
    )
    second = _said(*rows)[1]
    assert second.startswith("Twice they ran the cluster at its peak, although it had been put right in between.")
    assert "They also forgot the optimizer. At first they also took one layer." in second
    titles = [each.title for each in fixes(content, content.interviews["M5"], Scorecard(rows))]
    assert titles == ["Multiply the peak by the MFU: it is 40 %", "Count all 16 bytes", "Count the layers"]
    assert [each.times for each in lessons(rows)] == [2, 1, 1]


def test_it_says_how_the_candidate_reacts_and_what_to_learn() -> None:
    rows = [_asked_again(_row(name, CORRECTED, **AT_PEAK), "2 GB") for name in "ab"]
    last = _said(*rows, _row("c", "wrong", did="x", learn="Know what ZeRO-1 leaves whole: weights"))[-1]
    assert "I questioned two answers: they put both right. Much of this they know when pointed at it" in last
    assert "once they have learnt to multiply the peak by the MFU and what ZeRO-1 leaves whole." in last
    stayed = _asked_again(_row("a", "wrong"), "1 GB")
    assert "I questioned an answer: they stayed with it." in _said(stayed)[-1]
    assert "changed it and were still wrong" in _said(_asked_again(stayed, "3 GB"))[-1]


def test_words_are_named_by_what_they_are_about_with_one_quote() -> None:
    best = "Each of the replicas gets 16 micro-batches of the batch."
    opposite = "Tensor parallelism goes over the network, where it is cheap."
    met = JudgedPoint("m", "Says why.", 2, None, "met", 1.0, (best,), topic="the batch")
    wrong = JudgedPoint("w", "A.", 1, None, "contradicted", 0.0, (opposite,), topic="why it stays in the node")
    missed = JudgedPoint("n", "B.", 2, None, "missed", topic="recovery from failures")
    row = Row("q", "Why", "text", best, 8.0, "1 of 3", 8.0, rubric=(met, wrong, missed))
    row = replace(row, pushed=(Pushed("q.probe.n", "And then?", "No idea.", "missed", "n"),))
    hired = " ".join(_said(*(_row(f"r{each}", points=10.0) for each in range(4)), row))
    assert f"On the batch they said: “{best}”" in hired
    assert f"On why it stays in the node they said “{opposite}” I take that to be wrong." in hired
    assert "I did not hear recovery from failures, even when I asked." in hired
    refused = " ".join(_said(_row("r", "wrong", 40.0), row))
    assert f"What worries me most was said on why it stays in the node: “{opposite}”" in refused
    assert (refused.count("“"), hired.count("“")) == (1, 2)


def test_what_may_have_been_said_is_not_called_left_out() -> None:
    """A reply of some length to a probe, or most of a point's words, may be the point, and was not heard."""
    missed = JudgedPoint("n", "Spares and a restart from a checkpoint.", 2, None, "missed", topic="recovery")
    row = Row("q", "Why", "text", "I take tensor 8.", 8.0, "0 of 1", rubric=(missed,))
    for reply, is_told in (("No idea.", True), ("The job comes up again from the last saved state.", False)):
        asked = replace(row, pushed=(Pushed("q.probe.n", "And then?", reply, "missed", "n"),))
        assert ("hear recovery" in " ".join(_said(asked))) is is_told
    near = replace(row, said="We keep spares, and a restart goes back to a checkpoint.")
    assert "did not hear" not in " ".join(_said(near))


def test_blanks_pace_and_what_cannot_be_spoken_to() -> None:
    unrated = Criterion("structure", "Structure", None, "", ())
    rows = (_row("a"), _row("b", "no answer"))
    said = " ".join(letter(Scorecard(rows), [unrated], {}, Pace(3, 30, by_candidate=True)))
    assert "The candidate left one answer blank." in said
    assert said.endswith("They used 3 of 30 minutes, so there was time for more.")
    assert "Time was up with one answer still to give." in " ".join(_said(*rows))
    assert _said(_row("b", "no answer"))[0].endswith("so there is nothing to go by.")


@pytest.mark.parametrize("name", ["M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9", "M10", "T1", "T2"])
def test_letters_speak_of_no_parts_points_or_labels(content: Catalogue, name: str) -> None:
    """Of the interviews there are, with every number wrong and next to nothing in words."""
    sat = sit(content, name, 2)
    while (part := sat.next()) is not None:
        sat.give(part, _wrongly(sat, part))
    card = sat.card()
    said = letter(card, criteria(card.rows), {}, PACE)
    text = " ".join(said)
    assert 2 <= len(said) <= 3
    assert text.count("“") <= 1
    assert not re.search(r"\d+ of \d+|\{\{|points (said|heard)| {2}|\.\.|, follow-up", text), text
    slips = {row.slip.lower() for row in card.rows if " " in row.slip}
    assert not [each for each in slips if f"({each})" in text.lower()], text
    assert len(text.split()) < 200
    assert len(verdict_in_words(card).split()) <= 20


def _wrongly(sat: Sat, part: object) -> str:
    if part.kind == "text":  # type: ignore[attr-defined]
        return "I would try it and see whether it works well."
    right = right_answer(part, sat.values, sat.own)  # type: ignore[arg-type]
    if part.kind != "number":  # type: ignore[attr-defined]
        return right
    number, _, unit = right.partition(" ")
    return f"{float(number.replace(',', '')) * 1.7:g} {unit}".strip()
