"""What goes between hosts, worked by hand, and the planner's network held against it."""

from __future__ import annotations

from typing import Any

import pytest

from app.lab.predict import theory_of
from app.lab.records import TrainingTheory
from app.planner.service import answer_request
from labs.spec import parse_run_spec

MODEL = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 256}
LINK = 4e6  # bytes per second
OUT = 4 * 4 * 64 * 64  # a layer's output in fp32: four sequences of 64 tokens, width 64
NETWORK_EFFICIENCY = 0.85  # of a link's rate, as the planner counts on it


def theory(parallel: dict[str, int], micro_batch: int, micro_batches: int = 1, **rest: Any) -> TrainingTheory:
    training = {"sequence": 64, "micro_batch": micro_batch, "micro_batches": micro_batches}
    asked = {"model": MODEL, "training": training, "parallel": parallel, "hosts": 2, **rest}
    found = theory_of(parse_run_spec({"link": {"bytes_per_second": LINK}, **asked}))
    assert isinstance(found, TrainingTheory)
    return found


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_of_a_ring_over_both_hosts_one_rank_of_each_sends_across(micro_batches: int) -> None:
    """All four ranks are in one ring, so what a host sends to the other is what its last rank sends."""
    found = theory({"tensor": 4}, 4, micro_batches)
    assert found.bytes_between_hosts == found.wire_bytes_per_step
    # ten all-reduces of outputs, 1.5 times each around a ring of four, and three sums of 256 values for the loss
    assert found.wire_bytes_per_step == pytest.approx(micro_batches * 10 * 1.5 * OUT, rel=0.005)
    assert found.step_seconds == found.bytes_between_hosts / LINK


def test_gradients_go_across_once_a_step_however_many_micro_batches() -> None:
    one, four = theory({"data": 4}, 1), theory({"data": 4}, 1, 4)
    assert one.bytes_between_hosts == four.bytes_between_hosts == 1.5 * 4 * one.parameters


def test_of_a_pipeline_both_tensor_ranks_send_activations_and_their_part_of_the_shared_table() -> None:
    found = theory({"tensor": 2, "pipeline": 2}, 4)
    table = 4 * 256 * 64 / 2  # around a ring of two a rank sends it once
    assert found.bytes_between_hosts == 2 * (OUT + table)


def test_two_rings_share_a_hosts_link() -> None:
    """Tensor inside, data across: each of a host's two ranks is in a ring of its own with one of the other's."""
    found = theory({"tensor": 2, "data": 2}, 2)
    gradients = found.transfers[-1]
    assert gradients.group == "data"
    assert found.bytes_between_hosts == 2 * gradients.wire_bytes


def test_inside_of_a_host_nothing_goes_across_and_without_a_link_nothing_is_said() -> None:
    alone = theory_of(parse_run_spec({"model": MODEL, "parallel": {"data": 2}}))
    assert isinstance(alone, TrainingTheory)
    assert alone.bytes_between_hosts is None
    assert theory({"data": 4}, 1, link=None).step_seconds is None


@pytest.mark.parametrize(
    ("parallel", "micro_batch"),
    [({"tensor": 4}, 4), ({"data": 4}, 1), ({"tensor": 2, "data": 2}, 2), ({"tensor": 2, "pipeline": 2}, 4)],
)
def test_the_planners_network_takes_as_long_as_the_link(parallel: dict[str, int], micro_batch: int) -> None:
    """But for its efficiency and latency: it divides a node's link between the node's ranks that use it."""
    alone = theory(parallel, micro_batch)
    across = 2 if parallel.get("tensor") == 2 else 1  # ranks of a host that send across at once
    request = {
        "model": MODEL,
        "training": {
            "sequence": 64,
            "micro_batch": micro_batch,
            "global_batch": micro_batch * parallel.get("data", 1),
            "precision": "fp32",
            "state_layout": "fp32",
        },
        "parallel": parallel,
        "cluster": {"gpu": "a100-80gb", "gpus_per_node": 2, "nodes": 2, "inter_node_bytes_per_second": LINK / 2},
        "profile": "rankzero-labs",
    }
    rows = [row for row in answer_request(request).to_json()["communication"] if row["link"] == "inter_node"]
    sent = sum(row["wire_bytes_per_rank_per_step"] for row in rows)
    assert sent * across == pytest.approx(alone.bytes_between_hosts, rel=0.01)
    seconds = sum(row["seconds"] for row in rows)
    assert seconds * NETWORK_EFFICIENCY == pytest.approx(alone.step_seconds, rel=0.02)
