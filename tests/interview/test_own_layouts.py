"""A claim is tested with the candidate's own configuration: read from words, and every figure is theirs or theory's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.content.catalogue import Catalogue
from app.grading.questions import NumberQuestion
from app.interview.drawing import draw, values_of
from app.interview.layouts import Layout, read_layout
from app.interview.parts import Part, Reaction, known_to, parts_of
from app.interview.prompts import prompt
from app.interview.questions import number_of
from app.interview.reacting import MOST_PROBES, react
from app.interview.scoring import scorecard
from app.units import scaled
from tests.support.shipped import shipped

PEAK_NIC = {"a100-80gb": 25e9, "h100-80gb": 50e9}
NVLINK = {"a100-80gb": 300e9, "h100-80gb": 450e9}
WORDINGS = (
    "I start with tensor {t}, pipeline {p}, data {d} and ZeRO-{z}. If memory is short I turn to pipeline 7.",
    "My decision: TP={t} inside the node, PP={p}, DP={d} with ZeRO-{z}; the alternative is TP=3 with DP=5.",
    "{t}-way tensor parallelism, a pipeline of {p}, data-parallel size {d}, ZeRO stage {z}.",
    "tp{t} pp{p} dp{d}, zero {z}",
)


@pytest.mark.parametrize(
    ("words", "layout"),
    [
        ("Tensor 8, no pipeline, data 64 and ZeRO-1: 17 GB of state.", Layout(8, 1, 64, 1, 1, True)),
        ("Tensor 16 and data 32. An alternative is ZeRO-3.", Layout(16, 1, 32, 1, 0, False)),
        ("TP 16 across two nodes, PP 4, CP 2, DP 4, FSDP.", Layout(16, 4, 4, 2, 3, True)),
        ("Tensor parallelism goes inside the node, data parallelism outside.", None),
        ("TP 0, DP 64", None),
        ("Tensor 999999, data 999999.", None),
        ("", None),
    ],
)
def test_the_first_degree_of_each_axis_counts(words: str, layout: Layout | None) -> None:
    assert read_layout(words) == layout


@settings(max_examples=25)
@given(
    tensor=st.sampled_from([1, 2, 4, 6, 8, 16, 24, 32, 64]),
    pipeline=st.integers(1, 16),
    data=st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]),
    zero=st.integers(0, 3),
    wording=st.sampled_from(WORDINGS),
    seed=st.integers(0, 40),
)
def test_every_figure_is_the_candidates_own_and_what_is_right_agrees_with_theory(
    tensor: int, pipeline: int, data: int, zero: int, wording: str, seed: int
) -> None:
    said = wording.format(t=tensor, p=pipeline, d=data, z=zero)
    part, values, answers = _commit(seed, said)
    asked = _asked(part, values, answers)
    number, key = _key(asked, values, answers), _by_hand(str(values["device"]), tensor, pipeline, data, zero)
    assert number.key == pytest.approx(key, rel=1e-9), asked.id
    assert number.grade(scaled(key, number.unit, 6)).status == "correct"
    text = prompt(asked, values, answers)
    assert text is not None
    given_figures = {8, tensor, tensor // 8, pipeline, data, zero, 2, 12, PEAK_NIC[str(values["device"])] / 1e9}
    figures = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", text.striptags())}
    assert figures <= given_figures, text


def _commit(seed: int, said: str) -> tuple[Part, dict[str, object], dict[str, str]]:
    interview = shipped().interviews["M5"]
    part = next(each for each in parts_of(interview) if each.id == "commit")
    answers = {"ask-time": "tokens", "time": "100 days", "state": "20 GB", "bubble": "10 %", "commit": said}
    return part, values_of(interview, draw(interview, seed)), answers


def _asked(part: Part, values: dict[str, object], answers: dict[str, str]) -> Part:
    interview = shipped().interviews["M5"]
    found = react(part, parts_of(interview), values, answers, {})
    assert found is not None
    return next(each for each in parts_of(interview, {"commit": found}) if each.own)


def _key(asked: Part, values: dict[str, object], answers: dict[str, str]) -> NumberQuestion:
    known = known_to(asked, values, answers)
    assert known is not None
    return number_of(asked, known)


def _by_hand(device: str, tensor: int, pipeline: int, data: int, zero: int) -> float:
    """What theory says, worked out here: a product, four ring all-reduces of 2sh bytes, or ZeRO's bytes."""
    if tensor * pipeline * data != 512:
        return float(tensor * pipeline * data)
    if tensor > 8:
        return 4 * 2 * (tensor - 1) / tensor * 2 * 4096 * 8192 / min(8 * PEAK_NIC[device], NVLINK[device])
    whole = {0: 16, 1: 4, 2: 2, 3: 0}[zero]
    return 70e9 / (tensor * pipeline) * (whole + (16 - whole) / data)


def test_it_is_asked_before_what_was_not_said_and_counts_as_a_probe(content: Catalogue) -> None:
    interview = content.interviews["M5"]
    part, values, answers = _commit(1, "Tensor 8, data 64 with ZeRO-1. It should work.")
    reactions: dict[str, Reaction] = {}
    asked = []
    while found := react(part, parts_of(interview, reactions), values, answers, reactions):
        reactions[part.id] = found
        part = next(each for each in parts_of(interview, reactions) if each.id == found.asks)
        answers[part.id] = "1 GB" if part.own else "I would look at it."
        asked.append(part.role)
    assert asked == ["own", "probe"]
    assert len(asked) == MOST_PROBES
    right = scaled(_by_hand(str(values["device"]), 8, 1, 64, 1), "GB")
    assert reactions["commit.own.state"].remark == f"Where you have 1 GB I get {right}."
    row = scorecard(interview, values, answers, {}, reactions).row("commit.own.state")
    assert (row.verdict, row.points, row.kind, row.is_harder) == ("wrong", 0.0, "number", True)
    right = scaled(_by_hand(str(values["device"]), 8, 1, 64, 1), "GB", 6)
    card = scorecard(interview, values, {**answers, "commit.own.state": right}, {}, reactions)
    assert card.row("commit.own.state").verdict == "right"


def test_a_right_number_about_the_own_layout_is_the_half_of_the_point_that_was_missing(content: Catalogue) -> None:
    interview = content.interviews["M5"]
    part, values, answers = _commit(1, "Tensor 8, pipeline 8 and data 8 with ZeRO-1 it is.")
    found = react(part, parts_of(interview), values, answers, {})
    assert found is not None
    assert found.asks == "commit.own.state"
    counts = {}
    for said in ("999 GB", scaled(_by_hand(str(values["device"]), 8, 8, 8, 1), "GB", 6)):
        card = scorecard(interview, values, {**answers, found.asks: said}, {}, {"commit": found})
        counts[said] = next(each.counts for each in card.row("commit").rubric if each.id == "layout")
    assert list(counts.values()) == [0.0, 0.5]


def test_who_commits_to_no_layout_is_asked_about_none(content: Catalogue) -> None:
    part, values, answers = _commit(1, "I would start with a standard configuration.")
    found = react(part, parts_of(content.interviews["M5"]), values, answers, {})
    assert found is not None
    assert found.asks == "commit.probe.layout"
