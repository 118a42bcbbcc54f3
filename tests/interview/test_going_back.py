"""A number that was changed when it was questioned, and comes up again as it was at first."""

from __future__ import annotations

from app.content.catalogue import Catalogue
from app.grading.questions import read_number
from app.interview.going_back import Replaced, said_again
from app.interview.questions import right_answer
from app.units import SCALES
from tests.support.sat import Sat, sit


def _at_half_then_right(content: Catalogue) -> Sat:
    """M9 whose first number was half of what it is, questioned and put right."""
    sat = sit(content, "M9")
    part = sat.next()
    assert part
    right = right_answer(part, sat.values, sat.own)
    unit = part.source.unit or ""
    sat.give(part, f"{read_number(right, unit) / 2 / SCALES[unit][1]} {unit}")
    again = sat.next()
    assert again
    assert again.role == "again"
    sat.give(again, right)
    return sat


def test_a_number_that_follows_from_the_first_one_is_asked_about_as_that(content: Catalogue) -> None:
    sat = _at_half_then_right(content)
    follow = sat.next()
    assert follow
    assert follow.is_follow_up
    first = read_number(sat.given["q1"], "GB") / sat.values["ranks"]
    sat.give(follow, f"{first / 1e9} GB")
    again = sat.next()
    assert again
    sat.give(again, right_answer(again, sat.values, sat.own))
    assert "It follows from a number that you have changed" in sat.asked[again.id]
    assert "was your first number for “State”" in sat.asked[again.id]
    assert sat.card().row("q1.follow").verdict == "corrected"


def test_words_that_say_the_first_number_again_are_answered_with_the_last(content: Catalogue) -> None:
    sat = _at_half_then_right(content)
    first = sat.given["q1"]
    while (part := sat.next()) is not None and part.kind != "text":
        sat.give(part, right_answer(part, sat.values, sat.own))
    assert part
    sat.give(part, f"It is the state, {first}, that has to be gathered.")
    probe = sat.next()
    assert probe
    assert probe.role == "probe"
    sat.give(probe, "I do not know.")
    assert "was your first number for “State”, and you have made it" in sat.asked[probe.id]
    assert any("first number" in note for note in sat.card().row(part.id).notes)


def test_only_the_first_number_with_its_unit_and_without_the_last_is_going_back() -> None:
    changed = [Replaced("q1", "State", 24e9, 48e9, "GB")]
    assert said_again("It holds 24 GB.", changed)
    assert said_again("It holds 0.024 TB.", changed)
    for text in ("It holds 48 GB.", "Not 24 GB but 48 GB.", "24 layers.", "It holds 25 GB.", ""):
        assert said_again(text, changed) is None, text
