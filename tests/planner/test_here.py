"""A plan beside the machine at hand: measured figures take the place of data sheets, and its shape as a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.planner import service
from app.planner.here import Dry, NotDry, by_sheet, dry, lab_runs, tried_here
from app.theory import estimate, parse_estimate_request
from app.theory.planner import Measured
from labs.spec import SpecError, parse_run_spec

PLAN: dict[str, Any] = {
    "model": "llama-3-70b",
    "training": {"sequence": 8192, "global_batch": 64},
    "parallel": {
        "data": 4,
        "tensor": 8,
        "pipeline": 4,
        "virtual_stages": 2,
        "schedule": "interleaved",
        "sequence_parallel": True,
        "zero": 1,
    },
    "cluster": {"gpu": "h100-80gb"},
}
# As a laptop printed them.
LAPTOP = {
    "matmul_flops": 4e11,
    "attention_flops": 2e11,
    "memory_bytes_per_second": 3e10,
    "intra_node_bytes_per_second": 2e9,
    "precision": "fp32",
}


def with_cluster(**cluster: Any) -> dict[str, Any]:
    return {**PLAN, "cluster": {**PLAN["cluster"], **cluster}}


def test_measured_rates_take_the_place_of_the_sheets() -> None:
    plain = estimate(parse_estimate_request(PLAN))
    half = estimate(parse_estimate_request(with_cluster(measured={"matmul_flops": 3e14, "precision": "bf16-mixed"})))
    assert (half.time.compute_seconds or 0) > 1.5 * (plain.time.compute_seconds or 0)
    links = {"intra_node_bytes_per_second": 1e11, "inter_node_bytes_per_second": 1e10}
    slow = estimate(parse_estimate_request(with_cluster(measured=links)))
    for row, sheet in zip(slow.communication, plain.communication, strict=True):
        assert (row.seconds or 0) > (sheet.seconds or 0)
    row = next(each for each in slow.communication if each.operation == "all_gather" and each.group == "tensor")
    each = row.wire_bytes_per_rank_per_step / row.count_per_step
    assert (row.seconds or 0) / row.count_per_step == pytest.approx(each / 1e11 + 7 * 2e-6), "as measured, not a share"
    again = by_sheet(parse_estimate_request(with_cluster(measured=links)))
    assert again is not None
    assert again.time == plain.time


def test_a_machine_without_a_known_gpu_is_priced_by_what_was_measured_alone() -> None:
    small = {"model": "gpt-small", "training": {"sequence": 128, "precision": "fp32"}, "profile": "rankzero-labs"}
    found = estimate(parse_estimate_request({**small, "cluster": {"measured": LAPTOP}}))
    assert (found.time.step_seconds or 0) > 0
    assert (found.mfu or 0) < 1
    with pytest.raises(SpecError) as raised:
        parse_estimate_request(
            {**small, "parallel": {"data": 16}, "cluster": {"measured": {"matmul_flops": 4e11}, "gpus_per_node": 8}}
        )
    assert {each.field for each in raised.value.violations} == {
        "cluster.measured.memory_bytes_per_second",
        "cluster.measured.intra_node_bytes_per_second",
        "cluster.measured.inter_node_bytes_per_second",
    }


def test_the_labs_runs_are_priced_on_this_machine_beside_a_sheet() -> None:
    runs = lab_runs(Measured.model_validate(LAPTOP), "h100-80gb")
    assert {run.ranks for run in runs} == {1, 2, 4}
    assert all(run.by_measure and run.by_sheet and run.by_measure > run.by_sheet for run in runs)


def test_the_form_takes_what_the_command_prints_and_says_what_it_cannot_read() -> None:
    made = service.plan({"measured": json.dumps(LAPTOP | {"precision": "bf16-mixed"})})
    assert not made.errors
    assert json.loads(made.request_text)["cluster"]["measured"]["matmul_flops"] == 4e11
    assert "measured" in service.plan({"measured": "fast"}).errors
    assert "matmul_flop" in service.plan({"measured": '{"matmul_flop": 1}'}).errors["measured"]


def test_a_plans_shape_runs_here_and_the_plan_itself_dry() -> None:
    request = parse_estimate_request(PLAN)
    tried = tried_here(request)
    spec = parse_run_spec(tried.spec)
    assert (spec.parallel.tensor, spec.parallel.pipeline, spec.parallel.data) == (2, 2, 2)
    assert (spec.parallel.schedule, tried.leaves_out) == ("interleaved", ())
    found = dry(request, estimate(request))
    assert isinstance(found, Dry)
    assert parse_run_spec(found.spec, dry=True).parallel.world_size == request.parallel.world_size
    assert found.spec["training"]["micro_batches"] == 64 // 4, "as many as the plan has"
    assert found.held == pytest.approx(estimate(request).memory.per_rank_bytes.total)
    labs = request.model_copy(update={"profile": "rankzero-labs"})
    assert found.lab_held == pytest.approx(estimate(labs).memory.per_rank_bytes.total)
    assert any("bytes a logit" in each for each in found.differs)
    more = parse_estimate_request({**PLAN, "training": {"sequence": 8192, "global_batch": 512}})
    many = dry(more, estimate(more))
    assert isinstance(many, Dry)
    assert many.leaves_out == ("64 of its 128 micro-batches",)
    folded = {**PLAN, "model": "deepseek-v3", "parallel": {"data": 64, "expert": 64}}
    unknown = dry(parse_estimate_request(folded), estimate(request))
    assert isinstance(unknown, NotDry)
    assert "model.experts: A dry run has no values" in unknown.reason
    shape = {"layers": 48, "hidden": 7168, "heads": 56, "kv_heads": 8, "ffn_hidden": 20480, "vocab": 50272}
    own = dry(parse_estimate_request({**PLAN, "model": shape}), estimate(request))
    assert isinstance(own, Dry)
    assert parse_run_spec(own.spec, dry=True).model.hidden == 7168, "a model of one's own by its shape"
    large = {**PLAN, "training": {"sequence": 8192}, "parallel": {"data": 2048}, "cluster": {"gpu": "h100-80gb"}}
    wide = dry(parse_estimate_request(large), estimate(request))
    assert wide == NotDry("The plan has 2,048 ranks; a dry run has 1,024 at most.")
