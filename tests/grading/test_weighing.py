"""The last look at a point: what speaks for and against it, weighed together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.content.rubric_schemas import make_rubric
from app.grading.rubrics.deciding import Looked, decided
from app.grading.rubrics.grader import RubricGrade, grade, look_at
from app.grading.rubrics.likeness import NO_CLAIMS, Claim, make_claims
from app.grading.rubrics.points import Point, PointGrade, as_judged
from app.grading.rubrics.reading import read
from app.grading.rubrics.weighing import Chances, Looks, Statements, chances, features_of
from app.grading.rubrics.weights import WEIGHTS
from tests.support.shipped import shipped

SHARDED = "Activations are divided by FSDP as well, so they can't be the reason."


def verdicts(rubric: str, text: str) -> dict[str, PointGrade]:
    return {each.id: each for each in graded(rubric, text).points}


def graded(rubric: str, text: str) -> RubricGrade:
    return grade(make_rubric(shipped().rubrics[rubric]), text)


def test_each_thing_that_is_found_has_its_weights() -> None:
    looked = look_at(make_rubric(shipped().rubrics["R04"]), "Latency grows with the ranks.")
    found = features_of(looked.looks, looked.said)
    assert found
    assert all(list(each) == list(WEIGHTS) for each in found.values())


def test_chances_add_up_and_only_what_is_likelier_than_not_is_likely() -> None:
    looked = look_at(make_rubric(shipped().rubrics["R04"]), "A ring sends 2S. A tree wins for small messages.")
    for each in chances(looked.looks, looked.said, WEIGHTS).values():
        assert each.met + each.missed + each.contradicted == pytest.approx(1)
    assert Chances(0.4, 0.35, 0.25).likely is None
    assert Chances(0.2, 0.2, 0.6).likely == "contradicted"


def test_without_weights_nothing_is_weighed() -> None:
    rubric = replace(make_rubric(shipped().rubrics["R08"]), weights=None)
    assert grade(rubric, SHARDED).points == look_at(rubric, SHARDED).believed


def test_a_sentence_against_one_point_is_not_held_against_a_subject_that_it_does_not_name() -> None:
    found = graded("R08", SHARDED)
    assert {each.id for each in found.points if each.verdict == "contradicted"} == {"activations-not-sharded"}
    assert "activations-sharded" in found.critical
    assert any(each.sentence == SHARDED for each in found.corrections)


def test_what_interviewers_do_not_let_pass_is_corrected_and_earns_nothing() -> None:
    said = "Or go to 1F1B, which has a smaller bubble than GPipe."
    found = graded("R09", said)
    assert found.score == 0
    assert any(each.sentence == said for each in found.corrections)


def test_a_point_that_its_own_words_say_is_not_lost_for_what_else_is_false() -> None:
    right = "The ring does a reduce-scatter and then an all-gather, each in n-1 steps with pieces of S/n"
    false = (
        "Latency is not an issue since all the ranks send at the same time. A tree would send more bytes and it is "
        "better for large messages. One slow rank only delays its own neighbours. Bus bandwidth is just the size "
        "divided by the time."
    )
    found = verdicts("R04", f"{right}, so each rank sends 2(n-1)/n S, near 2S. {false}")
    assert found["factor"].verdict == "met"
    assert found["two-phases"].verdict != "contradicted"
    assert {found[each].verdict for each in ("latency", "tree", "stragglers")} == {"contradicted"}


def test_nobody_is_asked_about_what_was_hardly_said() -> None:
    words = "If the global batch doesn't allow it, use smaller micro-batches, fewer stages, or interleave."
    assert {each.verdict for each in verdicts("R09", words).values()} <= {"met", "missed"}


@pytest.mark.parametrize(
    ("rubric", "said"),
    [
        ("R01", "Fragmentation is not a concern in PyTorch any more."),
        ("R04", "It depends on the network in practice, latency, congestion and so on, so it never scales perfectly."),
        ("R13", "Sending in fp8 doesn't change the bytes, it only helps compute."),
    ],
)
def test_words_that_may_as_well_say_something_else_are_not_surely_met(rubric: str, said: str) -> None:
    assert all(each.doubted for each in graded(rubric, said).points if each.verdict == "met")


@pytest.mark.parametrize("rubric", ["R01", "R04", "R08", "R13"])
def test_what_is_plainly_said_is_not_doubted(rubric: str) -> None:
    points = graded(rubric, shipped().rubrics[rubric].exemplar("strong hire")).points
    assert [each.id for each in points if each.doubted] == []


def test_a_person_takes_back_what_was_met_or_leaves_it_as_it_was() -> None:
    half = PointGrade("tree", "met", 0.5, ("There are trees.",), doubted=True)
    assert as_judged(half, {"tree": "half met"}) == PointGrade("tree", "met", 0.5, ("There are trees.",))
    assert as_judged(half, {"tree": "met"}) == PointGrade("tree", "met", 1.0, ("There are trees.",))
    assert as_judged(half, {"tree": "missed"}) == PointGrade("tree", "missed", 0.0, ("There are trees.",))
    assert as_judged(half, {"ring": "missed"}) == half
    against = PointGrade("tree", "contradicted", 0.0, ("A tree sends more.",))
    assert as_judged(against, {"tree": "met"}, {"A tree sends more."}) == against, "it is known to be false"
    assert as_judged(against, {"tree": "half met"}) == PointGrade("tree", "met", 0.5, ("A tree sends more.",))
    assert as_judged(against, {"tree": "missed"}) == PointGrade("tree", "missed", 0.0, ("A tree sends more.",))


@pytest.mark.parametrize(("rubric", "said"), [("R01", "All of the 80 GB can be used for tensors.")])
def test_what_is_the_opposite_in_so_many_words_is_not_doubted(rubric: str, said: str) -> None:
    opposed = [each for each in graded(rubric, said).points if each.verdict == "contradicted"]
    assert opposed
    assert not any(each.doubted for each in opposed)


def test_what_is_only_surmised_to_be_the_opposite_is_doubted() -> None:
    reading = read("A tree sends more.")
    said = Statements(reading, NO_CLAIMS, {})
    missed = PointGrade("tree", "missed", 0.0, ())
    for surmised in (True, False):
        opposed = PointGrade("tree", "contradicted", 0.0, ("A tree sends more.",), surmised)
        looks = Looks({"tree": missed if surmised else opposed}, {"tree": opposed}, {"tree": opposed})
        (found,) = decided(Looked(looks, said, frozenset(), {"always": (0.0, 0.0, 4.0)}), [Point("tree", 1)])
        assert (found.verdict, found.doubted) == ("contradicted", surmised)


def test_a_point_said_outright_is_not_lost_for_a_falsehood_about_another() -> None:
    false = "The time between failures is the same for 1,024 GPUs as for one, because GPUs fail independently."
    said = "I take the checkpoint interval from Young's formula, sqrt(2 * save time * MTBF)."
    others = (
        "Rank 0 should gather and write the whole checkpoint. Spare nodes are a waste. I roll back for loss spikes."
    )
    found = verdicts("R12", f"{false} {said} {others}")
    assert found["time-between-failures"].verdict == "contradicted"
    assert (found["interval"].verdict, found["interval"].evidence) == ("met", (said,))
    busy = "The GPUs are at 100 %, so they are still computing something useful and I would wait another hour."
    said = "I look for the one rank that has not joined the all-reduce the others are waiting in."
    assert verdicts("R07", f"{busy} {said}")["missing-rank"].verdict == "met"


def test_stray_words_against_a_point_do_not_outweigh_the_sentence_that_says_it() -> None:
    reading = read("It is so. That is never so.")
    likely, opposed = {"always": (5.0, 0.0, 0.0)}, PointGrade("so", "contradicted", 0.0, ("That is never so.",))
    claims = make_claims([Claim("so", "right", "It is so indeed."), Claim("so", "wrong", "It takes a tree.")])
    said = Statements(reading, claims, claims.like(reading))
    looked = Looked(Looks({"so": opposed}, {"so": opposed}, {"so": opposed}), said, frozenset(), likely)
    (found,) = decided(looked, [Point("so", 1)])
    assert (found.verdict, found.doubted, found.evidence) == ("met", True, ("It is so.",))


def test_what_has_its_evidence_and_is_only_like_what_is_wrong_is_asked() -> None:
    heads = verdicts("IQ3", "The number of attention heads has to be a multiple of the degree.")["heads"]
    assert heads.verdict == "met" or heads.doubted


def test_a_sentence_that_is_wrong_of_one_point_is_no_evidence_of_another_that_has_its_own() -> None:
    false = "In data parallelism the gradient all-reduce can only start when the backward pass is finished."
    said = "Tensor parallelism communicates four times in every layer, on the critical path, so it needs NVLink."
    assert verdicts("IQ11", f"{false} {said}")["tensor-parallel"].evidence == (said,)


def test_what_is_met_is_quoted_from_the_sentence_that_says_it() -> None:
    share = (
        "A bigger batch buys nothing for the share of TP: both grow, so it stays at roughly ten percent on A100 NVLink."
    )
    topology = "So I would check that all eight sit in one box, and if they don't, take four."
    found = verdicts("R09", f"{share} {topology}")
    assert found["topology"].evidence == (topology,)
    assert found["batch-does-not-help"].evidence == (share,)


def test_a_checkpoint_is_no_snapshot_of_the_memory() -> None:
    said = "When it only dies at the checkpoint, the full state dict is put together on one rank, so I'd save sharded."
    found = verdicts("PC2", said)
    assert (found["saving"].verdict, found["evidence"].verdict) == ("met", "missed")


def test_words_in_a_clause_that_denies_them_are_not_met() -> None:
    others = (
        "I'd send one copy per node and let NVLink spread it. The busiest rank decides when the all-to-all ends, so I "
        "balance with an auxiliary loss or a bias."
    )
    denied = "Sending in fp8 doesn't change the bytes."
    found = verdicts("R13", f"{denied} {others}")
    assert found["hide-or-narrow"].verdict in ("unsure", "contradicted")
    assert (found["hide-or-narrow"].evidence, found["hide-or-narrow"].doubted) == ((denied,), False)
    assert verdicts("R13", f"Sending in fp8 halves the bytes. {others}")["hide-or-narrow"].verdict == "met"


@pytest.mark.parametrize(
    "said",
    ["Dispatching in fp8 is not only cheaper, it halves the bytes.", "FP8 dispatch needs no more than half the bytes."],
)
def test_what_denies_no_statement_is_no_denial(said: str) -> None:
    assert verdicts("R13", said)["hide-or-narrow"].verdict == "met"


def test_what_is_said_of_another_subject_is_not_claimed() -> None:
    said = "ddp = full replica of params, grads and optimizer everywhere, fsdp only keeps 1/K of all three."
    found = graded("IQ2", said)
    assert found.corrections == ()
    assert "contradicted" not in {each.verdict for each in found.points}


def test_a_point_is_not_lost_for_a_false_sentence_about_another() -> None:
    young = "I take the checkpoint interval from Young's formula, sqrt(2 * save time * MTBF)."
    found = graded("R12", f"{young} The time between failures is the same for 1,024 GPUs as for one.")
    assert {each.id: each.verdict for each in found.points}["interval"] == "met"
    assert [each.so for each in found.corrections] == ["Divide the time between failures by the GPUs."]


def test_what_one_sentence_says_and_another_denies_is_not_lost_for_the_denial() -> None:
    said = "I would take a memory snapshot to see what makes up the peak."
    points = verdicts(
        "PC2", f"Saving a checkpoint never needs extra memory, whichever kind of state dict you take. {said}"
    )
    assert points["evidence"].verdict in ("met", "unsure")
    assert points["evidence"].evidence == (said,)
