"""The labelled answers are well formed: their ids exist, and score and level follow from the labels."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.agreement import kappa
from tests.support.yaml_files import read_yaml

HERE = Path(__file__).parent / "answers"
RUBRICS = Path(__file__).parents[2] / "cards" / "rubrics"
SLUGS = [f"R{number:02}" for number in range(1, 13)]
LEVELS = ["no hire", "lean no hire", "hire", "strong hire"]
CUT_OFFS = [0.35, 0.60, 0.80]
VOICES = {
    "terse",
    "rambling",
    "typos",
    "non-native",
    "dictated",
    "bullets",
    "definitions",
    "stuffed",
    "fluent-wrong",
    "partly-wrong",
    "strong",
}
FIELDS = {"rubric", "id", "voice", "text", "points", "critical", "level", "score"}
Answer = dict[str, Any]


def read(part: str) -> list[Answer]:
    return [answer for slug in SLUGS for answer in read_yaml(HERE / part / f"{slug}.yaml")]


OPEN, FROZEN = read("open"), read("frozen")
ANSWERS = OPEN + FROZEN


@pytest.fixture(scope="module")
def rubrics() -> dict[str, Answer]:
    """The rubrics by id, as their files have them: only ids and weights are looked at here."""
    files = [read_yaml(path) for path in sorted(RUBRICS.glob("R*.yaml"))]
    return {rubric["id"]: rubric for rubric in files}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: str(answer["id"]))
def test_labels_name_what_the_rubric_has(answer: Answer, rubrics: dict[str, Answer]) -> None:
    rubric = rubrics[answer["rubric"]]
    assert set(answer) - {"partly", "floor"} == FIELDS
    assert answer["voice"] in VOICES
    assert list(answer["points"]) == [point["id"] for point in rubric["points"]]
    assert set(answer["points"].values()) <= {"met", "missed", "contradicted"}
    assert all(answer["points"][point] == "met" for point in answer.get("partly", []))
    assert set(answer["critical"]) <= {error["id"] for error in rubric["critical"]}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: str(answer["id"]))
def test_score_and_level_follow_from_the_labels(answer: Answer, rubrics: dict[str, Answer]) -> None:
    weights = {point["id"]: point.get("weight", 1) for point in rubrics[answer["rubric"]]["points"]}
    earned = {point: weights[point] for point, label in answer["points"].items() if label == "met"}
    halves = sum(weights[point] for point in answer.get("partly", [])) / 2
    score = (sum(earned.values()) - halves) / sum(weights.values())
    assert answer["score"] == pytest.approx(score, abs=0.0005)

    level = sum(score >= cut_off for cut_off in CUT_OFFS)
    if answer.get("floor"):
        assert level == 0
        assert not answer["critical"]
        assert "contradicted" not in answer["points"].values()
        level = 1
    assert answer["level"] == LEVELS[min(level, 1) if answer["critical"] else level]


def test_there_are_enough_answers_of_every_kind() -> None:
    assert len(ANSWERS) >= 132
    assert len(FROZEN) >= 44
    assert len({answer["id"] for answer in ANSWERS}) == len({answer["text"] for answer in ANSWERS}) == len(ANSWERS)
    assert {answer["voice"] for answer in FROZEN} == VOICES
    for slug in SLUGS:
        mine = [answer for answer in ANSWERS if answer["rubric"] == slug]
        assert len(mine) >= 11
        levels, voices = Counter(each["level"] for each in mine), Counter(each["voice"] for each in mine)
        assert min(levels[level] for level in LEVELS) >= 2, slug
        assert voices["stuffed"] >= 1, slug
        assert voices["fluent-wrong"] >= 1, slug


def test_what_is_frozen_was_not_chosen_by_content() -> None:
    for slug in SLUGS:
        digests = {hashlib.sha256(f"{slug}-{number:02}".encode()).hexdigest(): number for number in range(1, 12)}
        expected = {f"{slug}-{digests[digest]:02}" for digest in sorted(digests)[:4]}
        assert {answer["id"] for answer in FROZEN if answer["rubric"] == slug} == expected


def test_the_best_that_stuffing_and_fluent_nonsense_earn_is_a_lean_no_hire() -> None:
    hollow = [answer for answer in ANSWERS if answer["voice"] in {"stuffed", "fluent-wrong"}]
    assert {answer["level"] for answer in hollow} <= set(LEVELS[:2])


def test_texts_are_as_long_as_candidates_make_them() -> None:
    lengths = sorted(len(answer["text"].split()) for answer in ANSWERS)
    assert lengths[0] >= 20
    assert lengths[-1] <= 300
    assert lengths[-1] >= 5 * lengths[0]


def test_two_hands_label_the_same_answers_alike() -> None:
    """Else there were nothing for a grader to agree with."""
    first = {each["id"]: each["points"] for each in read_yaml(HERE / "third-open" / "third-author.yaml")}
    second = {each["id"]: each for each in read_yaml(HERE / "second-hand.yaml")}
    pairs = [(first[id_][point], said) for id_, each in second.items() for point, said in each["points"].items()]
    assert len(pairs) == 337
    assert kappa(pairs) > 0.9
    assert all(each["points"][point] == "met" for each in second.values() for point in each["partly"])
