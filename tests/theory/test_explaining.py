"""Why a plan wins, what a step away would do, the flags it is, and which plans nothing beats."""

from __future__ import annotations

import csv
import json
from io import StringIO
from math import log
from typing import Any

import pytest

from app.planner.rows import search_csv
from app.theory import estimate, parse_estimate_request, parse_search_request, search
from app.theory.planner import choices_of, flags_of, front, is_tie, next_bottleneck, one_step_away, terms
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.software import runs, stages_of
from app.theory.planner.ties import tie_pairs, tie_share

PLAN: dict[str, Any] = {
    "model": "llama-3-70b",
    "training": {"sequence": 4096, "global_batch": 128, "recompute": "full"},
    "parallel": {"data": 8, "tensor": 4, "pipeline": 4, "sequence_parallel": True, "zero": 1},
    "cluster": {"gpu": "h100-80gb", "nodes": 16},
    "profile": "megatron-core",
}
SEARCH: dict[str, Any] = {
    "model": "llama-3-8b",
    "training": {"sequence": 8192, "global_batch": 64},
    "cluster": {"gpu": "h100-80gb", "nodes": 4},
    "axes": {"context": [1], "micro_batch": [1, 2]},
}


def made(**changed: Any) -> Any:
    return parse_estimate_request({**PLAN, **{name: {**PLAN[name], **value} for name, value in changed.items()}})


def test_the_terms_add_up_to_both_steps_and_the_largest_saving_is_first() -> None:
    one, other = estimate(made(training={"recompute": "none"})), estimate(made())
    found = terms(one, other)
    assert sum(term.seconds for term in found) == pytest.approx(one.time.step_seconds)
    assert sum(term.other_seconds for term in found) == pytest.approx(other.time.step_seconds)
    assert found[0].name == "recompute"
    assert found[0].saved == pytest.approx(other.time.recompute_seconds)
    assert [term.saved for term in found] == sorted((term.saved for term in found), reverse=True)
    assert next_bottleneck(other) == "recompute"


def test_one_step_on_every_axis_keeps_the_gpus_and_says_why_not() -> None:
    steps = list(one_step_away(made()))
    assert {step.axis for step in steps} == {
        "tensor",
        "context",
        "pipeline",
        "zero",
        "micro_batch",
        "recompute",
        "virtual_stages",
    }
    for step in steps:
        if step.request is None:
            assert step.why_not
            continue
        assert step.request.parallel.world_size == 128
        assert step.step_seconds == estimate(step.request).time.step_seconds
    (doubled,) = [step for step in steps if (step.axis, step.value) == ("tensor", "8")]
    assert doubled.request is not None
    assert (doubled.request.parallel.tensor, doubled.request.parallel.data) == (8, 4)
    unset = made(training={"global_batch": None})
    batches = {step.request.training.global_batch for step in one_step_away(unset) if step.request}
    assert batches == {128}, "what a plan leaves open is kept as it came out"
    impossible = [step for step in one_step_away(made(training={"global_batch": 8})) if step.axis == "micro_batch"]
    assert "no multiple" in impossible[0].why_not


@pytest.mark.parametrize(
    ("profile", "zero", "stages"),
    [("megatron-core", 1, {"0"}), ("megatron", 0, {"1"}), ("fsdp2", 1, {"0", "2"}), (None, 1, {"0", "2"})],
)
def test_a_step_goes_to_no_zero_stage_or_pipeline_that_the_software_lacks(
    profile: str | None, zero: int, stages: set[str]
) -> None:
    plan = {name: value for name, value in PLAN.items() if name != "profile"} | (
        {"profile": profile} if profile else {}
    )
    steps = list(one_step_away(parse_estimate_request({**plan, "parallel": {**PLAN["parallel"], "zero": zero}})))
    assert {step.value for step in steps if step.axis == "zero"} == stages
    for step in steps:
        if step.request is not None and step.axis == "zero":
            assert step.request.parallel.zero in stages_of(profile_of(step.request))
    if profile is None:
        (more,) = [step for step in steps if (step.axis, step.value) == ("zero", "2")]
        assert "as PyTorch FSDP2 does it" in more.besides, "Megatron-LM has no ZeRO-2"
    alone = {"profile": "composer", "parallel": {"data": 128, "zero": 3}}
    composer = list(one_step_away(parse_estimate_request({**PLAN, **alone})))
    assert not [step for step in composer if step.axis == "pipeline"]


def test_a_plan_as_megatron_lm_is_told_it() -> None:
    """Llama team 2024: 126 layers on 16 stages of 8 chunks, of which the first and the last hold none."""
    parallel = {"data": 128, "tensor": 8, "pipeline": 16, "virtual_stages": 8, "schedule": "interleaved"}
    request = {
        "model": "llama-3-405b",
        "training": {"sequence": 8192, "global_batch": 2048},
        "parallel": {**parallel, "sequence_parallel": True, "zero": 1},
        "cluster": {"gpu": "h100-80gb"},
        "profile": "megatron-core",
    }
    flags, _ = flags_of(parse_estimate_request(request))
    for wanted in (
        "--tensor-model-parallel-size 8",
        "--pipeline-model-parallel-size 16",
        "--num-virtual-stages-per-pipeline-rank 8",
        "--account-for-embedding-in-pipeline-split",
        "--account-for-loss-in-pipeline-split",
        "--use-distributed-optimizer",
        "--overlap-grad-reduce",
        "--global-batch-size 2048",
        "--seq-length 8192",
        "--bf16",
        "--num-layers 126",
        "--num-query-groups 8",
        "--ffn-hidden-size 53248",
        "--swiglu",
    ):
        assert wanted in flags.flags
    assert "--context-parallel-size" not in flags.text
    assert "--grad-reduce-in-bf16" not in flags.flags, "it keeps and reduces them in fp32 unless told otherwise"
    kept_in_bf16, _ = flags_of(made(training={"state_layout": "zero-16"}))
    assert "--grad-reduce-in-bf16" in kept_in_bf16.flags
    open_ones = flags_of(made(parallel={"schedule": "zbv", "virtual_stages": 2, "zero": 2}))[0].leaves_open
    assert any("zbv" in each for each in open_ones)
    assert any("ZeRO-2" in each for each in open_ones)


def test_a_plan_as_torchtitan_is_told_it() -> None:
    """Names of torchtitan/config/configs.py at b5bcd76c6; what a function of it looks like, its config/README.md."""
    parallel = {"data": 8, "tensor": 4, "pipeline": 4, "zero": 3, "shard": 4, "schedule": "1f1b"}
    _, told = flags_of(made(parallel={**parallel, "reshard_after_forward": False}))
    assert "b5bcd76c6" in told.title
    assert (
        told.text
        == """\
from torchtitan.config import CompileConfig
from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.llama3 import model_registry
from torchtitan.models.llama3.config_registry import llama3_70b
from torchtitan.trainer import Trainer


def plan() -> Trainer.Config:
    config = llama3_70b()
    config.model_spec = model_registry("70B")
    config.parallelism.data_parallel_replicate_degree = 2
    config.parallelism.data_parallel_shard_degree = 4
    config.parallelism.fsdp_reshard_after_forward = "never"
    config.parallelism.tensor_parallel_degree = 4
    config.parallelism.enable_sequence_parallel = True
    config.parallelism.context_parallel_degree = 1
    config.parallelism.expert_parallel_degree = 1
    config.parallelism.pipeline_parallel_degree = 4
    config.parallelism.pipeline_parallel_schedule = "1F1B"
    config.parallelism.pipeline_parallel_layers_per_stage = 20
    config.parallelism.pipeline_parallel_first_stage_less_layers = 0
    config.parallelism.pipeline_parallel_last_stage_less_layers = 0
    config.parallelism.num_pp_microbatches = 16
    config.training.disable_cuda_graphs = True
    config.training.max_context_length = 4096
    config.training.num_tokens_per_microbatch_per_dp_rank = 4096
    config.training.num_tokens_per_train_step = 524288
    config.activation_checkpoint = FullAC.Config()
    config.compile = CompileConfig(enable=False)
    return config"""
    )


@pytest.mark.parametrize(
    ("request_", "setting", "left_open"),
    [
        ({"parallel": {"zero": 1}}, 'fsdp_reshard_after_forward = "never"', "ZeRO-1"),
        ({"parallel": {"pipeline": 1, "data": 32}}, "pipeline_parallel_degree = 1", "data order"),
        (
            {"parallel": {"context": 2, "data": 4, "context_exchange": "ring"}},
            "context_parallel_degree = 2",
            "keys by ring",
        ),
        ({"parallel": {"zero": 0, "context": 2, "data": 4}}, "data_parallel_shard_degree = 1", "whole weights"),
        (
            {"training": {"compile": True}, "parallel": {"overlap": {"tensor": True}}},
            "async_tensor_parallel=True)",
            "data",
        ),
        ({"parallel": {"overlap": {"tensor": True}}}, "CompileConfig(enable=False)", "it wants compile.enable"),
        ({"training": {"recompute": "none"}}, "activation_checkpoint = None", "data"),
        ({"training": {"recompute": "selective"}}, "activation_checkpoint = SelectiveAC.Config()", "data"),
        (
            {"training": {"precision": "fp8-mixed"}},
            'model_registry("70B")',
            "converters=[Float8LinearConverter.Config(",
        ),
        ({"parallel": {"sequence_parallel": False}}, "enable_sequence_parallel = False", "data"),
    ],
)
def test_each_choice_of_a_plan_is_a_setting_of_torchtitan_or_left_open(
    request_: dict[str, dict[str, Any]], setting: str, left_open: str
) -> None:
    _, told = flags_of(made(**request_))
    assert setting in told.text
    assert any(left_open in each for each in told.leaves_open)


def test_experts_and_models_of_ones_own_as_torchtitan_is_told_them() -> None:
    parallel = {"data": 16, "tensor": 4, "pipeline": 8, "expert": 16, "expert_tensor": 4, "zero": 3}
    request = {"model": "deepseek-v3", "parallel": parallel, "training": {"predicted_tokens": 1}}
    _, told = flags_of(parse_estimate_request(request))
    assert "config = deepseek_v3_671b()" in told.text
    assert "config.parallelism.expert_parallel_degree = 16" in told.flags
    assert "expert_tensor" not in told.text
    assert any("it keeps each whole" in each for each in told.leaves_open)
    assert any("num_mtp_layers=1" in each for each in told.leaves_open)
    shape = {"layers": 8, "hidden": 1024, "heads": 8, "kv_heads": 8, "ffn_hidden": 4096, "vocab": 32000}
    (_, own) = flags_of(parse_estimate_request({"model": shape, "training": {"sequence": 2048}}))
    assert "from own_models import own_model" in own.text
    assert any("n_layers=8, dim=1024" in each for each in own.leaves_open)
    latent, _ = flags_of(parse_estimate_request({"model": "deepseek-v3"}))
    assert {"--kv-lora-rank 512", "--num-experts 256", '--moe-layer-freq "([0]*3+[1]*58)"'} <= set(latent.flags)


@pytest.mark.parametrize("zero", [1, 2])
def test_no_framework_is_told_to_replicate_what_a_plan_shards(zero: int) -> None:
    megatron, torchtitan = flags_of(made(parallel={"zero": zero}))
    assert "--use-distributed-optimizer" in megatron.flags
    assert "config.parallelism.data_parallel_replicate_degree = 1" in torchtitan.flags
    assert 'config.parallelism.fsdp_reshard_after_forward = "never"' in torchtitan.flags


@pytest.mark.slow
def test_no_point_of_the_front_beats_another_and_the_fastest_is_the_searchs() -> None:
    request = parse_search_request(SEARCH)
    points = front(request)
    threes = [(point.gpus, point.candidate.step_seconds, point.candidate.memory_bytes) for point in points]
    for one in threes:
        assert not any(other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in threes)
    assert {gpus for gpus, _, _ in threes} == {32, 16, 8}
    assert min(seconds for gpus, seconds, _ in threes if gpus == 32) == search(request).best[0].step_seconds


def test_a_plan_takes_no_more_than_the_share_of_the_memory_it_may() -> None:
    tight = search(parse_search_request({**SEARCH, "memory_share": 0.4}))
    capacity = tight.best[0].estimate.memory.capacity_bytes
    assert all(each.memory_bytes <= 0.4 * (capacity or 0) for each in tight.best)
    assert tight.best[0].step_seconds > search(parse_search_request(SEARCH)).best[0].step_seconds


def test_a_tie_is_what_half_of_the_published_pairs_are_off_by() -> None:
    share, pairs = tie_share(), tie_pairs()
    assert 0.01 < share < 0.05
    assert pairs > 100
    assert is_tie(1.0, 1.0 + 0.9 * share)
    assert not is_tie(1.0, 1.0 + 1.1 * share)
    alone, elaborate = made(parallel={"tensor": 1, "pipeline": 1, "data": 128}), made()
    assert choices_of(alone) < choices_of(elaborate)
    flagged = made(parallel={"tensor": 1, "pipeline": 1, "data": 128, "zero": 2}, training={"recompute": "full"})
    assert choices_of(flagged) < choices_of(made(parallel={"tensor": 2, "pipeline": 1, "data": 64}))  # an axis is more


def test_a_search_explains_its_winner_and_is_a_table_for_others() -> None:
    result = search(parse_search_request({**SEARCH, "limit": 3}))
    said = result.to_json()["explanation"]
    assert {"beats_runner_up", "next_bottleneck", "memory_left_bytes", "one_step_away", "tie", "tie_share"} == set(said)
    assert said["tie"] == (abs(log(result.best[1].step_seconds / result.best[0].step_seconds)) < said["tie_share"])
    for each in result.best:
        assert runs(each.request.profile or "", each.parallel.schedule)
    asked = search(parse_search_request({**SEARCH, "schedules": "any"}))
    assert asked.considered > result.considered
    assert asked.best[0].step_seconds <= result.best[0].step_seconds
    odd = estimate(made(parallel={"schedule": "zero-bubble"}))
    assert any("Megatron-Core runs 1f1b and interleaved: zero-bubble" in each for each in odd.warnings)
    saved = sum(term["other_seconds"] - term["seconds"] for term in said["beats_runner_up"])
    assert saved == pytest.approx(result.best[1].step_seconds - result.best[0].step_seconds)
    rows = list(csv.DictReader(StringIO(search_csv(result))))
    assert [float(row["step_seconds"]) for row in rows] == [each.step_seconds for each in result.best]
    assert estimate(parse_estimate_request(json.loads(rows[2]["request"]))) == result.best[2].estimate
    assert float(rows[0]["step_seconds_low"]) < float(rows[0]["step_seconds"]) < float(rows[0]["step_seconds_high"])


@pytest.mark.parametrize(
    ("parallel", "wanted"),
    [
        ({"pipeline": 4}, ("20", "0", "0")),  # 80 layers
        ({"pipeline": 8, "tensor": 2, "stages": [9, 10, 10, 10, 10, 10, 10, 11]}, None),
        ({"pipeline": 4, "stages": [19, 21, 21, 19]}, ("21", "2", "2")),
        ({"pipeline": 4, "stages": [0, 27, 27, 26]}, ("27", "27", "1")),
        ({"pipeline": 4, "virtual_stages": 2, "schedule": "interleaved"}, ("10", "0", "0")),
    ],
)
def test_torchtitan_is_told_the_layers_of_each_chunk(
    parallel: dict[str, Any], wanted: tuple[str, str, str] | None
) -> None:
    """Where all but the ends are alike: ceil((80 + first + last) / layers) chunks (pipeline_parallel.py)."""
    _, flags = flags_of(made(parallel=parallel))
    at = "config.parallelism.pipeline_parallel_"
    names = ("layers_per_stage", "first_stage_less_layers", "last_stage_less_layers")
    told = [each for each in flags.flags if each.startswith(tuple(at + name for name in names))]
    assert told == [f"{at}{name} = {value}" for name, value in zip(names, wanted or (), strict=False)]
    assert any("module_fqns_per_model_part" in each for each in flags.leaves_open) == (wanted is None)
