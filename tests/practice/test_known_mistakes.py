"""The mistakes interviewers hear, each with its number worked out by hand, are told from right and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.content.catalogue import Catalogue
from app.content.problem_schemas import NumberPart
from app.practice.checks import check_problems
from app.practice.parts import Part
from app.practice.variants import make_variant

P02 = {"billions": 3, "device": "a100-80gb", "percent": 90}
P04 = {"billions": 70, "memory": 80, "percent": 85, "reserve": 20}
P05 = {"billions": 7, "ranks": 8, "live": 2}
P06 = {"model": 70, "sequence": 4096, "micro_batch": 1, "tensor": 8, "flash": "yes", "sp": "no"}
P07 = {"megabytes": 1000, "ranks": 8, "link": 300, "latency": 5}
P08 = {"billions": 7, "gradient_bytes": 2, "nodes": 8, "gigabits": 100, "cards": 1}
P09 = {"compute": 4.5, "communication": 4.0, "tail": 0}
P10 = {"gpus": 512, "tensor": 4, "stages": 2, "micro_batch": 1, "sequence": 4096, "tokens": 4194304}
P11 = {"optimizer": "Adam", "micro_batches": 8, "norm": 0.5, "clip": 1.0}
P12 = {"operation": "all-gather", "gigabytes": 14, "ranks": 8, "link": 300, "percent": 80}
P13 = {
    "model": 70,
    "sequence": 4096,
    "micro_batch": 1,
    "tensor": 8,
    "stage_layers": 20,
    "passes": "training",
    "device": "a100-80gb",
}
P14 = {"hidden": 4096, "tensor": 8, "device": "a100-80gb", "percent": 50, "longer": 2}


def part_of(content: Catalogue, problem: str, parameters: dict[str, Any], part: str) -> Part:
    """The part with its problem's parameters fixed; levels narrow what is drawn, so they are left out."""
    fixed = {name: (value,) for name, value in parameters.items()}
    found = content.problems[problem].model_copy(update={"parameters": fixed, "levels": ()})
    return next(each for each in make_variant(found, 1).parts if each.id == part)


@pytest.mark.parametrize(
    ("problem", "parameters", "part", "text"),
    [
        ("P02", P02, "a", "48 GB"),  # 16 × 3
        ("P02", P02, "d", "24 GB"),  # 0.9 × 80 − 48
        ("P02", P02, "c", "fits"),
        ("P04", P04, "a", "48 GB"),  # 0.85 × 80 − 20
        ("P04", P04, "b", "24"),  # 1,120 / 48 = 23.3
        ("P04", P04, "c", "24"),  # three nodes
        ("P04", P04, "d", "neither"),  # 4N = 280 GB and 2N = 140 GB, both over 48
        ("P05", P05, "c", "2.625 GB"),  # 14/8 + 2 × 14/32
        ("P06", P06, "b", "34.9 GB"),  # (10 + 24/8) × 4096 × 8192 × 80
        ("P07", P07, "b", "5.903 ms"),  # 1.75 GB / 300 GB/s + 14 × 5 µs
        ("P08", P08, "c", "2.205 s"),  # 2 × 63/64 × 14 GB / 12.5 GB/s
        ("P08", P08, "d", "1.96 s"),  # 2 × 7/8 × 14 GB / 12.5 GB/s
        ("P09", P09, "b", "1 s"),  # 4 − 2/3 × 4.5
        ("P09", P09, "c", "5.5 s"),
        ("P10", P10, "a", "64"),  # 512 / 8
        ("P10", P10, "b", "1,024"),
        ("P10", P10, "c", "16"),
        ("P11", P11, "a", "4.0"),  # 8 × 0.5
        ("P11", P11, "b", "about-equal"),
        ("P11", P11, "c", "1"),
        ("P11", P11, "d", "2x"),  # 1.0 / 0.5
        ("P12", P12, "a", "40.833 ms"),  # 7/8 × 14 GB / 300 GB/s
        ("P12", P12, "b", "240 GB/s"),  # 80 % of 300
        ("P13", P13, "a", "67.1 MB"),  # 2 × 4096 × 8192
        ("P13", P13, "b", "80"),
        ("P13", P13, "c", "9.395 GB"),  # 80 × 1.75 × 67.1 MB
        ("P13", P13, "d", "31.3 ms"),
        ("P14", P14, "a", "19.7 %"),  # 2/9 × 7 × 156e12 / (4096 × 300e9)
        ("P14", P14, "b", "59.2 %"),  # four cards of 25 GB/s a node: 3 times slower
        ("P14", P14, "c", "same"),
        ("P14", P14, "d", "9.87 %"),
    ],
)
def test_what_is_right_by_hand_is_right(
    content: Catalogue, problem: str, parameters: dict[str, Any], part: str, text: str
) -> None:
    grade = part_of(content, problem, parameters, part).grade(text)
    assert grade.status == "correct", grade.message


@pytest.mark.parametrize(
    ("problem", "parameters", "part", "text", "slip"),
    [
        ("P02", P02, "a", "6 GB", "weights-only"),
        ("P02", P02, "d", "32 GB", "usable-share-forgotten"),
        ("P02", P02, "c", "too-big", "too-big"),
        ("P04", P04, "b", "14", "no-share-no-reserve"),
        ("P04", P04, "b", "17", "reserve-forgotten"),
        ("P04", P04, "b", "2", "weights-only-of-all"),
        ("P04", P04, "d", "both", "both"),
        ("P05", P05, "c", "1.75 GB", "gathered-forgotten"),
        ("P05", P05, "c", "2.19 GB", "other-number-of-units"),
        ("P05", P05, "c", "14 GB", "all-weights"),
        ("P05", P05, "c", "15.75 GB", "model-on-top"),
        ("P06", P06, "b", "11.4 GB", "all-divided"),
        ("P06", P06, "b", "91.3 GB", "tensor-ignored"),
        ("P06", P06, "b", "53.7 GB", "twenty"),
        ("P06", P06, "a", "1.11 GB", "attention-matrix"),  # 88.6 GB over 80 layers
        ("P07", P07, "b", "3.333 ms", "once-over-the-link"),
        ("P07", P07, "b", "23.333 ms", "naive"),
        ("P07", P07, "b", "2.95 ms", "both-directions"),
        ("P08", P08, "c", "0.276 s", "eight-times-off"),
        ("P08", P08, "c", "1.1025 s", "one-pass"),
        ("P08", P08, "c", "17.6 s", "times-eight-gpus"),
        ("P08", P08, "c", "4.41 s", "other-format"),
        ("P08", P08, "b", "100 GB/s", "bits-for-bytes"),
        ("P09", P09, "c", "8.5 s", "added-up"),
        ("P09", P09, "c", "4.5 s", "all-hidden"),
        ("P09", P09, "b", "0 s", "forward-too"),
        ("P10", P10, "c", "2", "all-gpus"),
        ("P10", P10, "c", "8", "tensor-only"),
        ("P10", P10, "c", "1,024", "replicas-forgotten"),
        ("P10", P10, "c", "65,536", "tokens-not-sequences"),
        ("P11", P11, "b", "times-a", "times-a"),
        ("P12", P12, "a", "81.667 ms", "all-reduce-factor"),
        ("P12", P12, "a", "46.667 ms", "whole-tensor"),
        ("P12", P12, "a", "326.667 ms", "share-for-tensor"),
        ("P13", P13, "c", "4.698 GB", "other-passes"),
        ("P13", P13, "c", "5.369 GB", "ring-forgotten"),
        ("P13", P13, "d", "15.7 ms", "both-directions"),
        ("P14", P14, "a", "9.9 %", "half"),
        ("P14", P14, "a", "39.5 %", "full-peak"),
        ("P14", P14, "c", "smaller", "smaller"),
    ],
)
def test_a_known_mistake_is_named_and_told(
    content: Catalogue, problem: str, parameters: dict[str, Any], part: str, text: str, slip: str
) -> None:
    grade = part_of(content, problem, parameters, part).grade(text)
    assert (grade.status, grade.misconception) == ("wrong", slip)
    assert grade.message


def test_a_mistake_that_nothing_cures_is_found(content: Catalogue) -> None:
    problem = content.problems["P15"]
    assert isinstance(problem.parts[0], NumberPart)
    bare = problem.parts[0].slips[0].model_copy(update={"cure": None})
    part = problem.parts[0].model_copy(update={"slips": (bare,)})
    wrong = replace(content, problems={"P15": problem.model_copy(update={"parts": (part,)})})
    assert [reason for _, _, reason in check_problems(wrong)] == [f"slip {bare.id} has no card that cures it"]
