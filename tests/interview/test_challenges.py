"""What is surely false in an answer: read back, asked about at the sitting's numbers, taken back or said again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from app.content.catalogue import Catalogue, load
from app.content.live import Expressions
from app.content.rubric_schemas import shared_patterns
from app.core.settings import ROOT
from app.grading.rubrics.grader import false_claims
from app.interview.asked import questions_asked
from app.interview.challenge_checks import check_challenges
from app.interview.challenging import LEFT_OPEN, STILL_WRONG, TAKEN_BACK, heard_reply, held_in
from app.interview.criteria import criteria
from app.interview.letter import Pace, letter
from app.interview.parts import Part, known_to, parts_of
from app.interview.questions import right_answer
from app.interview.scorecards import Scorecard
from app.units import scaled
from tests.support.cards import write_cards
from tests.support.sat import Sat, sit
from tests.support.yaml_files import read_yaml

CLAIMS = Path(__file__).parent.parent / "grading" / "claims" / "open.yaml"
FALSE = "FSDP sends less data than DDP, because each rank only sends its shard."
SAID = {
    "q3": f"FSDP frees the layer after forward. {FALSE}",
    "q3.probe.needed": "For the gradient of its input.",
    "q3.probe.avoid": "Keep them.",
}


def challenged(content: Catalogue, said: str) -> list[str]:
    interview = content.interviews["M9"]
    return [each.id for each, _ in false_claims((x.false for x in interview.challenges), said, interview.wordings)]


def sat(content: Catalogue, reply: str) -> Sat:
    sitting = sit(content, "M9")
    said = {**SAID, "q3.challenge.sharding-sends-less": reply}
    while (part := sitting.next()) is not None:
        sitting.give(part, said.get(part.id) or right_answer(part, sitting.values, sitting.own))
    return sitting


def letter_of(card: Scorecard) -> str:
    return " ".join(letter(card, criteria(card.rows), {}, Pace(9, 10, by_candidate=True)))


def test_what_is_false_is_read_back_and_asked_about_at_the_numbers_of_the_sitting(content: Catalogue) -> None:
    sitting = sat(content, "I do not know.")
    asked = sitting.asked["q3.challenge.sharding-sends-less"]
    assert f"<q>{FALSE.rstrip('.')}</q>." in asked
    sent = Expressions(sitting.values).number('data_parallel_bytes(size_bytes=weights, ranks=ranks, strategy="ddp")')
    assert scaled(float(sent), "GB") in asked
    assert "q3.probe.bytes" not in sitting.given, "the point was asked about"


@pytest.mark.parametrize(
    ("reply", "outcome", "counts", "told"),
    [
        ("Two gathers and a scatter, half as much again.", "taken back", 0.5, "and took it back when I asked"),
        ("FSDP sends less data than DDP.", "said again", 0.0, "and said it again when I asked"),
        ("I do not know.", "left open", 0.0, "asked about it, they answered “I do not know”"),
        ("No, I stay with it.", "stood by", 0.0, "asked about it, they answered “No, I stay with it”"),
    ],
)
def test_who_takes_it_back_earns_a_half_and_who_says_it_again_has_contradicted(
    content: Catalogue, reply: str, outcome: str, counts: float, told: str
) -> None:
    sitting = sat(content, reply)
    card = sitting.card()
    row = card.row("q3")
    point = next(each for each in row.rubric if each.id == "bytes")
    assert [each.outcome for each in row.challenged] == [outcome]
    assert (point.heard, point.evidence, point.counts) == ("contradicted", (FALSE,), counts)
    assert told in letter_of(card)
    assert letter_of(card).count("FSDP sends less data") == 1
    shown = questions_asked(sitting.interview, card, {}, sitting.reactions)[2].parts[0]
    assert [each.pushed.verdict for each in shown.exchanges][:1] == [outcome]
    assert shown.marked is not None
    kind = "un" if outcome == TAKEN_BACK else "no"
    assert [piece.kind for piece in shown.marked.pieces if FALSE in piece.text] == [kind], "red is what still stands"
    assert Scorecard.from_json(card.to_json()) == card


def test_what_an_answer_takes_back_itself_is_not_asked_about(content: Catalogue) -> None:
    sitting = sit(content, "M9")
    while (part := sitting.next()) is not None and part.id != "q3":
        sitting.give(part, right_answer(part, sitting.values, sitting.own))
    assert part is not None
    sitting.give(part, f"{FALSE} No, it gathers twice and scatters, that is half as much again as DDP.")
    assert ".challenge." not in sitting.reactions["q3"].asks


def answered(content: Catalogue, identity: str, name: str, said: str) -> tuple[Part, dict[str, object], Sat]:
    """A sitting up to the question `name` of an interview, answered with `said`."""
    sitting = sit(content, identity)
    while (part := sitting.next()) is not None and part.id != name:
        sitting.give(part, "Nothing." if part.kind == "text" else right_answer(part, sitting.values, sitting.own))
    assert part is not None
    sitting.give(part, said)
    known = known_to(part, sitting.values, sitting.own)
    assert known is not None
    return part, known, sitting


def test_what_is_right_of_another_subject_takes_nothing_back(content: Catalogue) -> None:
    right = "FSDP gathers each layer's weights before its forward, and gathers them again in backward."
    false = "ZeRO-2 halves the traffic because a reduce-scatter is half an all-reduce."
    part, known, sitting = answered(content, "M9", "q3", f"{right} {false}")
    assert [each.said for each in held_in(part, f"{right} {false}", known)] == [false]
    assert sitting.reactions["q3"].asks == "q3.challenge.zero-2-halves-traffic"
    assert not held_in(part, f"{false} No: ZeRO-2 gathers the weights too, as many bytes again.", known)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("Once per step only, it is nothing and fully hidden behind the backward pass.", STILL_WRONG),
        ("Data parallelism waits in every layer.", LEFT_OPEN),
        ("Four times in each layer, and there is nothing to compute meanwhile.", TAKEN_BACK),
    ],
)
def test_a_reply_takes_back_only_what_it_is_about(content: Catalogue, reply: str, outcome: str) -> None:
    said = "Tensor parallelism works well across nodes over InfiniBand."
    part, known, sitting = answered(content, "M5", "commit", f"I start with tensor 16 and data 32. {said}")
    challenge = next(each for each in part.challenges if each.id == "tensor-over-the-network")
    assert heard_reply(challenge, said, reply, part, known) == outcome
    asked = sitting.next()
    assert asked is not None
    assert asked.challenge == challenge
    sitting.give(asked, reply)
    row = sitting.card().row("commit")
    assert [each.outcome for each in row.challenged] == [outcome]
    point = next(each for each in row.rubric if each.id == "placement")
    assert (point.heard, point.counts > 0) == ("contradicted", outcome == TAKEN_BACK)


@pytest.mark.parametrize(
    ("said", "known_as"),
    [
        ("With FSDP the activations are sharded across all the GPUs too.", "zero-shards-activations"),
        ("Data parallel means every GPU gets a part of the model.", "replicas-split-the-model"),
        ("The 7B weights take 14 GB in bf16, so training fits on one GPU.", "weights-are-all"),
        ("Gradient checkpointing does not reduce memory.", "recomputing-saves-nothing"),
        ("Stage 2 cuts the communication in half.", "zero-2-halves-traffic"),
        ("Rank 0 collects the gradients and broadcasts the mean.", "a-server-collects"),
        ("I set tensor parallelism as high as possible.", "the-more-tensor"),
        ("1F1B has a smaller bubble than GPipe.", "a-schedule-without-bubble"),
        ("Adding stages reduces the bubble.", "more-stages-less-bubble"),
        ("Interleaving has no cost.", "interleaving-is-free"),
        ("Failures are very rare, I would not plan for them.", "failures-are-rare"),
        ("Using a smaller batch there is less optimizer state.", "state-follows-the-batch"),
        ("Stage 1 also splits the gradients.", "stage-one-shards-more"),
        ("DDP broadcasts the parameters after every step.", "replicas-send-weights"),
        ("Every data parallel replica sees the same batch.", "replicas-see-the-same-batch"),
        ("In tensor parallelism each GPU holds some of the layers.", "tensor-places-layers"),
        ("More micro-batches give a larger bubble.", "micro-batches-do-not-count"),
        ("The backward pass has the same cost as the forward pass.", "backward-costs-a-forward"),
        ("If a node dies the others simply continue.", "the-others-go-on"),
        ("Increasing the timeout fixes it.", "timeout-cures-the-hang"),
        ("bf16 also requires loss scaling.", "bf16-wants-loss-scaling"),
        ("With a fixed budget I take the largest possible model.", "larger-always-wins"),
    ],
)
def test_a_short_plain_claim_is_challenged(content: Catalogue, said: str, known_as: str) -> None:
    assert challenged(content, said) == [known_as]


@pytest.mark.parametrize(
    "said",
    [
        "People think that ZeRO shards activations, but each rank keeps its own.",
        "If ZeRO sharded the activations we would be done, but it doesn't.",
        "I do not believe that FSDP sends less data than DDP.",
    ],
)
def test_who_denies_it_is_not_challenged(content: Catalogue, said: str) -> None:
    assert not challenged(content, said)


def test_the_content_check_finds_what_is_right_and_would_be_questioned(content: Catalogue) -> None:
    copied = content.interviews["M9"].model_copy(deep=True)
    challenge = next(each for each in copied.challenges if each.id == "sharding-sends-less")
    too_wide = replace(challenge, false=replace(challenge.false, patterns=(shared_patterns(("fsdp & gather",)))))
    copied.read_with(copied.wordings, (too_wide,), copied.claims)
    found = list(check_challenges(replace(content, interviews={"M9": copied}, rubrics={})))
    assert {each[:2] for each in found} == {("challenges/traffic.yaml", ("challenges", challenge.stands[1]))}
    assert any("what is right is heard to say it" in reason for _, _, reason in found)


def test_a_file_of_challenges_that_cannot_be_read_is_named_with_its_line(tmp_path: Path) -> None:
    cards = write_cards(tmp_path / "cards")
    shutil.copytree(ROOT / "cards" / "challenges", cards / "challenges")
    scale = cards / "challenges" / "scale.yaml"
    scale.write_text(scale.read_text().replace('"failure | crash &', '"failure || crash &'))
    shutil.copy(cards / "challenges" / "traffic.yaml", cards / "challenges" / "twice.yaml")
    reasons = [str(each) for each in load(cards).mistakes if "challenges" in str(each)]
    assert any("scale.yaml" in each and "empty wording" in each for each in reasons), reasons
    assert any("twice.yaml" in each and "is also in challenges/traffic.yaml" in each for each in reasons), reasons


def test_nothing_that_is_right_is_challenged(content: Catalogue) -> None:
    """Of single claims that may be read, by a hand that saw no wording."""
    right = [text for points in read_yaml(CLAIMS).values() for claims in points.values() for text in claims["right"]]
    assert not [text for text in right if challenged(content, text)]


def test_what_is_false_anywhere_is_heard_whatever_was_asked(content: Catalogue) -> None:
    said = "I don't worry about activations, ZeRO shards them along with the optimizer."
    for interview, question in (("M5", "open"), ("M7", "derive"), ("M2", "hang")):
        part = next(each for each in parts_of(content.interviews[interview]) if each.id == question)
        assert [each.challenge.id for each in held_in(part, said, {})] == ["zero-shards-activations"]
    (first, *_) = part.challenges
    assert not first.concepts.isdisjoint(part.question.concepts), "what is asked about comes first"


def test_what_is_false_of_some_layouts_is_heard_where_these_are_discussed(content: Catalogue) -> None:
    said = "ZeRO-1 shards the optimizer over all 512 GPUs."
    heard = {}
    for interview in ("M5", "M9"):
        parts = (each for each in parts_of(content.interviews[interview]) if each.kind == "text")
        heard[interview] = [[one.challenge.id for one in held_in(each, said, {})] for each in parts]
    assert heard == {"M5": [["optimizer-over-all-gpus"]] * 2, "M9": [[]]}, "M9 has no other ranks than replicas"
