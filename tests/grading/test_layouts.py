"""Layouts on a cluster: read from words, judged by the engine, each reason with its figure."""

from __future__ import annotations

import pytest

from app.grading.questions.layout import MISTAKES, LayoutQuestion
from app.theory.collectives import half_ring_bytes

PLAN = {
    "model": {"layers": 16, "hidden": 4096, "heads": 32, "kv_heads": 32, "ffn_hidden": 16384, "vocab": 32000},
    "training": {"sequence": 4096, "global_batch": 64, "micro_batch": 1, "recompute": "none"},
    "parallel": {"zero": 1, "schedule": "1f1b"},
    "profile": "megatron-core",
    "cluster": {"gpu": "a100-80gb", "gpus_per_node": 4, "nodes": 4},
}
ASKED = LayoutQuestion(PLAN, 0.1, {"crossing": "C70"})


@pytest.mark.parametrize(
    "text",
    [
        "tensor 4, context 1, data 2, pipeline 2",
        "tp4 · dp2 · pp2",
        "TP=4, DP = 2, PP: 2",
        "tensor, 4, data, 2, pipeline, 2, context, ",
    ],
)
def test_however_it_is_written_it_is_the_same_layout(text: str) -> None:
    assert ASKED.said(text) == "tensor 4, then data 2, then pipeline 2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "No axis has a degree yet"),
        ("expert 4", "expert is no axis"),
        ("tensor 4, tensor 2", "tensor has two places"),
        ("tensor 0, data 16", "tensor 0: a degree is 1"),
        ("tensor 999999999999999, data 16", "a degree is 1 to 100,000"),
        ("NaN", "No axis has a degree yet"),
    ],
)
def test_what_is_no_layout_says_why(text: str, why: str) -> None:
    found = ASKED.grade(text)
    assert (found.status, found.credit) == ("invalid", 0.0)
    assert why in found.message
    assert ASKED.reasons(text) == ()


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("tensor 4, data 2", "gpus"),
        ("tensor 4, data 2, pipeline 4", "gpus"),
        ("pipeline 16, data 1", None),
        ("data 4, tensor 4", "crossing"),
        ("tensor 16", "crossing"),
    ],
)
def test_each_mistake_has_its_name(text: str, mistake: str | None) -> None:
    found = ASKED.grade(text)
    if mistake is None:
        assert found.misconception in (None, *MISTAKES)
        return
    assert found.misconception == mistake
    assert found.credit < 0.6
    assert found.cure == ASKED.cures.get(mistake)


def test_the_best_is_right_and_nothing_tried_is_faster_in_its_usual_order() -> None:
    best = ASKED.best()
    assert ASKED.grade(ASKED.answer_text).status == "correct"
    assert best.fits
    for tensor, pipeline in ((1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (4, 4)):
        layout = ASKED.filled(f"tensor {tensor}, data {16 // tensor // pipeline}, pipeline {pipeline}")
        assert layout is not None
        tried = ASKED.judged(layout)
        assert not tried.fits or tried.seconds >= best.seconds * (1 - 1e-9)


def test_the_order_decides_which_group_crosses_nodes_and_what_a_layer_costs() -> None:
    inside, across = (ASKED.filled(text) for text in ("tensor 4, data 4", "data 4, tensor 4"))
    assert inside
    assert across
    near, far = ASKED.judged(inside), ASKED.judged(across)
    assert [axis.name for axis in far.crossing] == ["tensor"]
    assert near.crossing == ()
    assert far.seconds > near.seconds
    assert far.held_bytes == near.held_bytes, "where a group lies does not change what it holds"
    tensor = {axis.name: axis for axis in far.cluster.axes}["tensor"]
    assert (tensor.nodes, tensor.stride) == (4, 4)
    # a ring with one NIC on each node sends no faster than the NIC: 25 GB/s of an A100's network
    rows = [row for row in far.estimate.communication if row.group == "tensor"]
    for row in rows:
        assert row.wire_bytes_per_rank_per_step == pytest.approx(
            half_ring_bytes(row.payload_bytes_per_rank_per_step, 4)
        )
        assert (row.seconds or 0) >= row.wire_bytes_per_rank_per_step / 25e9
    reasons = {each.text.split()[0]: each for each in ASKED.reasons("data 4, tensor 4")}
    assert not reasons["Tensor"].held
    assert "for each layer and micro-batch" in reasons["Tensor"].text
    assert ASKED.values("data 4, tensor 4") == {
        **{"data": 4, "tensor": 4, "context": 1, "pipeline": 1, "gpus": 16, "zero": 1},
        **{"data_nodes": 1, "tensor_nodes": 4, "context_nodes": 1, "pipeline_nodes": 1},
        **{"data_per_node": 4, "tensor_per_node": 1, "context_per_node": 1, "pipeline_per_node": 1},
    }


def test_the_drawing_is_the_layout() -> None:
    drawn = ASKED.drawn(ASKED.filled("data 4, tensor 2"))
    assert [drawn.axis_of(rank) for rank in range(16)] == ["", "data", "data", "data", "tensor"] + [""] * 11
    assert drawn.used == 8
    assert ASKED.drawn(None).used == 1
