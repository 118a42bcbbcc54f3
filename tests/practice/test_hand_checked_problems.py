"""One variant of every problem worked by hand: the numbers are typed, with the arithmetic beside them.

Figures are in the unit the part shows, rounded as on paper; hence the 0.1 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from app.content.catalogue import Catalogue
from app.grading.questions import ChoiceQuestion, ConfigurationQuestion, NumberQuestion, OrderQuestion
from app.practice.variants import Variant, make_variant
from app.theory import parse_search_request, search
from app.units import SCALES

Answers = Mapping[str, float | list[str]]

BY_HAND: Mapping[str, tuple[Mapping[str, Any], Answers]] = {
    "P01": (
        {"billions": 13, "layout": "megatron-18"},
        {"a": 234},  # 2 + 4 + 4 + 4 + 4 = 18; 18 × 13
    ),
    "P02": (
        {"billions": 3, "device": "a100-80gb", "percent": 90},
        {"a": 48, "b": 72, "c": ["fits"], "d": 24},  # 16 × 3; 0.9 × 80; 72 − 48
    ),
    "P03": (
        {"billions": 70, "ranks": 64},
        # 280 + 840/64 = 280 + 13.125; 140 + 980/64 = 140 + 15.3125; 1120/64
        {"a": 293.125, "b": 155.3125, "c": 17.5},
    ),
    "P04": (
        {"billions": 70, "memory": 80, "percent": 85, "reserve": 20},
        # 68 − 20; 1120/48 = 23.3; three nodes; 2 × 70 = 140 is more than 48
        {"a": 48, "b": 24, "c": 24, "d": ["neither"]},
    ),
    "P05": (
        {"billions": 7, "ranks": 8, "live": 2},
        {"a": 1.75, "b": 0.4375, "c": 2.625},  # 14/8; 14/32 layers; 1.75 + 2 × 0.4375
    ),
    "P06": (
        {"model": 70, "sequence": 4096, "micro_batch": 1, "tensor": 8, "flash": "yes", "sp": "no"},
        # sbh = 4096 × 8192 = 33.554432e6; (10 + 24/8) sbh; × 80; and 2sbh × 80 = 5.36871 plus one live layer
        {"a": 436.2076, "b": 34.89661, "c": 5.80492},
    ),
    "P07": (
        {"megabytes": 1000, "ranks": 8, "link": 300, "latency": 5},
        {"a": 1750, "b": 5.90333},  # 2 × 7/8 × 1000; 1.75/300 s = 5.83333 ms, and 14 × 5 µs
    ),
    "P08": (
        {"billions": 7, "gradient_bytes": 2, "nodes": 8, "gigabits": 100, "cards": 1},
        # 2 × 7; 100/8; 2 × 63/64 × 14 = 27.5625, over 12.5; 2 × 7/8 × 14 = 24.5, over 12.5
        {"a": 14, "b": 12.5, "c": 2.205, "d": 1.96},
    ),
    "P09": (
        {"compute": 4.5, "communication": 4.0, "tail": 0},
        {"a": 3.0, "b": 1.0, "c": 5.5, "d": 18.1818},  # 2/3 × 4.5; 4 − 3; 4.5 + 1; 1/5.5
    ),
    "P10": (
        {"gpus": 512, "tensor": 4, "stages": 2, "micro_batch": 1, "sequence": 4096, "tokens": 4194304},
        {"a": 64, "b": 1024, "c": 16},  # 512/8; 4,194,304/4,096; 1024/64
    ),
    "P11": (
        {"optimizer": "Adam", "micro_batches": 8, "norm": 0.5, "clip": 1.0},
        # 8 × 0.5; Adam divides by its own scale; clipped to 1; 1/0.5
        {"a": 4, "b": ["about-equal"], "c": 1, "d": 2, "e": ["always-clipped", "logged-norm"]},
    ),
    "P12": (
        {"operation": "all-gather", "gigabytes": 14, "ranks": 8, "link": 300, "percent": 80},
        # 7/8 × 14 = 12.25 GB over 300; at 80 % 51.04 ms: 14/0.05104 × 7/8 = 240; 240/300
        {"a": 40.8333, "b": 240, "c": 80},
    ),
    "P13": (
        {
            "model": 70,
            "sequence": 4096,
            "micro_batch": 1,
            "tensor": 8,
            "stage_layers": 20,
            "passes": "training",
            "device": "a100-80gb",
        },
        # 2 × 33.554432; 4 × 20; 80 × 2 × 7/8 × 67.108864 MB = 9.39524 GB; over 300 GB/s
        {"a": 67.108864, "b": 80, "c": 9.39524, "d": 31.3175},
    ),
    "P14": (
        {"hidden": 4096, "tensor": 8, "device": "a100-80gb", "percent": 50, "longer": 2},
        # 2/9 × 7 × 156e12/(4096 × 300e9) = 2/9 × 0.888672; × 300/100 through four cards a side; the batch cancels
        {"a": 19.7483, "b": 59.2448, "c": ["same"], "d": 9.87413},
    ),
    "P15": (
        {"stages": 8, "micro_batches": 32},
        {"a": 17.9487, "b": 21.875},  # 7/39; 7/32
    ),
    "P16": (
        {"stages": 8, "percent": 8, "chunks": 2, "replicas": 16, "micro_batch": 1},
        # 7 × 0.92/0.08 = 80.5, up; half of it 40.25, up to a multiple of 8; 81 × 16
        {"a": 81, "b": 48, "c": 1296},
    ),
    "P17": (
        {"stages": 8, "micro_batches": 32, "stage": 3, "shape": "llama-65b", "sequence": 2048},
        # 8 − 3; a layer saves 34 × 2048 × 8192 = 0.570425 GB, a stage's ten 5.70425: × 5 and × 32
        {"a": 5, "b": 28.5213, "c": 182.536},
    ),
    "P18": (
        {"billions": 70, "tensor": 8, "stages": 2, "data": 16},
        # 70/16; 4 × 4.375 + 12 × 4.375/16 = 17.5 + 3.28125; 1120/256
        {"a": 4.375, "b": 20.78125, "c": 4.375},
    ),
    "P19": (
        {"model": "llama-2-70b", "device": "a100-80gb", "nodes": 16, "sequences": 512, "tensor": 4, "stages": 4},
        # 128/16; 4.375 × (4 + 12/8); 512/8; 3/67; 2/9 × 3 × 156e12/(8192 × 300e9) = 2/3 × 0.0634766.
        # Per unit of t − 1 that is 0.0141059, m = 64: 0.0987413 + 1/64 = 0.114366, 0.0423177 + 3/64 = 0.0891927,
        # 0.0141059 + 7/64 = 0.123481
        {"a": 8, "b": 24.0625, "c": 64, "d": 4.47761, "e": 4.23177, "f": ["middle", "wide", "deep"]},
    ),
    "P20": (
        {"device": "h100-80gb", "gpus": 512, "days": 90, "percent": 40},
        # 512 × 989e12 × 0.4 = 2.025472e17, × 7.776e6 s = 1.575007e24; √1.312506e22; × 20
        {"a": 1.575007e24, "b": 114.5647, "c": 2291.29},
    ),
    "P21": (
        {"billions": 30, "trillions": 8.75, "served": 10},
        # 8750/30; over 20; 6 × 0.03 × 8.75 = 1.575 and 2 × 0.03 × 10 = 0.6, in 1e24; 3 × 8.75
        {"a": 291.667, "b": 14.58333, "c": 2.175e24, "d": 26.25},
    ),
    "P22": (
        {"device": "a100-80gb", "billions": 7, "gpus": 64, "measured": 47, "trillions": 0.5, "serial": 2, "ranks": 256},
        # 3,490 tokens/s each: 3490 × 4.2e10 = 1.4658e14 of 3.12e14; × 4/3; 5e11/223,360 = 2.238539e6 s;
        # 1/(0.02 + 0.98/256) = 1/0.023828125
        {"a": 46.9808, "b": 62.6410, "c": 25.9090, "d": 41.9672},
    ),
    "P23": (
        {"gpus": 1024, "hours": 50677, "write": 60, "restart": 10, "days": 30},
        # 50677/1024; √(2 × 60 × 178,161.3) = √21,379,360 = 4,623.78 s; 60/4623.78 + (2311.89 + 600)/178,161.3
        # = 0.0129764 + 0.0163441; 720 h/49.48926 h
        {"a": 49.48926, "b": 77.0630, "c": 2.93205, "d": 14.5486},
    ),
    "P24": (
        {"billions": 7, "percent": 1, "ranks": 64, "width": 4096, "rank": 4, "scale": 1024},
        # 4/(0.01 × 8); 63 × 0.01 × 7 × 6; 2 × 63/64 × 14; 4096²/(4 × 8192); 65,504/1024; 26.46 is 96 % of 27.5625
        {"a": 50, "b": 26.46, "c": 27.5625, "d": 512, "e": 63.96875, "f": ["saves-little-or-nothing"]},
    ),
    "P25": (
        {"billions": 7, "device": "a100-80gb", "link": 25, "tokens": 16384, "percent": 50},
        # 2 × 14; 28/25; 6 × 7e9 × 16,384 = 6.88128e14 over 1.56e14; 28e9/25e9 × 1.56e14/4.2e10; 4.4 s hide 1.1 s
        {"a": 28, "b": 1.12, "c": 4.41108, "d": 4160, "e": ["hidden"]},
    ),
    "P34": (
        {"rows": 4096, "columns": 14336, "millions": 4, "ranks": 64, "billions": 14},
        # 5 · (4 · 4,096² · 14,336 + 2 · 4,096³) = 5.4976e12 over 494.5e12; over 6 · 4,096 · 14,336 · 4e6 = 1.4093e15;
        # 64 times; 28 · 63/64; 4 · 14 + 8 · 14/64
        {"a": 11.117, "b": 0.39009, "c": 24.966, "d": 27.5625, "e": 57.75},
    ),
    "P35": (
        {"billions": 8, "sites": 2, "gigabits": 10, "step": 2, "percent": 5},
        # 32 GB over 1.25 GB/s; 25.6/27.6; 25.6 · 0.95/(0.05 · 2) = 243.2; 4 GB over 244 · 2 s
        {"a": 25.6, "b": 92.754, "c": 244, "d": 0.0081967},
    ),
    "SP1": (
        {"shape": "gpt-3-13b", "ranks": 8, "sequence": 2048, "micro_batch": 1, "percent": 90},
        # 16 × 13; 52 + 156/8; 26 + 182/8; 208/8; sbh = 10.48576e6: × 34 × 40; 5 × 40 × 2048/5120 = 80, (34 + 80) × 40;
        # 71.5 + 14.3 is over 72, 48.75 + 14.3 is not; (72 − 26)/14.26 = 3.2
        {"a": 208, "b": 71.5, "c": 48.75, "d": 26, "e": 14.26063, "f": 47.81507, "g": ["stage-2"], "h": 3},
    ),
    "SP2": (
        {
            "model": "llama-2-70b",
            "device": "a100-80gb",
            "nodes": 16,
            "tensor": 4,
            "stages": 4,
            "batch": 512,
            "trillions": 0.5,
            "room": 40,
        },
        # 1120/40; 140/16; 8.75 + 8.75 + 52.5/8; 512/8; 3/67; 4 × 20 × 2 × 3/4 × 67.108864 MB = 8.05306 GB over 300;
        # 2.1e23/(128 × 312e12 × 0.45 = 1.79712e16) = 1.168536e7 s
        {
            "a": 28,
            "b": 8.75,
            "c": 24.0625,
            "d": 64,
            "e": 4.47761,
            "f": 26.8435,
            "g": 135.247,
            "h": ["tensor-in-the-node", "data-outermost", "micro-batches-shrink"],
        },
    ),
    "SP3": (
        {"mantissa": 1, "exponent": 24, "cut": 4, "served": 2, "device": "h100-80gb", "percent": 40, "days": 30},
        # √(1e24/120); × 20; a quarter of 91.2871 in steps of 0.1 is 22.8: 1e24/(6 × 22.8e9); 7309.94/22.8/20;
        # 3,651 billion served: 2 × (91.2871 − 22.8)e9 × 3.651e12; 1e24/(989e12 × 0.4 × 2.592e6 = 1.0253952e21), up
        {
            "a": 91.2871,
            "b": 1825.742,
            "c": 7309.94,
            "d": 16.03057,
            "e": 5.00093e23,
            "f": 976,
            "g": ["serving", "data", "latency", "law-differs"],
        },
    ),
    "SP4": (
        {"billions": 7, "nodes": 8, "port": 100, "tokens": 16384, "percent": 50, "steps": 8},
        # 2 × 7; 2 × 63/64 × 14; over 12.5; 2 × 7/8 × 14/12.5; 6.88128e14/1.56e14; 2.205/6.61608;
        # backward of 2.94 s hides 2.205 s; 28 + 84/64
        {
            "a": 14,
            "b": 27.5625,
            "c": 2.205,
            "d": 1.96,
            "e": 4.41108,
            "f": 33.3279,
            "g": 4.41108,
            "h": 29.3125,
            "i": ["accumulate", "port-per-gpu", "longer-micro-batches"],
        },
    ),
    "SP5": (
        {"model": "gpt-30b", "gpus": 512, "days": 90, "percent": 40, "layout": "t4p2", "hours": 50677, "write": 60},
        # As P20 in a and b; 1.575007e24/1.8e11; 8750.04/30/20; 3.75 × (4 + 12/64); 1.8e11 × 4,194,304 = 7.549747e17
        # over 2.025472e17; 50677/512; √(120 × 356,322.7) = 6,539.01 s;
        # 60/6539.01 + (3269.5 + 600)/356,322.7 = 0.0091757 + 0.0108595; 14 × 30
        {
            "a": 1.575007e24,
            "b": 114.5647,
            "c": 8.75004,
            "d": 14.5834,
            "e": 15.70313,
            "f": 3.72740,
            "g": 98.97852,
            "h": 108.9835,
            "i": 2.00352,
            "j": 420,
            "k": ["restart"],
        },
    ),
}


def variant_of(content: Catalogue, problem: str, parameters: Mapping[str, Any]) -> Variant:
    """The problem with its parameters fixed. They must be among those it draws, and satisfy its conditions."""
    source = content.problems[problem]
    assert set(parameters) == set(source.parameters)
    assert all(value in source.parameters[name] for name, value in parameters.items())
    fixed = {name: (value,) for name, value in parameters.items()}
    return make_variant(source.model_copy(update={"parameters": fixed, "levels": ()}), 1)


def test_every_problem_is_here(content: Catalogue) -> None:
    problems = [*range(1, 26), 34, 35]
    assert set(BY_HAND) == {f"P{number:02}" for number in problems} | {f"SP{number}" for number in range(1, 6)}
    assert set(BY_HAND) <= set(content.problems)


@pytest.mark.parametrize("problem", list(BY_HAND))
def test_keys_are_those_found_by_hand(content: Catalogue, problem: str) -> None:
    parameters, expected = BY_HAND[problem]
    variant = variant_of(content, problem, parameters)
    graded = {
        part.id: part for part in variant.parts if part.points and not isinstance(part.question, ConfigurationQuestion)
    }
    assert set(graded) == set(expected)
    for name, part in graded.items():
        if isinstance(part.question, NumberQuestion):
            assert part.key / SCALES[part.question.unit][1] == pytest.approx(expected[name], rel=1e-3), name
        elif isinstance(part.question, ChoiceQuestion):
            assert sorted(part.key) == sorted(expected[name]), name
        elif isinstance(part.question, OrderQuestion):
            assert part.key == expected[name], name


@pytest.mark.parametrize("problem", list(BY_HAND))
def test_what_was_found_by_hand_grades_as_right(content: Catalogue, problem: str) -> None:
    parameters, expected = BY_HAND[problem]
    for part in variant_of(content, problem, parameters).parts:
        answer = expected.get(part.id)
        if isinstance(part.question, NumberQuestion):
            assert part.grade(f"{answer} {part.question.unit}").status == "correct", part.id
        elif isinstance(answer, list):
            assert part.grade(", ".join(answer)).status == "correct", part.id


# Problems that end in a free plan: the part's id, and GPUs over which its degrees multiply out.
PLANS = {"P19": ("g", 128), "SP2": ("i", 128), "SP5": ("l", 512)}


def plan_part(content: Catalogue, problem: str) -> ConfigurationQuestion:
    variant = variant_of(content, problem, BY_HAND[problem][0])
    part = next(part for part in variant.parts if part.id == PLANS[problem][0])
    assert isinstance(part.question, ConfigurationQuestion)
    return part.question


@pytest.mark.parametrize(
    ("problem", "plan"),
    [
        ("P19", "tensor 4, pipeline 4, data 8, zero 1, micro_batch 1"),
        ("SP2", "tensor 4, pipeline 2, data 16, zero 1, micro_batch 1"),
        ("SP5", "tensor 2, pipeline 2, data 128, zero 1, micro_batch 1"),
    ],
)
def test_little_model_parallelism_inside_the_node_is_accepted(content: Catalogue, problem: str, plan: str) -> None:
    """Narayanan et al. 2021, section 3: the least tensor times pipeline that fits, tensor inside the node."""
    assert plan_part(content, problem).grade(plan).status == "correct"


@pytest.mark.parametrize(
    ("problem", "plan", "why"),
    [
        # 72 GB hold neither 16 × 70/16 = 70 GB of unsharded state nor, here, the activations of whole replicas
        ("P19", "tensor 1, pipeline 1, data 128, zero 1, micro_batch 1", "does-not-fit"),
        ("SP2", "tensor 1, pipeline 1, data 128, zero 1, micro_batch 1", "does-not-fit"),
        ("SP5", "tensor 1, pipeline 1, data 512, zero 1, micro_batch 1", "does-not-fit"),  # 4 × 30 = 120 GB
        # tensor parallelism over two nodes; FSDP that gathers for every micro-step across a tensor group
        ("P19", "tensor 16, pipeline 1, data 8, zero 1, micro_batch 1", "far-from-best"),
        ("SP2", "tensor 16, pipeline 1, data 8, zero 1, micro_batch 1", "far-from-best"),
        ("SP5", "tensor 8, pipeline 8, data 8, zero 3, micro_batch 1", "far-from-best"),
    ],
)
def test_poor_plans_are_told_why(content: Catalogue, problem: str, plan: str, why: str) -> None:
    grade = plan_part(content, problem).grade(plan)
    assert (grade.status, grade.misconception) == ("wrong", why)
    assert 0 < grade.credit < 1


@pytest.mark.parametrize("problem", list(PLANS))
def test_degrees_that_do_not_multiply_to_the_gpus_cost_nothing(content: Catalogue, problem: str) -> None:
    grade = plan_part(content, problem).grade("tensor 4, pipeline 4, data 2, zero 1, micro_batch 1")
    assert grade.status == "invalid"
    assert str(PLANS[problem][1]) in grade.message


@pytest.mark.parametrize("model", ["llama-2-13b", "gpt-30b", "llama-65b"])
def test_a_search_within_a_problems_limits_finds_the_plan_that_its_judge_calls_best(
    content: Catalogue, model: str
) -> None:
    """SP5's plan: its memory, its schedule, nothing recomputed, the stages and degrees that are offered."""
    drawn = {"model": model, "gpus": 512, "days": 90, "percent": 40, "layout": "t2p4", "hours": 50677, "write": 60}
    variant = variant_of(content, "SP5", drawn)
    judge = next(part.question for part in variant.parts if part.id == "l")
    assert isinstance(judge, ConfigurationQuestion)
    cluster = dict(judge.plan["cluster"])
    limits = {
        "memory_bytes": cluster.pop("memory_bytes"),
        "axes": {name: judge.fields[name] for name in ("tensor", "pipeline", "data", "zero", "micro_batch")}
        | {"schedule": ["1f1b"], "recompute": ["none"], "shard": [None], "reshard_after_forward": [None]},
        "at_most": {"context": 1},
    }
    asked = {"model": judge.plan["model"], "training": judge.plan["training"], "cluster": cluster, "limit": 1}
    result = search(parse_search_request(asked | limits))
    (found,) = result.best
    best = judge.best()
    degrees = ("tensor", "pipeline", "data", "zero")
    assert [getattr(found.parallel, name) for name in degrees] == [best.chosen[name] for name in degrees]
    assert (found.training.micro_batch, found.step_seconds) == (best.chosen["micro_batch"], best.seconds)
    assert {"axes.recompute", "at_most.context"} <= set(result.left_out)
