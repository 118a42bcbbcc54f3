"""What a plan may choose: uneven stages, folded experts, recomputed modules, narrow formats, gathered keys."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory import estimate, parse_estimate_request
from app.theory.mesh import AXES
from app.theory.planner import flags_of
from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.placement import layer_held
from app.theory.planner.engine.resolve import plan_of
from app.theory.planner.results import Estimate
from app.theory.presets import PRESETS
from labs.spec import SpecError

LLAMA = {
    "model": "llama-3-405b",
    "training": {"sequence": 8192, "global_batch": 64, "state_layout": "megatron-18"},
    "parallel": {"data": 2, "tensor": 8, "pipeline": 16, "sequence_parallel": True, "zero": 1},
    "cluster": {"gpu": "h100-80gb"},
    "profile": "megatron-core",
}
MIXTRAL = {
    "model": "mixtral-8x7b",
    "training": {"sequence": 4096, "global_batch": 32},
    "parallel": {"data": 4, "tensor": 4, "expert": 4, "sequence_parallel": True, "zero": 1},
    "cluster": {"gpu": "h100-80gb"},
    "profile": "megatron-core",
}


def changed(plan: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {**plan, **{name: {**plan[name], **value} for name, value in parts.items()}}


def made(plan: dict[str, Any], **parts: Any) -> Estimate:
    return estimate(parse_estimate_request(changed(plan, **parts)))


def refused(plan: dict[str, Any], **parts: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as raised:
        parse_estimate_request(changed(plan, **parts))
    return {violation.field: violation.accepted for violation in raised.value.violations}


def test_stages_hold_the_layers_they_are_given_and_ends_may_hold_none() -> None:
    even = [7, *[8] * 14, 7]
    assert made(LLAMA, parallel={"stages": even}).time == made(LLAMA).time, "what even stages are anyway"
    empty = [0, *[9] * 14, 0]
    found = made(LLAMA, parallel={"stages": empty})
    assert [stage.layers for stage in found.memory.by_stage] == empty
    assert (found.time.step_seconds or 0) > (made(LLAMA).time.step_seconds or 0)
    layout = flags_of(parse_estimate_request(changed(LLAMA, parallel={"stages": empty})))[0].text
    assert f"E|{'|'.join(['t' * 9] * 14)}|L" in layout


@pytest.mark.parametrize("stages", [[7, 8], [8] * 16, [8, 0, *[8] * 13, 14]])
def test_stages_that_cannot_be_are_refused(stages: list[int]) -> None:
    assert set(refused(LLAMA, parallel={"stages": stages})) == {"parallel.stages"}


def test_folded_experts_are_whole_and_dealt_over_data_and_tensor_ranks() -> None:
    """Eight experts: four ranks with a quarter of two each, or eight with one whole; as many bytes on either."""
    cut, whole = made(MIXTRAL, parallel={"expert": 4}), made(MIXTRAL, parallel={"expert": 8})
    plan = plan_of(parse_estimate_request(changed(MIXTRAL, parallel={"expert": 8})))
    assert plan.parallel.expert_cut == 2, "as many tensor ranks as the expert ranks leave"
    assert whole.parameters.per_rank == pytest.approx(cut.parameters.per_rank)
    model = PRESETS["mixtral-8x7b"].model
    assert layer_held(model, True, 4, 8, 1).expert == 3 * model.hidden * model.ffn_hidden
    folded = made(MIXTRAL, parallel={"expert": 8, "expert_tensor": 1})
    groups = {(row.group, row.group_size) for row in folded.communication if "xpert" in row.name}
    assert ("expert", 8) in groups
    tensor = [sum(row.count_per_step for row in each.communication if row.group == "tensor") for each in (folded, cut)]
    assert tensor[0] < tensor[1], "whole experts need no collective of tensor ranks"
    products = [each.hardware_flops_per_second_per_gpu for each in (folded, cut)]
    assert all(products)


def test_what_experts_cannot_be_dealt_over_is_refused_with_what_divides() -> None:
    assert refused(MIXTRAL, parallel={"expert": 3})["parallel.expert"]
    assert refused(MIXTRAL, parallel={"expert": 8, "expert_tensor": 4})["parallel.expert"] == "1, 2, 4"
    assert "parallel.expert_tensor" in refused(MIXTRAL, parallel={"expert_tensor": 3})
    alone = {"expert": 8, "sequence_parallel": False}
    assert "parallel.sequence_parallel" in refused(MIXTRAL, parallel=alone)


def test_every_module_that_is_recomputed_keeps_less_and_takes_longer() -> None:
    deepseek = changed(
        MIXTRAL, training={"precision": "bf16-mixed"}, parallel={"tensor": 1, "data": 16, "sequence_parallel": False}
    )
    deepseek = {**deepseek, "model": "deepseek-v3"}
    plain = made(deepseek)
    for module in ("layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"):
        less = made(deepseek, training={"recompute": "selective", "recompute_modules": [module]})
        kept = [each.memory.per_rank_bytes.activations or 0.0 for each in (less, plain)]
        assert kept[0] < kept[1], module
        assert (less.time.recompute_seconds or 0) > 0, module
    everything = made(deepseek, training={"recompute": "full"})
    assert (everything.time.recompute_seconds or 0) > (less.time.recompute_seconds or 0)


def test_modules_are_for_selective_recomputation_and_for_models_that_have_them() -> None:
    assert set(refused(LLAMA, training={"recompute": "full", "recompute_modules": ["mlp"]})) == {
        "training.recompute_modules"
    }
    latent = {"recompute": "selective", "recompute_modules": ["mla_up_proj"]}
    assert set(refused(LLAMA, training=latent)) == {"training.recompute_modules"}


def test_narrow_formats_are_faster_on_what_has_them_and_refused_elsewhere() -> None:
    steps = [
        made(LLAMA, training={"precision": precision}, cluster={"gpu": "b300-270gb"}).time.step_seconds or 0
        for precision in ("bf16-mixed", "fp8-mixed", "mxfp8-mixed", "nvfp4-mixed")
    ]
    assert steps == sorted(steps, reverse=True)
    assert "training.precision" in refused(LLAMA, training={"precision": "mxfp8-mixed"})


def test_casts_count_bytes_of_values_and_scales() -> None:
    """MXFP8: 8 bits and a 32nd of 8 more; NVFP4: 4 bits and a 16th of 8 more. OCP MX 1.0; NVFP4's blocks of 16."""
    assert CASTS["mxfp8-mixed"].sent_bytes == 33 / 32
    assert CASTS["nvfp4-mixed"].sent_bytes == 9 / 16
    assert CASTS["fp8-mixed"].sent_bytes == 1


def test_the_head_stays_in_sixteen_bits() -> None:
    narrow = changed(LLAMA, training={"precision": "fp8-mixed"})
    few = {**PRESETS["llama-3-405b"].model.model_dump(), "layers": 16, "vocab": 1}
    many = {**few, "vocab": 1_280_000}
    heads = []
    for plan in (LLAMA, narrow):
        times = [
            made({**plan, "model": model}, parallel={"pipeline": 1}).time.compute_seconds or 0 for model in (few, many)
        ]
        heads.append(times[1] - times[0])
    assert heads[0] == pytest.approx(heads[1], rel=0.02), "as long in fp8 as in bf16"


def test_gathered_keys_and_values_are_waited_for() -> None:
    """Llama team 2024, section 3.3.2: gathered forward and backward, and their gradients scattered."""
    long = {"training": {"sequence": 131072}, "parallel": {"data": 1, "context": 8, "pipeline": 16}}
    ring, gathered = made(LLAMA, **long), made(LLAMA, **{**long, "parallel": {**long["parallel"], **GATHERED}})
    rows = [row for row in gathered.communication if row.group == "context"]
    assert [row.operation for row in rows] == ["all_gather", "reduce_scatter"]
    assert all(row.exposed_seconds == row.seconds for row in rows)
    assert (gathered.time.step_seconds or 0) > (ring.time.step_seconds or 0)


GATHERED = {"context_exchange": "all-gather"}


def test_a_token_predicted_besides_costs_a_layer_and_a_head() -> None:
    one, two = (made(LLAMA, training={"predicted_tokens": count}) for count in (0, 1))
    assert two.memory.by_stage[-1].layers == one.memory.by_stage[-1].layers + 1
    assert (two.time.step_seconds or 0) > (one.time.step_seconds or 0)
    assert two.parameters.total == one.parameters.total


def test_the_order_of_the_axes_decides_which_groups_leave_the_node() -> None:
    """The usual order, said or not, is one; in another the groups lie where the mesh says."""
    usual = made(LLAMA)
    assert made(LLAMA, parallel={"order": list(AXES)}).communication == usual.communication
    turned = made(LLAMA, parallel={"order": ["data", "tensor", "context", "pipeline"]})
    assert {row.link for row in usual.communication if row.group == "tensor"} == {"intra_node"}
    assert {row.link for row in turned.communication if row.group == "tensor"} == {"inter_node"}
    assert any("over" in each and "nodes" in each for each in turned.warnings)
    for wrong in (["tensor"] * 4, ["data", "tensor", "context", "pipeline"]):
        with pytest.raises(SpecError) as refused:
            made(LLAMA, parallel={"order": wrong, "shard": 2})
        assert {each.field for each in refused.value.violations} == {"parallel.order"}


def test_a_rack_is_a_node_unless_said_otherwise() -> None:
    wide = {"data": 8, "tensor": 8, "pipeline": 1, "sequence_parallel": True}
    smaller = {**LLAMA, "model": "llama-3-70b"}
    rack = made(smaller, parallel=wide, cluster={"gpu": "gb300-279gb"})
    links = {row.link for row in rack.communication if row.group == "tensor"}
    assert links == {"intra_node"}
    boards = made(smaller, parallel=wide, cluster={"gpu": "gb300-279gb", "gpus_per_node": 4})
    assert {row.link for row in boards.communication if row.group == "tensor"} == {"inter_node"}
