"""What hides behind what: the ledger, and a plan's choice of what is overlapped."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory.planner import estimate, parse_estimate_request
from app.theory.planner.engine.ledger import Ledger
from app.theory.planner.engine.resolve import plan_of

PLAN: dict[str, Any] = {
    "model": "gpt-3-175b",
    "training": {"sequence": 2048, "global_batch": 512, "state_layout": "megatron-18"},
    "parallel": {
        "data": 8,
        "tensor": 8,
        "pipeline": 8,
        "virtual_stages": 4,
        "schedule": "interleaved",
        "sequence_parallel": True,
        "zero": 1,
    },
    "cluster": {"gpu": "h100-80gb"},
    "profile": "megatron-core",
}


def rows(overlap: dict[str, bool] | None = None, **changes: Any) -> dict[str, float]:
    """Exposed seconds by name of collective."""
    parallel = {**PLAN["parallel"], **({"overlap": overlap} if overlap is not None else {})}
    found = estimate(parse_estimate_request({**PLAN, "parallel": parallel, **changes})).to_json()
    shown: dict[str, float] = {}
    for row in found["communication"]:
        shown[row["name"]] = shown.get(row["name"], 0.0) + row["exposed_seconds"]
    return shown


def test_a_second_of_compute_hides_one_collective_of_a_link_once() -> None:
    ledger = Ledger(forward=1.0, backward=2.0, contention=0.25)
    assert ledger.every("backward", "inter_node", 1.5) == pytest.approx(1.5 * 0.25)
    assert ledger.every("backward", "inter_node", 1.5) == pytest.approx(1.5 - 0.5 * 0.75)  # half a second was left
    assert ledger.every("backward", "inter_node", 1.0) == pytest.approx(1.0)
    assert ledger.every("backward", "intra_node", 1.0) == pytest.approx(0.25)  # another link
    assert ledger.every("forward", "inter_node", 1.0, window=0.5) == pytest.approx(1.0 - 0.5 * 0.75)


def test_what_runs_once_finds_what_every_micro_batch_left() -> None:
    ledger = Ledger(forward=1.0, backward=2.0, contention=0.0)
    ledger.every("backward", "inter_node", 1.5)
    assert ledger.once("backward", "inter_node", 1.0) == pytest.approx(0.5)
    assert ledger.once("backward", "inter_node", 1.0) == pytest.approx(1.0)
    assert ledger.once("backward", "inter_node", 1.0, passes=4.0) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("data", "Gradients"),
        ("weights", "Updated weights"),
        ("tensor", "Tensor parallel, forward"),
        ("pipeline", "Activations and their gradients"),
    ],
)
def test_each_part_of_overlap_hides_its_own_collectives(part: str, name: str) -> None:
    with_it, without = rows(), rows({part: False})
    assert with_it[name] < without[name]


def test_what_is_not_said_is_as_the_profile_does_it() -> None:
    def overlap(profile: str, **parallel: Any) -> tuple[bool, bool, bool, bool]:
        request = {**PLAN, "profile": profile, "parallel": {**PLAN["parallel"], **parallel}}
        found = plan_of(parse_estimate_request(request)).overlap
        return found.data, found.weights, found.tensor, found.pipeline

    assert overlap("megatron") == (False, False, False, False)
    assert overlap("megatron-core") == (True, True, True, True)
    assert overlap("megatron-core", overlap={"tensor": False}) == (True, True, False, True)
    # messages between stages are sent beside compute only where chunks are interleaved
    assert overlap("megatron-core", virtual_stages=1, schedule="1f1b")[3] is False
    assert overlap("fsdp2") == (True, True, False, True)


def test_chunks_of_a_tensor_collective_need_the_sequence_spread() -> None:
    plain = {**PLAN["parallel"], "sequence_parallel": False}
    on, off = (
        estimate(parse_estimate_request({**PLAN, "parallel": {**plain, "overlap": {"tensor": tensor}}})).to_json()
        for tensor in (True, False)
    )
    assert on["time"] == off["time"]


def test_nothing_is_ever_gained_by_overlapping_less() -> None:
    steps = []
    for overlap in (
        {},
        {"data": False},
        {"data": False, "tensor": False},
        {"data": False, "tensor": False, "pipeline": False},
    ):
        request = {**PLAN, "parallel": {**PLAN["parallel"], "overlap": overlap}}
        steps.append(estimate(parse_estimate_request(request)).to_json()["time"]["step_seconds"])
    assert steps == sorted(steps)
