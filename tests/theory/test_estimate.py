"""Estimates of plans: their shape, their arithmetic, and what is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from app.theory.planner import estimate, fewest_ranks, parse_estimate_request, parse_search_request, search
from app.theory.presets import PRESETS
from app.theory.state import zero_state_bytes
from labs.spec import LAB_MODELS, SpecError

# GPT-3's shape on 1,536 A100s, the plan our documentation shows.
DOCUMENTED: dict[str, Any] = {
    "model": {
        "layers": 96,
        "hidden": 12288,
        "heads": 96,
        "kv_heads": 96,
        "ffn_hidden": 49152,
        "vocab": 51200,
        "gated_mlp": False,
        "tied_embeddings": True,
        "experts": 1,
        "active_experts": 1,
    },
    "training": {
        "sequence": 2048,
        "micro_batch": 1,
        "global_batch": 1536,
        "precision": "bf16-mixed",
        "optimizer": "adamw",
        "recompute": "none",
        "attention": "flash",
        "offload": "none",
        "state_layout": "zero-16",
    },
    "parallel": {
        "data": 24,
        "tensor": 8,
        "pipeline": 8,
        "virtual_stages": 1,
        "context": 1,
        "expert": 1,
        "sequence_parallel": True,
        "zero": 1,
        "schedule": "1f1b",
    },
    "cluster": {"gpu": "a100-80gb", "gpus_per_node": 8, "nodes": 192},
}

SHAPE: dict[str, Any] = {
    "parameters": {"total", "per_rank", "active"},
    "memory": {"per_rank_bytes", "by_stage", "capacity_bytes", "fits", "software_default"},
    "communication": None,
    "pipeline": {"bubble_fraction", "in_flight_micro_batches"},
    **dict.fromkeys(("time", "mfu", "hfu", "model_flops_per_second_per_gpu", "hardware_flops_per_second_per_gpu")),
    "assumptions": None,
    "warnings": None,
}
MEMORY = {"parameters", "gradients", "optimizer", "activations", "temporary", "total"}


def answered(data: Any) -> dict[str, Any]:
    return estimate(parse_estimate_request(data)).to_json()


def refused(data: Any) -> dict[str, str]:
    """What is wrong with a request: accepted values by field."""
    with pytest.raises(SpecError) as raised:
        parse_estimate_request(data)
    return {violation.field: violation.accepted for violation in raised.value.violations}


def test_the_documented_plan_is_answered_with_every_documented_key() -> None:
    found = answered(DOCUMENTED)
    assert set(SHAPE) <= set(found)
    for key, inner in SHAPE.items():
        if inner is not None:
            assert inner <= set(found[key])
    assert set(found["memory"]["per_rank_bytes"]) >= MEMORY
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_documented_plan_is_computed_as_by_hand() -> None:
    """12Lh² in the layers, four norm vectors a layer and two at the end, tokens and positions; over 8 × 8 ranks.

    The first stage has 12 layers cut by 8, their norms whole, the tokens cut by 8 and the positions whole.
    ZeRO-1 over 24 replicas: 2 + 2 bytes stay, 12 divide. 34sbh bytes a layer for 8 micro-batches in flight, less the
    2sbh of dropout's masks, which Megatron-Core does not keep, and the 4 bytes of its fused attention's sum a query.
    """
    found = answered(DOCUMENTED)
    total = 96 * (12 * 12288**2 + 4 * 12288) + 2 * 12288 + (51200 + 2048) * 12288
    each = 12 * (12 * 12288**2 / 8 + 4 * 12288) + 51200 * 12288 / 8 + 2048 * 12288
    assert found["parameters"] == {"total": total, "per_rank": each, "active": total}
    memory = found["memory"]["per_rank_bytes"]
    assert memory["parameters"] == memory["gradients"] == 2 * each
    assert memory["optimizer"] == pytest.approx(12 * each / 24)
    layers = 12 * (32 * 2048 * 12288 + 4 * 2048 * 96) / 8
    assert memory["activations"] == pytest.approx(8 * layers)
    of_2021 = answered({**DOCUMENTED, "profile": "megatron"})["memory"]["per_rank_bytes"]
    mask = 2048 * 12288 / 8  # of the embeddings' dropout
    assert of_2021["activations"] == pytest.approx(8 * (12 * 34 * 2048 * 12288 / 8 + mask))
    assert memory["total"] == pytest.approx(sum(size for name, size in memory.items() if name != "total"))
    # an A100 with 80 GB shows between 79 and 80 GiB in the driver
    assert 79 * 2**30 <= found["memory"]["capacity_bytes"] <= 80 * 2**30
    assert found["memory"]["fits"] is True
    # p = 8 equal stages but for embeddings and head, m = 1536 / 24 = 64: F22 gives 7/71
    assert found["pipeline"]["micro_batches"] == 64
    assert found["pipeline"]["bubble_fraction"] == pytest.approx(7 / 71, abs=0.03)
    assert found["pipeline"]["in_flight_micro_batches"] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_what_is_not_estimated_is_null_and_said_so() -> None:
    found = answered({"model": {"parameters": 7e9}})
    assert found["memory"]["per_rank_bytes"]["activations"] is None
    assert set(found["time"].values()) == {None}
    assert found["mfu"] is None
    assert any("not estimated" in line for line in found["assumptions"])
    shape = answered({"model": "llama-3-8b", "parallel": {"data": 8, "zero": 3}})
    assert shape["memory"]["per_rank_bytes"]["activations"] > 0
    assert set(shape["time"].values()) == {None}
    assert all(row["seconds"] is None for row in shape["communication"])
    assert any("No GPU given" in line for line in shape["assumptions"])


def test_the_layout_and_the_profile_are_named() -> None:
    found = answered({"model": {"parameters": 7e9}, "training": {"state_layout": "megatron-18"}, "profile": "megatron"})
    assert any("megatron-18: 2 + 4 + 12" in line for line in found["assumptions"])
    assert any("Profile megatron" in line for line in found["assumptions"])


def test_a_number_of_parameters_is_enough_for_state() -> None:
    found = answered({"model": {"parameters": 7e9}, "parallel": {"data": 8, "zero": 3}})
    assert found["memory"]["per_rank_bytes"]["total"] == 14e9
    assert found["memory"]["fits"] is None  # no cluster, nothing to fit


@pytest.mark.parametrize("name", [*PRESETS, *LAB_MODELS])
def test_a_model_may_be_named(name: str) -> None:
    assert answered({"model": name})["parameters"]["total"] > 0


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_named_model_has_its_published_size_without_further_words(name: str) -> None:
    """Learned positions are counted for the sequence it was trained on, not for a default of ours."""
    total = answered({"model": name})["parameters"]["total"]
    # as printed: papers give three digits and more, released weights all of them
    digits = PRESETS[name].published_digits or 12
    assert f"{total:.{digits - 1}e}" == f"{PRESETS[name].published_parameters:.{digits - 1}e}"


def test_another_sequence_changes_a_named_models_positions() -> None:
    short, long = (answered({"model": "gpt-2-124m", "training": {"sequence": s}}) for s in (1024, 4096))
    assert long["parameters"]["total"] - short["parameters"]["total"] == (4096 - 1024) * 768


def test_hsdp_shards_over_part_of_the_replicas() -> None:
    found = answered({"model": {"parameters": 7e9}, "parallel": {"data": 16, "shard": 8, "zero": 3}})
    assert found["memory"]["per_rank_bytes"]["total"] == 14e9


def test_given_memory_stands_for_that_of_the_gpu() -> None:
    asked = {"model": {"parameters": 5e9}, "cluster": {"gpu": "h100-80gb", "memory_bytes": 80e9}}
    found = answered(asked)
    assert found["memory"]["capacity_bytes"] == 80e9
    assert found["memory"]["fits"] is True  # 16 × 5e9, to the last byte
    asked["cluster"]["memory_bytes"] = 80e9 - 1
    assert answered(asked)["memory"]["fits"] is False


@pytest.mark.parametrize(
    ("training", "named"), [({"offload": "optimizer"}, "Offload"), ({"optimizer": "adamw-8bit"}, "adamw-8bit")]
)
def test_what_the_estimate_does_not_follow_is_warned_of(training: dict[str, str], named: str) -> None:
    assert any(named in line for line in answered({"model": {"parameters": 7e9}, "training": training})["warnings"])
    assert answered({"model": {"parameters": 7e9}})["warnings"] == []


def test_every_violated_constraint_is_named_at_once() -> None:
    bad = {
        "model": {"layers": 4, "hidden": 100, "heads": 7, "kv_heads": 3, "vocab": 50},
        "training": {"sequence": 0, "micro_batch": 1.5, "precision": "int4", "colour": "red"},
        "parallel": {"data": 6, "tensor": 2, "pipeline": 5, "shard": 4, "expert": 5, "zero": 4},
        "cluster": {"gpu": "abacus", "nodes": 3},
        "profile": "mine",
    }
    assert set(refused(bad)) >= {
        "model.heads",
        "model.kv_heads",
        "training.sequence",
        "training.micro_batch",
        "training.precision",
        "training.colour",
        "parallel.tensor",
        "parallel.pipeline",
        "parallel.shard",
        "parallel.expert",
        "parallel.zero",
        "cluster.gpu",
        "cluster.nodes",
        "parallel.data",
        "profile",
    }


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("gpt-9", "model"),
        (5, "model"),
        (None, "model"),
        ([], "model"),
        ({}, "model.layers"),
        ({"parameters": "many"}, "model.parameters"),
        ({"parameters": float("nan")}, "model.parameters"),
        ({"parameters": float("inf")}, "model.parameters"),
        ({"parameters": 0}, "model.parameters"),
        ({"parameters": 7e9, "layers": 3}, "model.layers"),
        ({"layers": 0, "hidden": 64, "heads": 4, "vocab": 9}, "model.layers"),
        ({"layers": 2, "hidden": 64, "heads": 4, "vocab": 9, "experts": 10**9}, "model.experts"),
        ({"layers": 2, "hidden": 64, "heads": 4, "vocab": 9, "experts": 10**400}, "model.experts"),
        ({"layers": 2, "hidden": 64, "heads": 4, "vocab": 9, "active_experts": 2}, "model.active_experts"),
    ],
    ids=str,
)
def test_a_model_that_cannot_be_read_hides_nothing_else(model: Any, field: str) -> None:
    found = refused({"model": model, "training": {"sequence": 0}, "cluster": {"gpu": "abacus"}})
    assert set(found) == {field, "training.sequence", "cluster.gpu"} | (
        {f"model.{name}" for name in ("hidden", "heads", "vocab")} if model == {} else set()
    )


def test_an_unknown_name_says_which_are_known() -> None:
    assert "llama-3-8b" in refused({"model": "llama"})["model"]
    assert "h100-80gb" in refused({"model": "llama-3-8b", "cluster": {"gpu": "h100"}})["cluster.gpu"]


def test_the_product_of_the_degrees_is_the_number_of_gpus() -> None:
    plan = json.loads(json.dumps(DOCUMENTED))
    plan["parallel"]["context"] = 2
    assert {"cluster.nodes", "parallel.data"} <= set(refused(plan))
    plan["cluster"]["nodes"] = 384
    assert answered(plan)["memory"]["fits"] is True


@pytest.mark.parametrize("data", [None, [], "llama-3-8b", 7, {}, {"model": "llama-3-8b", 5: 6}])
def test_what_is_no_request_is_refused_and_nothing_worse(data: Any) -> None:
    assert refused(data)


@pytest.mark.parametrize("section", ["training", "parallel", "cluster"])
@pytest.mark.parametrize("value", ["fast", 7, [], True])
def test_a_section_that_is_no_mapping_is_named(section: str, value: Any) -> None:
    assert set(refused({"model": "llama-3-8b", section: value})) == {section}


def test_no_request_of_wild_values_crashes_or_answers_with_nonsense() -> None:
    source = random.Random(7)
    wild = [0, 1, 2, 3, 8, 10**6, 10**400, -1, 0.5, 1e308, float("nan"), float("inf"), None, True, "8", "x", [], {}]
    fields = {section: list(DOCUMENTED[section]) for section in DOCUMENTED}
    answers = 0
    for _ in range(1500):
        data = json.loads(json.dumps(DOCUMENTED))
        for _ in range(source.randint(1, 3)):
            section = source.choice(list(fields))
            data[section][source.choice(fields[section])] = source.choice(wild)
        try:
            found = answered(data)
        except SpecError:
            continue
        answers += 1
        assert found["memory"]["per_rank_bytes"]["total"] > 0
        json.dumps(found, allow_nan=False)
    assert answers > 50


def test_the_fewest_ranks_are_those_a_search_finds() -> None:
    source = random.Random(3)
    seen = set()
    for _ in range(400):
        parameters, stage = 10 ** source.uniform(8, 11.5), source.randint(0, 3)
        capacity = source.choice([24e9, 40e9, 80e9, 141e9])
        found = fewest_ranks(parameters, stage, "zero-16", capacity)
        searched = next((k for k in range(1, 1025) if zero_state_bytes(parameters, k, stage) <= capacity), None)
        assert found == searched or (searched is None and found is not None and found > 1024)
        seen.add((stage, found is None))
    assert len(seen) == 7  # every stage with and without a way out; only stage 3 always has one


def test_the_fewest_ranks_agree_with_what_fits_to_the_last_byte() -> None:
    assert fewest_ranks(5e9, 0, "zero-16", 80e9) == 1
    assert fewest_ranks(5e9, 0, "zero-16", 80e9 - 1) is None
    assert fewest_ranks(40e9, 3, "zero-16", 80e9) == 8
    assert fewest_ranks(40e9, 3, "zero-16", 80e9 - 1) == 9
    # what a stage does not shard is a floor: 4 × 20e9 bytes at stage 1
    assert fewest_ranks(20e9, 1, "zero-16", 80e9) is None


@pytest.mark.parametrize(
    ("batch", "accepted"),
    [(1, "such as 8"), (7, "such as 8"), (12, "such as 8 or 16"), (1_000_001, "such as 1,000,000 or 1,000,008")],
)
def test_a_global_batch_is_shared_evenly(batch: int, accepted: str) -> None:
    plan = {"model": "llama-3-8b", "training": {"micro_batch": 2, "global_batch": batch}, "parallel": {"data": 4}}
    with pytest.raises(SpecError) as raised:
        parse_estimate_request(plan)
    (violation,) = raised.value.violations
    assert violation.field == "training.global_batch"
    assert accepted in violation.accepted
    parse_estimate_request({**plan, "training": {"micro_batch": 2, "global_batch": 16}})


@pytest.mark.parametrize(
    ("profile", "precision", "layout"),
    [
        (None, "bf16-mixed", "zero-16"),
        ("zero-paper", "bf16-mixed", "zero-16"),
        ("megatron-core", "bf16-mixed", "megatron-18"),
        ("megatron-core", "fp8-mixed", "megatron-18"),
        ("megatron", "fp16-mixed", "zero-16"),
        ("fsdp2", "bf16-mixed", "torch-amp"),
        ("torchtitan", "bf16", "bf16"),
        ("fsdp2", "fp32", "fp32"),
    ],
)
def test_state_is_kept_as_the_software_keeps_it_unless_a_plan_says_so(
    profile: str | None, precision: str, layout: str
) -> None:
    """Megatron-LM's arguments.py: bf16 accumulates and reduces gradients in fp32; fully_shard keeps fp32 weights."""
    plan = {"model": "llama-3-8b", "training": {"precision": precision}, "parallel": {"data": 8, "zero": 1}}
    request = parse_estimate_request(plan | ({"profile": profile} if profile else {}))
    assert request.training.state_layout == layout
    chosen = {**plan, "training": {"precision": precision, "state_layout": "mixed-20"}, "profile": profile}
    assert parse_estimate_request(chosen).training.state_layout == "mixed-20"


def test_a_search_counts_each_plan_as_an_estimate_of_it_that_leaves_as_much_open() -> None:
    request = {
        "model": "llama-3-8b",
        "training": {"sequence": 8192, "global_batch": 16},
        "cluster": {"gpu": "h100-80gb", "nodes": 1},
        "axes": {"micro_batch": [1], "context": [1], "recompute": ["full"], "zero": [1, 3]},
        "limit": 100,
    }
    best = search(parse_search_request(request)).best
    assert {(each.request.profile, each.parallel.zero) for each in best} == {("megatron-core", 1), ("fsdp2", 3)}
    for each in best:
        plan = each.request.model_dump(mode="json", exclude_none=True, exclude={"profile"})
        del plan["training"]["state_layout"]
        alike = estimate(parse_estimate_request(plan))
        assert (alike.time, alike.memory) == (each.estimate.time, each.estimate.memory)
    named = search(parse_search_request({**request, "profile": "megatron-core", "axes": {"zero": [1]}})).best
    assert {each.training.state_layout for each in named} == {"megatron-18"}, "as the software keeps it that is named"
    asked = {**request, "training": {**request["training"], "state_layout": "mixed-20"}}
    for each in search(parse_search_request(asked)).best:
        assert each.training.state_layout == "mixed-20"
        assert each.estimate == estimate(parse_estimate_request(each.request.model_dump(exclude_none=True)))


def test_what_the_software_would_take_more_by_itself_is_said_where_nobody_asked_for_its_layout() -> None:
    """Megatron-Core keeps gradients in fp32, 2 bytes more each, and ZeRO-1 shards none of them; FSDP2 keeps 4 + 4 + 8
    for 2 + 2 + 12, all sharded, which is as much."""
    asked = {"model": "llama-3-8b", "parallel": {"data": 8, "zero": 1}, "cluster": {"gpu": "h100-80gb"}}
    found = estimate(parse_estimate_request(asked))
    own = found.memory.software_default
    assert own is not None
    assert (own.state_layout, own.more_bytes) == ("megatron-18", 2 * found.parameters.per_rank)
    named = {**asked, "profile": "megatron-core"}
    assert estimate(parse_estimate_request(named)).memory.software_default is None
    kept = named | {"training": {"state_layout": "zero-16"}}
    assert estimate(parse_estimate_request(kept)).memory == found.memory
    sharded = estimate(parse_estimate_request({**asked, "parallel": {"data": 8, "zero": 3}})).memory.software_default
    assert sharded is not None
    assert (sharded.state_layout, sharded.more_bytes) == ("torch-amp", 0.0)
