"""A wrong choice, set or plan is questioned once, put right it earns half; the same mistake twice is known again."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.interview.on_the_way import on_the_way
from app.interview.parts import Part, known_to, parts_of
from app.interview.prompts import prompt
from app.interview.questions import configuration_of, number_of, right_answer
from app.units import SCALES
from tests.support.sat import Sat, sit


def _part(sat: Sat, identity: str) -> Part:
    return next(each for each in parts_of(sat.interview, sat.reactions) if each.id == identity)


def _asked(sat: Sat, identity: str) -> str:
    return (prompt(_part(sat, identity), sat.values, sat.own) or Markup()).striptags()


def test_a_wrong_choice_is_questioned_in_its_own_words_and_put_right_earns_half(content: Catalogue) -> None:
    sat = sit(content, "M9")
    sat.give(_part(sat, "q2"), "half")
    assert _asked(sat, "q2.again").startswith("“You chose ‘Yes. A reduce-scatter moves half of an all-reduce, so the")
    assert "What does each rank hold after its part of the optimizer step" in _asked(sat, "q2.again")
    sat.give(_part(sat, "q2.again"), "memory-alone")
    row = sat.card().row("q2")
    assert (row.verdict, row.reached, row.points) == ("corrected", 5.0, 10.0)
    assert [(each.verdict, each.said.partition(".")[0]) for each in row.pushed] == [
        ("right", "The step moves as many bytes as before")
    ]


def test_who_stays_with_a_wrong_choice_or_chose_right_is_asked_nothing_more(content: Catalogue) -> None:
    sat = sit(content, "M9")
    for part in ("q2", "q2.again"):
        sat.give(_part(sat, part), "half")
    assert list(sat.reactions) == ["q2"]
    assert (sat.card().row("q2").verdict, sat.card().row("q2").reached) == ("wrong", 0.0)
    sat = sit(content, "M9")
    sat.give(_part(sat, "q2"), "right")
    assert not sat.reactions


def test_of_a_set_what_is_wrong_is_said_back_and_what_is_missing_is_not_named(content: Catalogue) -> None:
    sat = sit(content, "T2")
    sat.give(_part(sat, "sp2-h"), "tensor-in-the-node, one-f-one-b-bubble")
    assert _asked(sat, "sp2-h.again").startswith("“You ticked ‘1F1B instead of GPipe shortens the bubble’. Write the")
    sat.give(_part(sat, "sp2-h.again"), "tensor-in-the-node, data-outermost, micro-batches-shrink")
    row = sat.card().row("sp2-h")
    assert row.reached == pytest.approx(row.points / 2)
    sat.give(_part(sat, "sp3-g"), "serving, data, more-gpus")
    assert sat.card().row("sp3-g").chip == "2 of 4, 1 wrong"
    before = sat.card().row("sp3-g")
    sat.give(_part(sat, "sp3-g.again"), "serving, data")
    row = sat.card().row("sp3-g")
    assert (row.verdict, row.pushed[0].verdict) == ("wrong", "better")
    assert (before.reached, row.reached) == (pytest.approx(row.points / 4), pytest.approx(row.points * 3 / 8))
    sat.give(_part(sat, "sp4-i"), "accumulate, port-per-gpu")
    assert _asked(sat, "sp4-i.again").startswith(
        "“Something is missing in what you ticked. What could each GPU be given more of, for the same gradients?”"
    )


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("tensor 3, pipeline 1, data 8, zero 1, micro_batch 1", "tensor 3 × data 8 takes 24 GPUs. How many are there?"),
        ("tensor 1, pipeline 1, data {gpus}, zero 1, micro_batch 1", "The fullest GPU holds"),
        ("tensor 8, pipeline {deep}, data 1, zero 1, micro_batch 1", "I get "),
    ],
)
def test_a_plan_is_questioned_with_what_it_comes_to_by_theory(content: Catalogue, plan: str, said: str) -> None:
    sat = sit(content, "T2")
    part = _part(sat, "sp2-i")
    question = configuration_of(part, known_to(part, sat.values, sat.own) or {})
    assert question.gpus is not None
    text = plan.format(gpus=question.gpus, deep=question.gpus // 8)
    sat.give(part, text)
    assert f"“Let me stop at your plan, {text}. {said}" in _asked(sat, "sp2-i.again")
    assert question.key_text not in _asked(sat, "sp2-i.again")
    first = sat.card().row("sp2-i").reached
    sat.give(_part(sat, "sp2-i.again"), right_answer(part, sat.values, sat.own))
    row = sat.card().row("sp2-i")
    assert (row.verdict, row.reached) == ("corrected", pytest.approx(first + (row.points - first) / 2))


def test_the_same_slip_twice_is_known_again_in_other_words(content: Catalogue) -> None:
    for puts_right in (True, False):
        sat = sit(content, "T2")
        for part in ("sp3-a", "sp3-c"):
            sat.give(_part(sat, part), _slip(sat, part, "the six forgotten"))
            if part == "sp3-a":
                assert "What does one token cost for each parameter in it?" in _asked(sat, "sp3-a.again")
                answer = right_answer(_part(sat, part), sat.values, {}) if puts_right else sat.given[part]
                sat.give(_part(sat, "sp3-a.again"), answer)
        asked = _asked(sat, "sp3-c.again")
        assert "What does one token cost" not in asked
        assert "the same thing as in Optimal size" in asked
        assert ("You put it right there" in asked) is puts_right
        assert ("which I asked you about" in asked) is not puts_right


def _slip(sat: Sat, part: str, title: str) -> str:
    number = number_of(_part(sat, part), known_to(_part(sat, part), sat.values, sat.own) or {})
    slip = next(each for each in number.slips if each.title == title)
    return f"{slip.value / SCALES[number.unit][1]!r} {number.unit}"


def test_a_wrong_number_that_no_slip_explains_is_asked_about_by_what_theory_makes_of_it(content: Catalogue) -> None:
    sat = sit(content, "T2")
    sat.give(_part(sat, "sp5-g"), "4951 h")
    values = sat.values["SP5"]
    run = f"{4951 * values['gpus']:,.0f} GPU-hours"
    rate = f"one failure comes in {values['hours']:,}"
    assert _asked(sat, "sp5-g.again").startswith(f"“You said 4,951 h. In 4,951 h the {values['gpus']:,} GPUs run {run}")
    assert f"{rate}. How many GPU-hours does the job use in one hour?" in _asked(sat, "sp5-g.again")


def test_a_reply_to_what_was_asked_on_the_way_is_not_taken_for_the_number(content: Catalogue) -> None:
    sat = sit(content, "M5")
    for part in ("ask-time", "time"):
        given = "tokens, peak, mfu" if part == "ask-time" else right_answer(_part(sat, part), sat.values, sat.own)
        sat.give(_part(sat, part), given)
    gpus = round(number_of(_part(sat, "time.follow"), _known(sat, "time.follow")).key)
    sat.give(_part(sat, "time.follow"), f"{gpus - 1} GPUs")
    assert "How many GPUs do you order, then?" in _asked(sat, "time.follow.again")
    again, known = _part(sat, "time.follow.again"), _known(sat, "time.follow.again")
    for reply in (f"{gpus // 8} nodes", f"{gpus // 8}"):
        assert on_the_way(again, known, reply).startswith(
            f"{gpus // 8} nodes: that answers what I asked you on the way."
        )
    assert not on_the_way(again, known, f"{gpus} GPUs")
    assert not on_the_way(again, known, f"{gpus - 1} GPUs"), "who stays with it may"
    assert "too far off to be meant" in on_the_way(again, known, "0.001")
    sat.give(again, f"{gpus // 8} nodes, so {gpus} GPUs")
    assert sat.card().row("time.follow").verdict == "corrected"


def _known(sat: Sat, part: str) -> dict[str, object]:
    return known_to(_part(sat, part), sat.values, sat.own) or {}


def test_a_wrong_option_without_a_question_is_refused(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    choice = next(each for each in interview.questions if each.kind == "choice").model_dump()
    choice["options"][1].pop("ask")
    with pytest.raises(ValueError, match="a wrong option needs ask"):
        Interview.model_validate({**interview.model_dump(), "questions": [choice]})
