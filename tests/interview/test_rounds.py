"""Rounds: parts of problems against the clock, graded as practice grades them, with numbers that it never draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from app.content.catalogue import load
from app.content.problem_draws import LARGEST_SEED, draw_for_sitting
from app.content.rounds import Round
from app.core.errors import NotFound
from app.grading.questions import ConfigurationQuestion, NumberQuestion
from app.grading.rubrics.grader import grade
from app.interview.challenging import held_in
from app.interview.criteria import criteria
from app.interview.drawing import draw, values_of
from app.interview.parts import Reaction, contradicted_by, known_to, parts_of
from app.interview.questions import right_answer, rubric_of
from app.interview.scoring import scorecard
from app.practice.desk import check_seed, grade_in_order
from app.practice.variants import make_variant
from app.units import SCALES
from tests.support.cards import write_cards
from tests.support.shipped import shipped

ROUNDS = {"T1": (15, ["SP2"]), "T2": (60, ["SP1", "SP2", "SP3", "SP4", "SP5"])}


def _round(identity: str) -> Round:
    found = shipped().interviews[identity]
    assert isinstance(found, Round)
    return found


def test_each_asks_its_problems_in_its_minutes_with_numbers_beyond_those_of_practice() -> None:
    assert [each.id for each in shipped().interviews.values() if isinstance(each, Round)] == list(ROUNDS)
    for identity, (minutes, problems) in ROUNDS.items():
        found = _round(identity)
        assert (found.minutes, list(found.problems)) == (minutes, problems)
        assert sum(question.minutes for question in found.questions) == minutes
        assert draw(found, 7) == draw(found, 7)
        first = found.problems[problems[0]]
        assert draw(found, 7)[first.id] == draw_for_sitting(first, 7)
        with pytest.raises(NotFound):
            check_seed(LARGEST_SEED + 1)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 50), st.sampled_from(["SP1", "SP2", "SP3", "SP4", "SP5"]), st.data())
def test_answers_are_worth_what_they_are_worth_in_practice(seed: int, name: str, data: st.DataObject) -> None:
    """Right and wrong numbers, slips, what follows from an own wrong one, ticks, and blanks: part by part."""
    found = _round("T2")
    drawn = draw(found, seed)
    variant = make_variant(found.problems[name], 0, drawn[name])  # type: ignore[arg-type]
    asked = {question.part.id for question in found.questions if question.problem.id == name}
    said: dict[str, str] = {}
    for part in variant.parts:
        question = part.question
        if part.id not in asked or isinstance(question, ConfigurationQuestion):
            continue
        options = ["", part.answer_text]
        if isinstance(question, NumberQuestion):
            grades = grade_in_order(variant.parts, said, {})
            carried = part._carried({each: grade.value for each, grade in grades.items() if grade.value})
            values = [
                question.key * 1.37,
                *(slip.value for slip in question.slips),
                *([carried.key] if carried else []),
            ]
            options += [f"{value / SCALES[question.unit][1]!r} {question.unit}" for value in values]
        said[part.id] = data.draw(st.sampled_from(options))
    grades = grade_in_order(variant.parts, said, {})
    expected = {f"{name.lower()}-{part}": grades[part].credit if part in grades else 0.0 for part in said}
    card = scorecard(found, values_of(found, drawn), dict(zip(expected, said.values(), strict=True)), {})
    reached = {row.id: round(row.reached / row.points, 4) for row in card.rows if row.id in expected}
    assert reached == pytest.approx(expected)


@pytest.mark.parametrize("replies", [{}, {"sp4-b.again": "99 GB"}])
def test_an_own_number_is_carried_also_while_it_is_questioned(replies: dict[str, str]) -> None:
    found = _round("T2")
    values = values_of(found, draw(found, 1))
    seconds = 99e9 / values["SP4"]["bandwidth"]  # type: ignore[index]
    answers = {"sp4-b": "99 GB", "sp4-c": f"{seconds!r} s", **replies}
    card = scorecard(found, values, answers, {}, {"sp4-b": Reaction("sp4-b.again", said="99 GB")})
    assert (card.row("sp4-b").verdict, card.row("sp4-c").verdict) == ("wrong", "right")


def test_who_is_right_in_all_has_all_points_and_a_rating_of_trade_offs() -> None:
    found = _round("T1")
    values, answers = values_of(found, draw(found, 3)), {}
    for part in parts_of(found):
        answers[part.id] = right_answer(part, values, answers)
    card = scorecard(found, values, answers, {})
    assert (card.score, card.level, card.decision.by_points) == (1.0, "hire", "strong hire")
    assert card.decision.held == ("hardly anything here asks for depth, structure or communication",)
    rated = {each.id: each for each in criteria(card.rows)}
    assert (rated["correctness"].score, rated["trade-offs"].score, rated["communication"].score) == (1.0, 1.0, None)
    assert card.rows[-1].explanation.startswith("<"), "the solution stands behind the last part"


def test_the_words_that_defend_a_plan_are_heard_as_an_interviews_are() -> None:
    found = _round("T2")
    values = values_of(found, draw(found, 1))
    defences = [part for part in parts_of(found) if part.kind == "text"]
    assert [part.id for part in defences] == ["sp2-i-why", "sp5-l-why"]
    for part in defences:
        known = known_to(part, values, {})
        assert known is not None
        points = grade(rubric_of(part, known), "As there is only one stage nothing idles.").points
        assert [each.id for each in points if each.verdict == "met"] == ["batch"], "known by a claim alone"
        held = held_in(part, "Tensor communication is fully overlapped with compute.", known)
        assert [contradicted_by(each.challenge, part) for each in held] == [{"links"}]


def test_a_plan_that_cannot_be_read_is_not_taken_and_one_that_breaks_a_rule_is_questioned(client: TestClient) -> None:
    sitting = client.post("/interview/T1").headers["location"]

    def give(part: str, *answer: str) -> str:
        data = {"part": part, "answer": list(answer), "final": "true"}
        return " ".join(client.post(f"{sitting}/answers", data=data, headers={"Accept": "text/html"}).text.split())

    shown = client.get(f"{sitting}?part=sp2-c").text
    assert "A colleague proposes" in shown
    assert "How many GB of model state are on one GPU" in shown
    assert "/reference/formulas/" not in shown, "a number of the statement leads to no formula"
    assert "Missing: pipeline" in give("sp2-i", "tensor 8")
    assert "9 is out of range" in give("sp2-i", "tensor 8, pipeline 2, data 2, zero 9, micro-batch 1")
    assert "none of what is offered" in give("sp2-h", "luck")
    give("sp2-h", "tensor-in-the-node", "data-outermost")
    asked = " ".join(client.get(f"{sitting}?part=sp2-h.again").text.split())
    assert "“Something is missing in what you ticked." in asked
    assert "Stay with your ticks" in asked
    give("sp2-i", "3, 5, 7, 1, 1")
    asked = " ".join(client.get(f"{sitting}?part=sp2-i.again").text.split())
    assert "tensor 3 × pipeline 5 × data 7 takes 105 GPUs. How many are there?" in asked
    assert 'value="3, 5, 7, 1, 1"' in asked, "it is there to be changed"
    client.post(f"{sitting}/answers", data={"part": "sp2-i.again", "answer": "tensor"})  # a draft may say anything
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": ""})
    debrief = " ".join(client.get(sitting).text.split())
    assert "A colleague proposes" in debrief
    assert debrief.count("Problem SP2") == 1
    assert "not readable" in debrief.lower(), "a draft of no plan"
    assert "1.3 of 2 points" in debrief, "two of three reasons"


def test_a_file_that_asks_for_what_is_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    cards = write_cards(tmp_path / "cards")
    (cards / "rounds").mkdir()
    head = "id: T1\nslug: t\ntitle: T\nabout: It.\nconcepts: [memory]\nminutes: 5\nproblems:\n"
    file = cards / "rounds" / "T1.yaml"
    for problem, part, says in (
        ("P01", "z", "9 problems.0.parts.0.part: z is no part of P01"),
        ("P02", "a", "8 problems.0.problem: there is no problem P02"),
        ("P01", "a", "9 problems.0.parts.0.part: a of P01 needs ask at weights"),
        ("P01", "a", "9 problems.0.parts.0.part: a of P01 needs, for the debrief, did and learn at weights"),
        ("P01", "a", ""),
    ):
        problem_file = cards / "problems" / "P01-state.yaml"
        if "debrief" in says:
            problem_file.write_text(
                problem_file.read_text().replace("        cure: C01", '        ask: "Is that all?"')
            )
        elif not says:
            told = "        did: counted weights\n        learn: Count it all\n        ask:"
            problem_file.write_text(problem_file.read_text().replace("        ask:", told))
        file.write_text(f"{head}  - problem: {problem}\n    parts: [{{part: {part}, title: It, minutes: 2}}]\n")
        loaded = load(cards)
        assert [str(each).partition(".yaml:")[2][: len(says)] for each in loaded.mistakes] == ([says] if says else [])
    assert [question.id for question in loaded.interviews["T1"].questions] == ["p01-a"]
