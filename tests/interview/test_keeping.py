"""What was questioned and is kept: it earns nothing, is told as that, and holds the level."""

from __future__ import annotations

import pytest

from app.content.catalogue import Catalogue
from app.interview.asked import KEPT, questions_asked
from app.interview.challenging import SAID_AGAIN, WITHDRAWN, heard_reply, held_in
from app.interview.criteria import criteria
from app.interview.debrief import topics_of
from app.interview.deciding import decide
from app.interview.fixes import fixes
from app.interview.hearing import hear
from app.interview.keeping import keeps, turns
from app.interview.letter import Pace, letter
from app.interview.parts import Part, parts_of
from app.interview.questions import right_answer, rubric_of
from app.interview.replies import says_twice
from tests.support.sat import Sat, sit

FEWER = "As for cost, there is less to move than with DDP, because each rank only handles its own shard."
SAME = "FSDP has the same traffic as DDP."
KEPT_REPLY = "Fewer. Every rank only sends a slice, so it is about one and a half times the weights against two."


def asked_to_explain(content: Catalogue) -> tuple[Sat, Part]:
    """A sitting of M9, and its question in words."""
    sitting = sit(content, "M9")
    return sitting, next(each for each in parts_of(sitting.interview) if each.id == "q3")


@pytest.mark.parametrize(
    ("said", "reply", "is_kept", "is_turned"),
    [
        (FEWER, KEPT_REPLY, True, False),
        (
            FEWER,
            "Well below that. You send a slice only, so it comes to 1.5 times the weights against two.",
            True,
            False,
        ),
        (FEWER, "Still less, each rank sends a sixteenth.", True, False),
        (FEWER, "I stand by that.", True, False),
        (FEWER, "There is less to move than with DDP, each rank handles its own shard.", True, False),
        (SAME, "No change, both move two times the weights per step, so sharding comes free of charge.", True, False),
        (FEWER, "Half as much again, three times the weights instead of two.", False, True),
        (FEWER, "No wait, it's more: two gathers and one scatter, so three.", False, True),
        (FEWER, "FSDP sends one and a half times as much as DDP.", False, True),
        (SAME, "Right, it gathers twice and scatters once, 3S against 2S.", False, True),
    ],
)
def test_who_goes_the_same_way_keeps_what_was_questioned(
    content: Catalogue, said: str, reply: str, is_kept: bool, is_turned: bool
) -> None:
    sitting, explain = asked_to_explain(content)
    rubric = rubric_of(explain, sitting.values)
    assert (keeps(said, reply, rubric, "bytes"), turns(said, reply, rubric, "bytes")) == (is_kept, is_turned)


def sat(content: Catalogue, reply: str) -> Sat:
    """M9 with every number right, and a sentence that is the opposite of a point."""
    said = {
        "q3": "A layer is freed after its forward to save memory. Backward needs the weights again for the gradient of "
        f"its input. {FEWER} Keep the layers gathered after forward and the second gather is gone, but then each rank "
        "holds all weights.",
        "q3.probe.bytes": reply,
    }
    sitting = sit(content, "M9")
    while (part := sitting.next()) is not None:
        sitting.give(part, said.get(part.id) or right_answer(part, sitting.values, sitting.own))
    return sitting


def test_what_was_kept_is_told_everywhere_and_holds_the_level(content: Catalogue) -> None:
    sitting = sat(content, KEPT_REPLY)
    card = sitting.card()
    row = card.row("q3")
    assert [point.id for point, _ in row.kept] == ["bytes"]
    held = decide(card.rows, 0.9)  # by as many points as make a strong hire
    assert (held.level, held.by_points) == ("hire", "strong hire")
    assert held.held == ("the opposite of what is so was heard on the bytes against DDP's, and kept when asked",)
    topics = topics_of(content, sitting.interview, card)
    told = " ".join(letter(card, criteria(card.rows), topics, Pace(9, 10, by_candidate=True)))
    assert f"“{FEWER.rstrip('.')}”, the opposite of what is so as I heard it, and kept to it when I asked" in told
    assert "the next round should cover the bytes against DDP's" in told
    assert "traffic of data parallelism" not in told, "nobody is firm on what they said something false about"
    correctness = next(each for each in criteria(card.rows) if each.id == "correctness")
    assert correctness.is_held
    fix = fixes(content, sitting.interview, card)[0]
    assert (fix.title, fix.points) == ("Correct your view of the bytes against DDP's", 12)
    assert fix.says.endswith("half as much again (with gradients as wide as the weights, bf16).")
    exchange, *_ = next(
        part.exchanges
        for asked in questions_asked(sitting.interview, card, {}, sitting.reactions)
        for part in asked.parts
        if part.row.id == "q3"
    )
    assert exchange.verdict == KEPT


def test_what_leans_to_what_is_wrong_is_doubted_and_kept_when_it_is_said_again(content: Catalogue) -> None:
    """It was not clear at first; who says it again when asked makes it so."""
    sitting, explain = asked_to_explain(content)
    same = "In total that is still the same traffic as DDP, since DDP also sends everything twice."
    rest = "Keep the layers gathered after forward and the second gather is gone."
    sitting.give(explain, f"A layer is freed after its forward. Backward needs the weights again. {same} {rest}")
    reaction = sitting.reactions["q3"]
    assert (reaction.quote, reaction.is_near, reaction.is_answered) == (same, False, False)
    probe = next(each for each in parts_of(sitting.interview, sitting.reactions) if each.role == "probe")
    sitting.give(probe, "No change, both move two times the weights per step.")
    assert [point.id for point, _ in sitting.card().row("q3").kept] == ["bytes"]


def test_who_comes_near_a_point_twice_and_leans_to_what_is_right_has_said_it(content: Catalogue) -> None:
    sitting, explain = asked_to_explain(content)
    rubric = rubric_of(explain, sitting.values)
    right = (
        "To pass the error below the layer you multiply with the same matrix, so this page is collected another time."
    )
    assert says_twice(rubric, "needed", right)
    assert not says_twice(rubric, "needed", "I would leave it at that.")
    assert not says_twice(rubric, "bytes", f"{SAME} It sends everything two times as well, so nothing is lost by that.")


def test_a_falsehood_is_said_again_by_who_begins_the_same_way(content: Catalogue) -> None:
    sitting, explain = asked_to_explain(content)
    less = "FSDP moves less than DDP, because each rank only handles its own shard."
    (held,) = held_in(explain, less, sitting.values)
    assert heard_reply(held.challenge, less, KEPT_REPLY, explain, sitting.values) == SAID_AGAIN
    back = "I take that back, I would have to count it."
    assert heard_reply(held.challenge, less, back, explain, sitting.values) == WITHDRAWN


def test_degrees_alone_name_no_alternative_and_half_of_a_layout(content: Catalogue) -> None:
    sitting = sit(content, "M5")
    commit = next(each for each in parts_of(sitting.interview) if each.id == "commit")
    rubric = rubric_of(commit, {**sitting.values, "said": {"state": 1e9, "bubble": 0.1}})
    heard = {
        each.id: each for each in hear(rubric, commit.question.rubric, "It is tensor 4, pipeline 4, data 32.").points
    }
    assert (heard["layout"].credit, heard["alternative"].credit) == (0.5, 0.0)
    bare = hear(rubric, commit.question.rubric, "Tensor 8, pipeline 4, data 16.").points
    assert not next(each.credit for each in bare if each.id == "alternative")


def test_what_was_questioned_is_what_is_quoted(content: Catalogue) -> None:
    """A point that two sentences stand against is quoted by the one that was asked about."""
    sitting, explain = asked_to_explain(content)
    true = "In backward it must collect once more, since the gradients need the weights."
    same = "In total that is still the same traffic as DDP, since DDP also sends everything twice."
    sitting.give(explain, f"A layer is freed after its forward. {true} {same} Keep them gathered after forward.")
    while (part := sitting.next()) is not None:
        sitting.give(part, "No difference as far as I can see, two times the weights in the one and in the other.")
    kept = [(point.id, point.evidence) for point, _ in sitting.card().row("q3").kept]
    assert kept == [("bytes", (same,))]


def test_who_turns_earns_half_of_it_and_nothing_is_held_against_them(content: Catalogue) -> None:
    card = sat(content, "No, sorry, it's more: two gathers and a scatter, three against two.").card()
    row = card.row("q3")
    assert not row.kept
    assert next(each.counts for each in row.rubric if each.id == "bytes") == 0.5
    assert decide(card.rows, 0.9).level == "strong hire"
