"""What is known to be false in free answers is heard in interviews too, and what is right beside it still counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.content.catalogue import Catalogue
from app.content.challenges import Misbelief
from app.content.rubric_schemas import shared_patterns
from app.interview.challenge_checks import check_misbeliefs
from app.interview.challenging import SAID_AGAIN, STOOD_BY, TAKEN_BACK, WITHDRAWN, heard_reply, held_in
from app.interview.criteria import criteria
from app.interview.discounting import without
from app.interview.fixes import fixes
from app.interview.letter import Pace, letter
from app.interview.questions import right_answer
from tests.support.sat import Sat, asked, sit

FALSE = "A slow rank only slows its neighbours, the others go on."


def said_in_m4(content: Catalogue, said: str, reply: str) -> Sat:
    sitting = sit(content, "M4")
    while (part := sitting.next()) is not None:
        text = said if part.id == "place" else reply if part.challenge else "No idea."
        sitting.give(part, text if part.kind == "text" else right_answer(part, sitting.values, sitting.own))
    return sitting


def test_a_misconception_of_free_answers_is_heard_where_it_shares_a_concept(content: Catalogue) -> None:
    part, known = asked(content, "M4", "place")
    (held,) = held_in(part, f"Tensor parallelism stays on NVLink. {FALSE}", known)
    assert isinstance(held.challenge, Misbelief)
    assert held.said == FALSE
    about_hangs, _ = asked(content, "M2", "hang")
    assert held.challenge.id not in {each.id for each in about_hangs.challenges}


def test_it_is_asked_about_marked_told_and_mended(content: Catalogue) -> None:
    sitting = said_in_m4(content, FALSE, "I stay with it.")
    card = sitting.card()
    row = card.row("place")
    (false,) = row.challenged
    assert FALSE.rstrip(".") in sitting.asked[f"place.challenge.{false.id}"]
    assert "Is that so?" in sitting.asked[f"place.challenge.{false.id}"]
    assert false.is_held_on
    assert FALSE.rstrip(".") in " ".join(letter(card, criteria(card.rows), {}, Pace(9, 10, by_candidate=True)))
    assert any(each.is_false and false.so in each.says for each in fixes(content, sitting.interview, card))


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (FALSE, SAID_AGAIN),
        ("No, everybody has to wait for the slowest one.", TAKEN_BACK),
        ("No, I take that back: everybody has to wait for the slowest one.", TAKEN_BACK),
        ("I was wrong.", WITHDRAWN),
        ("Yes, everybody waits for the slowest one on its own link. I stay with it.", STOOD_BY),
        ("Still the neighbours, everybody has to wait for the slowest one only there.", STOOD_BY),
    ],
)
def test_a_reply_takes_it_back_by_what_is_so(content: Catalogue, reply: str, outcome: str) -> None:
    part, known = asked(content, "M4", "place")
    (held,) = held_in(part, FALSE, known)
    assert heard_reply(held.challenge, FALSE, reply, part, known) == outcome


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (
            "Tensor parallelism stays in the node, since NICs are about as fast as NVLink.",
            "Tensor parallelism stays in the node.",
        ),
        ("NICs are about as fast as NVLink.", ""),
        ("Tensor parallelism stays in the node.", "Tensor parallelism stays in the node."),
    ],
)
def test_of_a_sentence_that_is_false_in_part_the_rest_is_left(content: Catalogue, said: str, left: str) -> None:
    part, known = asked(content, "M5", "commit")
    assert without(said, held_in(part, said, known), part.wordings) == left


def test_a_point_is_met_by_what_is_right_and_not_by_what_is_false(content: Catalogue) -> None:
    sitting = sit(content, "M9")
    answer = "You keep the layers gathered until backward, that costs no extra memory."
    while (part := sitting.next()) is not None:
        said = answer if part.id == "q3" else "No idea." if part.kind == "text" else ""
        sitting.give(part, said or right_answer(part, sitting.values, sitting.own))
    row = sitting.card().row("q3")
    heard = {each.id: each.heard for each in row.rubric}
    assert (heard["avoid"], heard["price"]) == ("met", "contradicted")
    assert row.false_words == {answer}


def test_a_misconception_heard_in_what_is_right_fails_the_check(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    copied = interview.model_copy()
    (known, *others) = (each for each in interview.misbeliefs if "zero-stages" in each.concepts)
    too_wide = replace(known, false=replace(known.false, patterns=shared_patterns(("backward & weight",))))
    copied.read_with(interview.wordings, interview.challenges, interview.claims, (too_wide, *others))
    found = check_misbeliefs(replace(content, interviews={"M9": copied}))
    assert {(each[0], each[1][0], each[1][2], each[2].partition(":")[0]) for each in found} == {
        ("misconceptions.yaml", "misconceptions", "says", known.id)
    }


def test_words_that_lean_to_what_is_right_are_not_called_false(content: Catalogue) -> None:
    part, _ = asked(content, "M4", "place")
    known = next(each for each in part.challenges if each.id == "stragglers-average-out")
    assert isinstance(known, Misbelief)
    assert known.is_meant(FALSE, part.wordings)
    assert not known.is_meant("The ring goes as fast as its slowest rank, everybody waits.", part.wordings)


def test_a_sentence_is_questioned_and_told_of_once_though_two_things_in_it_are_false(content: Catalogue) -> None:
    said = (
        "The alternative is TP 16 over two nodes, I'd take it if the bubble gets too big, since NICs are about as fast"
        " as NVLink."
    )
    other = "Data parallelism comes last, it needs no communication at all."
    sitting = sit(content, "M5")
    while (part := sitting.next()) is not None:
        text = f"{said} {other}" if part.id == "commit" else "I take that back." if part.challenge else "No idea."
        sitting.give(part, text if part.kind == "text" else right_answer(part, sitting.values, sitting.own))
    card = sitting.card()
    row = card.row("commit")
    assert {each.quote for each in row.challenged} == {said, other}
    assert len(row.challenged) == 3
    assert {each.outcome for each in row.challenged} == {WITHDRAWN}
    told = " ".join(letter(card, criteria(card.rows), {}, Pace(9, 10, by_candidate=True)))
    assert (told.count(said.rstrip(".")), told.count(other.rstrip("."))) == (1, 1)
