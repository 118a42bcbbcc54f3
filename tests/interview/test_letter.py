"""What an interviewer would write to the committee: by meaning, of what stands on the scorecard."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from app.content.catalogue import Catalogue
from app.interview.challenging import LEFT_OPEN, SAID_AGAIN, STOOD_BY, TAKEN_BACK
from app.interview.criteria import Criterion, criteria
from app.interview.fixes import fixes
from app.interview.lessons import lessons
from app.interview.letter import Pace, letter
from app.interview.questions import right_answer
from app.interview.rows import CORRECTED, NO_ANSWER, NOT_ASKED, Challenged, JudgedPoint, Pushed, Row
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
    rows, topics = [_row(f"r{each}") for each in range(3)], {"r0": "Training state", "r1": "Reliability"}
    first, *_ = _said(*rows, _row("r0.then"), topics=topics)
    assert "All that the candidate computed or chose was right at the first attempt." in first
    assert "They are firm on training state." in first, "one number makes nobody firm on reliability"
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
    assert second.startswith("Twice the candidate ran the cluster at its peak, although it had been put right in")
    assert "They also forgot the optimizer (“C”). At first they also took one layer (“D”)." in second
    titles = [each.title for each in fixes(content, content.interviews["M5"], Scorecard(rows))]
    assert titles == ["Multiply the peak by the MFU: it is 40 %", "Count all 16 bytes", "Count the layers"]
    assert [each.times for each in lessons(rows)] == [2, 1, 1]


def test_it_says_how_the_candidate_reacts_and_what_to_learn() -> None:
    rows = [_asked_again(_row(name, CORRECTED, **AT_PEAK), "2 GB") for name in "ab"]
    last = _said(*rows, _row("c", "wrong", did="x", learn="Know what ZeRO-1 leaves whole: weights"))[-1]
    questioned = "Of what the candidate computed or chose I questioned"
    assert f"{questioned} two answers: they put both right. Much of this they know when pointed at it" in last
    assert "once they have learnt to multiply the peak by the MFU and what ZeRO-1 leaves whole." in last
    stayed = _asked_again(_row("a", "wrong"), "1 GB")
    assert f"{questioned} one answer: they stayed with it." in _said(stayed)[-1]
    assert "changed it and were still wrong" in _said(_asked_again(stayed, "3 GB"))[-1]


BEST = "Each of the replicas gets 16 micro-batches of the batch."
OPPOSITE = "Tensor parallelism goes over the network, where it is cheap."


def _words(*points: JudgedPoint, **more: object) -> Row:
    return replace(Row("q", "Why", "text", BEST, 8.0, "1 of 3", 8.0, rubric=points), **more)  # type: ignore[arg-type]


def test_what_was_heard_is_counted_and_the_best_of_it_quoted_with_its_question() -> None:
    """A point is no title for a quote: what was heard for it may be about another."""
    met = JudgedPoint("m", "Says why.", 4, None, "met", 1.0, (BEST,), topic="the batch")
    missed = JudgedPoint("n", "B.", 1, None, "missed", topic="recovery from failures")
    said = " ".join(_said(*(_row(f"r{each}", points=10.0) for each in range(4)), _words(met, missed)))
    assert "In words they made one of the two points unprompted. In full I heard the batch." in said
    assert f"In “Why” the candidate said: “{BEST}”" in said or f"In “Why” they said: “{BEST}”" in said
    assert "recovery" not in said, "nobody looked for what is near it"
    wrong = JudgedPoint("w", "A.", 1, None, "contradicted", 0.0, (OPPOSITE,), topic="why it stays in the node")
    unsure = " ".join(_said(*(_row(f"r{each}", points=10.0) for each in range(4)), _words(met, wrong)))
    assert "“" not in unsure, "an answer that was heard to say the opposite of something is not relied on"
    assert "wrong" not in unsure
    assert "come back" not in " ".join(_said(_row("r", "wrong", 40.0), _words(met, wrong))), "nobody asked about it"
    asked = _words(
        met, wrong, pushed=(Pushed("q.probe.w", "Why?", "I would leave that to the library.", "missed", "w"),)
    )
    refused = " ".join(_said(_row("r", "wrong", 40.0), asked))
    heard = OPPOSITE.rstrip(".")
    assert f"I would come back to was said in “Why”: “{heard}”; asked about it, the candidate answered “I" in refused
    assert "wrong" not in refused, "it may be meant otherwise"


FALSE = Challenged("f", "the traffic", OPPOSITE, TAKEN_BACK, "It is not.", "Count it", "C67")


@pytest.mark.parametrize(
    ("outcome", "reply", "told"),
    [
        (TAKEN_BACK, "It blocks in every layer.", ", and took it back when I asked."),
        (SAID_AGAIN, "It goes over the network.", ", and said it again when I asked."),
        (STOOD_BY, "No, I stay with it.", "; asked about it, they answered “No, I stay with it”."),
        (LEFT_OPEN, "I would leave that to NCCL.", "; asked about it, they answered “I would leave that to NCCL”."),
        (NO_ANSWER, "", "; they gave no reply when I asked."),
        (NOT_ASKED, "", "."),
    ],
)
def test_what_is_false_is_told_with_what_became_of_it_and_a_reply_in_its_own_words(
    outcome: str, reply: str, told: str
) -> None:
    row = _words(challenged=(replace(FALSE, outcome=outcome, reply=reply),))
    said = _said(_row("r", "wrong", 40.0), row)[1]
    assert f"In “Why” the candidate said “{OPPOSITE[:-1]}”, which is wrong{told}" in said


def test_only_what_nothing_said_is_near_is_called_unheard() -> None:
    missed = JudgedPoint("n", "Spares and a restart.", 2, None, "missed", topic="recovery", near_in=())
    asked = Pushed("q.probe.n", "And then?", "No idea.", "missed", "n")
    assert "I did not hear recovery, even when I asked." in " ".join(_said(_words(missed, pushed=(asked,))))
    assert "I did not hear recovery." in " ".join(_said(_words(missed)))
    for near_in in (None, ("q",), ("q.probe.n",)):
        assert "recovery" not in " ".join(_said(_words(replace(missed, near_in=near_in))))


def test_what_only_a_reply_says_is_told_and_what_was_near_before_is_not() -> None:
    late = JudgedPoint("n", "B.", 2, None, "missed", pushed=0.5, topic="recovery", said_in=("q.probe.n",))
    assert "Only when I asked did I hear recovery." in " ".join(_said(_words(replace(late, near_in=("q.probe.n",)))))
    for near_in in (None, (), ("q", "q.probe.n")):
        assert "Only when" not in " ".join(_said(_words(replace(late, near_in=near_in))))


def test_who_holds_on_or_takes_something_back_is_quoted() -> None:
    point = JudgedPoint("n", "B.", 2, None, "missed", topic="recovery")
    for reply, told in (
        ("No, I stand by that. It has no influence.", "they held on: “No, I stand by that. It has no influence.”"),
        ("I take that back, it does not.", "they took something back: “I take that back, it does not.”"),
    ):
        pushed = (Pushed("q.probe.n", "And?", reply, "contradicted", "n"),)
        assert told.removeprefix("they ") in " ".join(_said(_words(point, pushed=pushed)))


def test_blanks_pace_and_what_cannot_be_spoken_to() -> None:
    unrated = Criterion("structure", "Structure", None, "", ())
    rows = (_row("a"), _row("b", "no answer"))
    said = " ".join(letter(Scorecard(rows), [unrated], {}, Pace(3, 30, by_candidate=True)))
    assert "The candidate left one answer blank." in said
    assert said.endswith("The candidate used 3 of 30 minutes, so there was time for more.")
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
    assert not re.search(r"\d+ of \d+|\{\{|points (said|heard)| {2}|\.\.|, follow-up", text), text
    assert "which is wrong" not in text, "nothing false was said in words"
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
