"""Statements, not company of words: falsehoods, bound numbers, sums, vague talk, and one lexicon for all rubrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.content.catalogue import Catalogue
from app.content.rubric_schemas import MisconceptionFile
from app.grading.rubrics.arithmetic import wrong_sums
from app.grading.rubrics.grader import Rubric, RubricGrade, grade
from app.grading.rubrics.matching import find
from app.grading.rubrics.patterns import parse
from app.grading.rubrics.points import Point
from app.grading.rubrics.reading import read
from app.grading.rubrics.wordings import make_wordings
from app.rubrics.checks import check_misconceptions
from app.rubrics.grading import grade_text
from app.units import SCALES


def number(expression: str, unit: str) -> tuple[float, str, float]:
    dimension, scale = SCALES[unit]
    return float(expression), dimension, scale


def graded(content: Catalogue, rubric: str, text: str) -> RubricGrade:
    return grade_text(content.rubrics[rubric], text)


def contradicted(content: Catalogue, rubric: str, text: str) -> set[str]:
    return {each.id for each in graded(content, rubric, text).points if each.verdict == "contradicted"}


WORDINGS = make_wordings(
    [["gpu", "accelerator"], ["exposed", "on the critical path"]],
    [(["h100"], ["gpu"]), (["nvlink"], ["fast link"]), (["brings no relief"], ["not help"])],
)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("gpu & hold", "Each accelerator holds a shard.", True),
        ("accelerator & hold", "Each GPU holds a shard.", True),
        ("gpu & hold", "An H100 holds a shard.", True),
        ("h100 & hold", "Each GPU holds a shard.", False),  # the special case is not said by the general word
        ("exposed & communication", "Its communication is on the critical path.", True),
        ("exposed & communication", "Its communication is not on the critical path.", False),
        ("fast link", "It needs NVLink.", True),
        ("not fast link", "It needs NVLink.", False),
        ("batch & not help", "A larger batch brings no relief.", True),
        ("batch & help", "A larger batch brings no relief.", False),
    ],
)
def test_a_wording_stands_for_the_others_of_its_row(pattern: str, text: str, expected: bool) -> None:
    assert (find(parse(pattern, number), read(text, WORDINGS)) is not None) is expected


@pytest.mark.parametrize(
    ("text", "dismissed"),
    [
        ("That the ranks differ in order is not an issue.", True),
        ("The ranks do not all issue their collectives in the same order.", False),
    ],
)
def test_what_is_not_issued_is_not_dismissed(text: str, dismissed: bool) -> None:
    assert bool(read(text).sentences[0].dismissals) is dismissed


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("each rank synchronises with its neighbour", "every rank synchronizes with its neighbor"),
        ("a materialised, parallelised, quantised tensor", "a materialized, parallelized, quantized tensor"),
        ("vanilla data parallelism", "ddp"),
        ("tensor 8, pipeline 4", "tp = 8, pp = 4"),
    ],
)
def test_spellings_of_one_word_are_read_as_one(british: str, american: str) -> None:
    first, second = ([each.stem for each in read(text).sentences[0].tokens] for text in (british, american))
    assert first == second


@pytest.mark.parametrize(
    ("rubric", "point", "text"),
    [
        ("R04", "latency", "The latency of a ring is negligible and does not grow, whatever the number of ranks."),
        ("R04", "tree", "A tree is taken for large messages."),
        ("R04", "tree", "As a tree it would send less data."),
        ("R04", "stragglers", "A ring averages fast links and slow ones."),
        ("R04", "stragglers", "A straggler only delays its neighbour."),
        ("R04", "latency", "Small messages work best since they have the least overhead."),
        ("R06", "batch-per-gpu", "The batch plays no role."),
        ("R08", "activations-not-sharded", "Activations are divided by FSDP as well, so they can't be the reason."),
        ("R08", "activations-not-sharded", "Checkpointing saves compute and not memory, so it doesn't help."),
        ("R08", "wrap-policy", "I would wrap the model as a single FSDP unit, so that there are fewer all-gathers."),
        ("R08", "optimizer-creation", "Adam's states are allocated when you build the optimizer."),
        ("R08", "prefetch", "Prefetching doesn't cost memory, so I leave it alone."),
        ("R09", "interleave", "Two chunks per GPU halve the bubble and cost nothing extra."),
        ("R18", "what-behind-what", "Tensor parallelism hides just as well, on its own stream."),
        ("IQ3", "heads", "The tensor degree can be any number."),
        ("IQ3", "sequence-parallel", "Sequence parallelism halves the traffic."),
        ("IQ9", "bubble", "With 1F1B the bubble disappears entirely."),
        ("R12", "interval", "It is enough to checkpoint once a day."),
        ("SP3", "empirical", "The ratio of 20 is a universal law of nature."),
    ],
)
def test_a_common_falsehood_contradicts_the_point_about_it(
    rubric: str, point: str, text: str, content: Catalogue
) -> None:
    assert point in contradicted(content, rubric, text)
    assert graded(content, rubric, text).corrections or rubric == "R06"


@pytest.mark.parametrize(
    ("rubric", "text"),
    [
        ("R04", "The latency grows with the ranks, while the bytes do not."),
        ("R04", "Many people think that latency is constant."),
        ("R04", "A tree wins for small messages."),
        ("IQ3", "Sequence parallelism does not halve the traffic."),
        ("IQ9", "1F1B does not remove the bubble, it saves memory."),
        ("R08", "Activations are not divided by FSDP, so they fill the card."),
        ("R08", "If activations were sharded they could not be the reason, but they are local."),
        ("R08", "Activation checkpointing helps most, since it saves memory."),
        ("R08", "Adam's states are allocated at the first step, not when you build the optimizer."),
        ("R08", "I would not wrap the model as one unit, since that needs more memory."),
        ("R08", "Prefetching costs memory, so I limit it."),
        ("R09", "Fewer stages mean less idle time."),
        ("R12", "Once a day is not enough for a checkpoint."),
    ],
)
def test_what_denies_a_falsehood_contradicts_nothing(rubric: str, text: str, content: Catalogue) -> None:
    assert contradicted(content, rubric, text) == set()


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("So each rank sends 2(n-1)/n times S, which grows linearly with the number of ranks.", "contradicted"),
        ("Each rank sends 2(n-1)/n · S, so doubling the ranks doubles what every rank sends.", "contradicted"),
        ("Each rank sends 2(n-1)/n · S, and so the more ranks, the more each of them has to send.", "contradicted"),
        ("Each rank sends 2(n-1)/n · S, and this traffic per rank increases with the ranks.", "contradicted"),
        ("Each rank sends 2(n-1)/n · S, so the more ranks there are, the nearer it comes to 2S.", "met"),
        ("Each rank sends 2(n-1)/n · S, so doubling the ranks doubles the traffic of all together.", "met"),
        ("Each rank sends 2(n-1)/n · S, and this doubles with twice the ranks.", "contradicted"),
        ("Each rank sends 2(n-1)/n · S, so with 64 ranks each sends 32 times what it sends with 2.", "contradicted"),
        ("Each rank sends 2(n-1)/n · S, so with 64 ranks it is 1.97 times what it is with 2.", "met"),
        ("Each rank sends 2(n-1)/n · S, which stays nearly constant.", "met"),
        ("Each rank sends 2(n-1)/n · S, which does not grow with the ranks.", "met"),
        ("Each rank sends 2(n-1)/n · S, while latency grows linearly.", "met"),
        ("Each rank sends 2(n-1)/n · S in 2(n-1) steps, whose latency grows with the ranks.", "met"),
    ],
)
def test_what_a_point_says_to_stay_must_not_be_said_to_grow(text: str, verdict: str, content: Catalogue) -> None:
    around = "It is a reduce-scatter followed by an all-gather. One slow rank holds up everybody. " + text
    found = {each.id: each.verdict for each in graded(content, "R04", around).points}
    assert found["factor"] == verdict
    assert found["bus-bandwidth"] in {"missed", "unsure"}


@pytest.mark.parametrize(
    ("text", "credit"),
    [
        ("Each rank sends 2(n-1)/n · S.", 0.5),  # what it comes to for many ranks is left open
        ("Each rank sends 2(n-1)/n · S, nearly 2S for many ranks.", 1.0),
        ("Each rank sends 2(n-1)/n · S. For 8 ranks that is 1.75 S.", 1.0),
        ("About 2S, independent of the ranks.", 0.5),
    ],
)
def test_a_limit_is_said_in_words_or_by_a_value(text: str, credit: float, content: Catalogue) -> None:
    found = {each.id: each.credit for each in graded(content, "R04", text).points}
    assert found["factor"] == credit


def test_a_falsehood_is_the_critical_mistake_that_it_names(content: Catalogue) -> None:
    assert "activations-sharded" in graded(content, "R08", "FSDP splits the activations as well.").critical


def test_a_number_counts_for_its_own_stage_and_for_no_other(content: Catalogue) -> None:
    right = "Stage 1 holds 71.5 GB, stage 2 48.75 GB, stage 3 26 GB."
    swapped = "Stage 2 holds 71.5 GB."

    def credit(text: str) -> float:
        return next(each.credit for each in graded(content, "SP1", text).points if each.id == "stages")

    assert credit(right) == 1.0
    assert credit(swapped) < credit("Stage 1 holds 71.5 GB, stage 2 48.75 GB.")


@pytest.mark.parametrize(
    "text",
    [
        "7B x 16 = 112 GB",
        "26 + 182/8 ≈ 49 GB",
        "2·63/64·14 = 27.6 GB",
        "(5−1)/(4·5) = 20 %",
        "100/8 = 12.5 GB/s",
        "2+2+12 bytes × 70e9 = 1.12 TB",
        "2(n−1)/n = 1.75",
        "6·70e9·2e12 = 8.4e23",
    ],
)
def test_sums_that_come_out(text: str) -> None:
    assert list(wrong_sums(text)) == []


@pytest.mark.parametrize(
    ("text", "value"), [("7 × 16 = 96 GB", 112), ("1120/8 = 120 GB", 140), ("26 + 26 + 156 = 228 GB", 208)]
)
def test_sums_that_do_not(text: str, value: float, content: Catalogue) -> None:
    found = list(wrong_sums(f"It is {text}."))
    assert [each.comes_to for each in found] == [value]
    assert found[0].says in graded(content, "R01", f"It is {text}.").notes


def test_right_definitions_lift_nothing_over_what_is_contradicted(content: Catalogue) -> None:
    right = (
        "Stage 1 shards the optimizer. Stage 2 shards the gradients too. Stage 3 shards the parameters as well. "
        "Activations come on top. "
    )
    assert graded(content, "R01", right).level == "lean no hire"
    wrong = graded(content, "R01", right + "The optimizer's state is negligible.")
    assert wrong.level == "no hire"


def test_talk_that_commits_to_nothing_earns_half_at_most(content: Catalogue) -> None:
    said = "Stragglers hold up the ring."
    vague = "In some situations stragglers hold up the ring somewhat."

    def credit(text: str) -> float:
        return next(each.credit for each in graded(content, "R04", text).points if each.id == "stragglers")

    assert (credit(said), credit(vague)) == (1.0, 0.5)


def test_what_misconceptions_name_is_checked(content: Catalogue) -> None:
    assert list(check_misconceptions(content)) == []
    rubric = content.rubrics["R01"].model_copy(deep=True)
    entry = MisconceptionFile(id="nowhere", contradicts=("R01.nothing",), says=("a & b",), so="It is not.")
    rubric.read_with(replace(rubric.knowledge, misconceptions=(entry,)))
    broken = replace(content, rubrics={"R01": rubric})
    assert [found[2].split(";")[0] for found in check_misconceptions(broken)] == ["no rubric has a R01.nothing"]


@pytest.mark.parametrize(
    ("rubric", "stance"),
    [
        ("R16", "Yes, if linear layers dominate the step. "),
        ("IQ9", "I do not agree; deep or wide is not the criterion. "),
    ],
)
def test_a_question_that_asks_for_a_stance_needs_one(rubric: str, stance: str, content: Catalogue) -> None:
    full = content.rubrics[rubric].exemplar("strong hire")
    assert stance in full
    decided, silent = graded(content, rubric, full), graded(content, rubric, full.replace(stance, ""))
    assert not any(note.startswith("You were asked") for note in decided.notes)
    assert silent.level == "hire"
    assert any(note.startswith("You were asked whether you") for note in silent.notes)


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("The pipeline goes on NVLink, whereas tensor parallelism may cross nodes.", True),
        ("I put the stages of the pipeline on NVLink and tensor parallelism wherever there is room.", True),
        ("Tensor parallelism stays on NVLink, whereas the pipeline may cross nodes.", False),
        ("NVLink is for what blocks, so tensor parallelism goes there, and the pipeline does not.", False),
        ("I take tp 8, pp 2, dp 32 and keep the first on NVLink.", False),  # settings, not statements
    ],
)
def test_what_is_said_of_another_strategy_is_no_evidence_of_this_one(text: str, swapped: bool) -> None:
    found = find(parse("tp & nvlink", number), read(text))
    assert found is not None
    assert found.swapped is swapped


@pytest.mark.parametrize(
    ("rubric", "point", "text", "verdict"),
    [
        ("R12", "spares", "Spare nodes are not needed at this size.", "contradicted"),
        ("R05", "profile", "Measuring the candidates adds nothing.", "contradicted"),
        ("SP5", "step", "So 1.24e18 FLOPs / 1e15 = 1,240 s for a step.", "contradicted"),  # another number in its place
        ("SP5", "step", "A step takes a while.", "missed"),
        ("SP5", "restart", "Elastic training carries on with 511 GPUs without a restart.", "contradicted"),
        ("SP5", "restart", "With torchft the other replicas go on and the lost one is rebuilt and joins again.", "met"),
    ],
)
def test_what_is_dismissed_or_worked_out_to_another_number_contradicts(
    rubric: str, point: str, text: str, verdict: str, content: Catalogue
) -> None:
    found = {each.id: each.verdict for each in graded(content, rubric, text).points}
    assert found[point] == verdict


PACE_AND_BYTES = Rubric(
    (
        Point("bytes", 2, met=(parse("reducescatter & allgather", number),)),
        Point("pace", 1, met=(parse("slowest", number),), against=(parse("fastest & pace", number),)),
        Point("price", 1, met=(parse("whole & switch & [3 GB]", number),)),
    ),
    (),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a sentence that says the opposite of one point in so many words shows no other
        ("The fastest sets the pace of reduce-scatter and all-gather.", {"pace": "contradicted", "bytes": "unsure"}),
        (
            "The fastest sets the pace. It is a reduce-scatter and an all-gather.",
            {"pace": "contradicted", "bytes": "met"},
        ),
        # one that shows a point is not surmised to be against another: its number is its own
        ("The whole switch carries the reduce-scatter and all-gather, so 5 GB.", {"bytes": "met"}),
        ("The whole switch carries it, so 5 GB.", {"price": "contradicted"}),
    ],
)
def test_a_sentence_is_taken_one_way(text: str, expected: dict[str, str]) -> None:
    found = grade(PACE_AND_BYTES, text)
    assert {each.id: each.verdict for each in found.points if each.verdict != "missed"} == expected


def test_no_sentence_of_a_fluent_falsehood_counts_for_one_point_and_against_another(content: Catalogue) -> None:
    for rubric in content.rubrics.values():
        found = graded(content, rubric.id, rubric.exemplar("fluent but wrong")).points
        met, wrong = (
            {text for each in found if each.verdict == verdict for text in each.evidence}
            for verdict in ("met", "contradicted")
        )
        assert met.isdisjoint(wrong), rubric.id
