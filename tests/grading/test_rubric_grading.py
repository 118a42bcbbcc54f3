"""The grader: numbers in any notation, denial and direction, lists of terms, parts, mistakes, and bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.grading.levels import level_of
from app.grading.rubrics.grader import Critical, Rubric, grade
from app.grading.rubrics.matching import find
from app.grading.rubrics.patterns import BadPattern, parse
from app.grading.rubrics.points import Part, Point
from app.grading.rubrics.reading import read
from app.units import SCALES


def number(expression: str, unit: str) -> tuple[float, str, float]:
    dimension, scale = SCALES[unit]
    return float(expression), dimension, scale


def says(pattern: str, text: str) -> bool:
    found = find(parse(pattern, number), read(text))
    return found is not None and not found.dismissed


@pytest.mark.parametrize(
    "text",
    [
        "It holds 112 GB.",
        "It holds 112GB of state",
        "that is 112 gigs",
        "about 1.12e11 bytes",
        "1.12·10^11 bytes in all",
        "0.112 TB",
        "a hundred and twelve gigabytes",
        "one hundred twelve gigabytes per replica",
        "roughly 104.3 GiB",  # 104.3 × 2^30 = 1.12e11
        "112,0 GB",
        "state: 112",
        "16 × 7B = 112 GB",
    ],
)
def test_a_number_counts_in_any_notation(text: str) -> None:
    assert says("[112e9 GB]", text)


@pytest.mark.parametrize("text", ["112 MB", "112 Gb", "112 %", "not 112 GB but less", "120 GB", "112 hours"])
def test_another_unit_value_or_a_denied_number_does_not_count(text: str) -> None:
    assert not says("[112e9 GB]", text)


@pytest.mark.parametrize(
    "text",
    ["48.75 GB", "forty eight point seven five", "48,75 Gbyte", "49 GB"],  # 0.5 % off, within 3 %
)
def test_spoken_and_rounded_decimals(text: str) -> None:
    assert says("[48.75e9 GB]", text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nine point one times ten to the ten", 9.1e10),
        ("91B parameters", 91e9),
        ("91 billion", 91e9),
        ("one twenty", 120.0),
        ("ten twenty four", 1024.0),
    ],
)
def test_large_and_spoken_counts(text: str, value: float) -> None:
    expected = text != "ten twenty four"  # two numbers: nobody can tell
    assert says(f"[{value} ]".replace(" ]", "]"), text) is expected


@pytest.mark.parametrize(
    "text",
    ["2(n−1)/n · S", "2 (n - 1) / n times S", "two times n minus one over n times S", "2*(N-1)/N*S", "it is 2(n-1)/n."],
)
def test_a_formula_counts_however_it_is_written(text: str) -> None:
    assert says("`2(n-1)/n`", text)


def test_a_formula_is_not_found_inside_another() -> None:
    assert not says("`1/m`", "the bubble is (p−1)/(m+p−1)")
    assert says("`1/m`", "the bubble is 1/m")


def test_denial_reaches_to_the_end_of_its_clause_and_not_beyond() -> None:
    assert says("not shard activation", "FSDP doesn't shard the activations.")
    assert says("not shard activation", "Activations are never sharded.")
    assert not says("shard activation", "FSDP does not shard activations.")
    assert says("activation & checkpoint", "It does not fit, so I turn on checkpointing of activations.")
    assert says("latency & grow", "Not only bytes but latency grows too.")


def test_direction_is_part_of_what_is_said() -> None:
    assert says("@less timeout", "I would shorten the time-out.")
    assert not says("@less timeout", "I would raise the time-out.")
    assert not says("@less timeout", "I would not shorten the time-out.")


def test_what_is_called_unnecessary_is_not_evidence() -> None:
    assert not says("snapshot", "There is no need for a memory snapshot.")
    assert not says("error_feedback", "Error feedback is superfluous today.")
    assert says("snapshot", "There is no need to guess. " * 3 + "I take a memory snapshot.")
    assert says("snapshot", "There is no need to guess, and a memory snapshot shows it.")
    assert not says("snapshot", "There is no need, in my view, for a memory snapshot.")


def test_typos_and_other_spellings_are_read_as_meant() -> None:
    text = "fragmantation, activaton chekpointing and the pipline buble; an all reduce of the grads"
    for pattern in ("fragmentation", "recompute", "pipeline bubble", "allreduce & gradient"):
        assert says(pattern, text), pattern
    assert not says("sharded", "the link is shared by two GPUs")  # near, and another word


def test_unless_speaks_of_the_same_place_only() -> None:
    assert not says("raise timeout unless debug", "I would raise the timeout to debug it.")
    far = "I would raise the timeout " + "and wait for the run to go on with its work as before " * 3 + "then debug"
    assert says("raise timeout unless debug", far)


def test_a_pattern_with_a_mistake_says_which() -> None:
    with pytest.raises(BadPattern, match="@sideways"):
        parse("@sideways latency", number)
    with pytest.raises(BadPattern, match="stands by itself"):
        parse("rank [stuck] & never", number)
    with pytest.raises(BadPattern, match="empty"):
        parse("latency | & grow", number)
    with pytest.raises(BadPattern, match="one && at most"):
        parse("latency && grow && ring", number)


RUBRIC = Rubric(
    (
        Point("state", 2, (parse("[208e9 GB] & optimizer", number),), (parse("[208e9 GB]", number),)),
        Point("choice", 1, (parse("stage2 & choose", number),), against=(parse("stage3 is best", number),)),
        Point(
            "causes",
            1,
            parts=tuple(Part((parse(each, number),)) for each in ("oom", "network", "shape")),
            needs=2,
            half_at=1,
        ),
    ),
    (Critical("weights-only", (parse("26 gb & fit", number),)),),
    (Part((parse("gradient & optimizer", number),)),),
    1,
)


def verdicts(text: str) -> dict[str, tuple[str, float]]:
    return {each.id: (each.verdict, each.credit) for each in grade(RUBRIC, text).points}


def test_points_parts_and_halves() -> None:
    found = verdicts("The state with its optimizer is 208 GB. I choose ZeRO-2. It was the network, or an OOM.")
    assert found == {"state": ("met", 1.0), "choice": ("met", 1.0), "causes": ("met", 1.0)}
    assert verdicts("It is 208 GB. I think of the network.") == {
        "state": ("met", 0.5),
        "choice": ("missed", 0.0),
        "causes": ("met", 0.5),
    }


def test_the_score_weighs_points_and_evidence_is_quoted() -> None:
    found = grade(RUBRIC, "- The optimizer makes it 208 GB.\n- I would choose stage two.")
    assert found.score == 0.75  # (2 + 1) of 4
    assert found.level == "hire"
    assert found.points[0].evidence == ("The optimizer makes it 208 GB.",)
    assert found.points[1].evidence == ("I would choose stage two.",)


def test_a_contradiction_cancels_the_point() -> None:
    found = grade(RUBRIC, "I choose ZeRO-2. But really stage 3 is best.")
    assert found.points[1].verdict == "contradicted"
    assert found.points[1].evidence == ("But really stage 3 is best.",)


def test_a_critical_mistake_caps_the_level_and_not_when_it_is_refuted() -> None:
    good = "The state with its optimizer is 208 GB. I choose ZeRO-2. It was the network, or an OOM."
    assert grade(RUBRIC, good).level == "strong hire"
    capped = grade(RUBRIC, f"{good} The 26 GB fit anyway.")
    assert (capped.level, capped.score) == ("lean no hire", 1.0)
    assert capped.critical == {"weights-only": "The 26 GB fit anyway."}
    assert grade(RUBRIC, f"{good} That 26 GB fit is wrong.").level == "strong hire"


def test_right_definitions_reach_the_floor() -> None:
    found = grade(RUBRIC, "Besides weights there are gradients and what the optimizer keeps.")
    assert (found.score, found.level) == (0.0, "lean no hire")
    assert found.lifted_by == ("Besides weights there are gradients and what the optimizer keeps.",)


@pytest.mark.parametrize(
    "text",
    [
        "It depends on weights, gradients and what the optimizer keeps.",  # commits to nothing
        "Weights, gradients and the optimizer matter. I would tune things. One has to try.",
        "Besides weights there are gradients and what the optimizer keeps. I'd tune it.",  # half does
        "Besides weights there are gradients and what the optimizer keeps. 2 × 3 = 7.",  # something is wrong
    ],
)
def test_what_is_left_open_or_wrong_is_not_lifted(text: str) -> None:
    found = grade(RUBRIC, text)
    assert (found.score, found.level, found.lifted_by) == (0.0, "no hire", ())


def test_terms_in_a_row_are_not_statements() -> None:
    found = grade(
        RUBRIC, "Optimizer, 208 GB, choose, ZeRO-2, OOM, network, shapes, gradients, bf16, master weights, Adam."
    )
    assert found.score == 0.0
    assert found.level == "no hire"
    assert {each.verdict for each in found.points} <= {"missed", "unsure"}


def test_a_row_of_terms_with_an_empty_verb_says_nothing_either() -> None:
    text = "It is important to consider the optimizer, 208 GB, the choice of ZeRO-2, an OOM, the network and shapes."
    assert grade(RUBRIC, text).score == 0.0
    reasoned = "The optimizer, gradients, weights, activations and buffers are important, so 208 GB is too much."
    assert grade(RUBRIC, reasoned).points[0].verdict == "met"


def test_a_person_decides_what_is_unsure_and_not_what_was_missed() -> None:
    text = "Optimizer, 208 GB, choose, ZeRO-2, OOM, network, shapes, gradients, bf16, master weights, Adam."
    assert verdicts(text)["state"] == ("unsure", 0.0)
    judged = grade(RUBRIC, text, {"state": "met", "choice": "met"})
    assert judged.points[0].verdict == "met"
    sure = grade(RUBRIC, "Nothing of the kind.", {"state": "met"})
    assert sure.score == 0.0


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (1.0, "strong hire"),
        (0.8, "strong hire"),
        (0.79, "hire"),
        (0.6, "hire"),
        (0.59, "lean no hire"),
        (0.35, "lean no hire"),
        (0.34, "no hire"),
        (0.0, "no hire"),
    ],
)
def test_levels_start_where_they_are_said_to(score: float, level: str) -> None:
    assert level_of(score) == level


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1 ",
        "9**",
        "(",
        "tp 8\n",
        "not ",
        "one hundred ",
        "a",
        "🙂",
        "\u202e",
        "1e5 times 10 to the ",
        "x,",
        "<b>",
        "\0",
    ],
)
def test_100_kb_of_anything_is_graded_in_bounded_time(piece: str) -> None:
    start = time.perf_counter()
    found = grade(RUBRIC, piece * (100_000 // len(piece)))
    assert found.level in {"no hire", "lean no hire"}
    assert time.perf_counter() - start < 60  # bounded; about 1 s on a free core


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_graded_and_always_the_same(text: str) -> None:
    first = grade(RUBRIC, text)
    assert first == grade(RUBRIC, text)
    assert 0.0 <= first.score <= 1.0


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("not many token", "We have not so many tokens in our language."),
        ("accumulate gradient", "if it isn't I'd accumulate gradients over four steps"),
        ("latency", "Don't forget latency."),
        ("tp & pp & onefoneb & fsdp", "t p and p p with one f one b, or f s d p"),
        ("[1.575e24 FLOPs]", "The budget is 1.575 × 10²⁴ FLOPs."),
        ("`120n^2`", "C = 120N²"),
        ("`4*4*8`", "that is 4 x 4 x 8 GPUs"),
        ("tp & crossnode", "tensor parallelism across four nodes"),
        ("nosync & accumulate", "no_sync while we accumulate"),
        ("recompute & activation", "activations? -> remat"),
        ("[2.9e9 billion]", "about 2.9 billions"),
    ],
)
def test_what_is_said_is_read(pattern: str, text: str) -> None:
    assert says(pattern, text)


@pytest.mark.parametrize("text", ["tp=16 and dp=8", "a model of thirty billion, or 16 billion", "m = 16"])
def test_a_degree_or_a_count_is_no_quantity_without_its_unit(text: str) -> None:
    assert not says("[16e9 GB]", text)
    assert says("[16e9 GB]", "state: 16")


def test_terms_in_a_row_count_in_a_bullet_among_statements_and_not_where_they_are_the_answer() -> None:
    said = "The state with its optimizer is 208 GB, which is too much for one card, and so I choose ZeRO-2 for it.\n"
    causes = "- Network cables, tensor shapes, data loader, missing batches"
    assert verdicts(said + causes)["causes"] == ("met", 1.0)
    assert verdicts(causes)["causes"][0] != "met"
