"""Memory per rank: the papers' formulas come out of the tensor list, layers land where they should, state adds up."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory.activations import llama_layer_bytes
from app.theory.pipeline import in_flight, order, peak_in_flight
from app.theory.planner import estimate, parse_estimate_request
from app.theory.planner.engine.kept import kept_bytes
from app.theory.planner.engine.layer import LayerRequest
from app.theory.planner.engine.placement import chunk_sizes, layer_held, stage_held, stages
from app.theory.planner.engine.resolve import plan_of
from app.theory.presets import PRESETS
from app.theory.transformer import head_size, parameter_count

LLAMA: dict[str, Any] = {
    "hidden": 1024,
    "heads": 16,
    "kv_heads": 4,
    "ffn_hidden": 3584,
    "vocab": 32000,
    "norm": "rms",
    "positions": "rotary",
    "gated_mlp": True,
}
GPT: dict[str, Any] = {"layers": 4, "hidden": 1024, "heads": 16, "vocab": 32000, "biases": True}


def asked(model: Any, **sections: Any) -> dict[str, Any]:
    return estimate(parse_estimate_request({"model": model, **sections})).to_json()


def activation_bytes(**training: Any) -> float:
    """Activations of one stage of GPT on one of 8 tensor ranks, the loss and the embedding's mask left out."""
    parallel = {"tensor": 8, "sequence_parallel": training.pop("sequence_parallel", False)}
    settings = {"sequence": 512, "micro_batch": 3, **training}
    shape = {"model": GPT, "training": settings, "parallel": parallel, "profile": "zero-paper"}
    found = estimate(parse_estimate_request(shape)).to_json()
    stream = 3 * 512 * 1024 / (8 if parallel["sequence_parallel"] else 1)
    loss = 2 * 2 * stream + 4 * 3 * 512 * 32000 / 8
    return float(found["memory"]["per_rank_bytes"]["activations"]) - stream - loss


@pytest.mark.parametrize("sequence_parallel", [False, True])
@pytest.mark.parametrize("attention", ["full", "flash"])
def test_the_tensor_list_sums_to_the_papers_formulas(sequence_parallel: bool, attention: str) -> None:
    """Korthikanti et al. 2022, equations 2 to 4: sbh(10 + 24/t + 5as/ht), sbh/t(34 + 5as/h), less 5as/h when fused."""
    size, scores = 3 * 512 * 1024, 5 * 16 * 512 / 1024 if attention == "full" else 0.0
    by_hand = size / 8 * (34 + scores) if sequence_parallel else size * (10 + 24 / 8 + scores / 8)
    found = activation_bytes(attention=attention, sequence_parallel=sequence_parallel)
    assert found == pytest.approx(4 * by_hand)


def test_a_llama_layer_keeps_what_the_registered_formula_counts() -> None:
    """Fused norms and kernels, no dropout: the difference that four more layers make."""
    few, many = (
        asked(
            {**LLAMA, "layers": layers},
            training={"sequence": 512, "attention": "flash"},
            profile="zero-paper",
        )["memory"]["per_rank_bytes"]["activations"]
        for layers in (4, 8)
    )
    assert many - few == pytest.approx(4 * llama_layer_bytes(512, 1, 1024, 3584, 16, 4))


def test_selective_recomputation_drops_the_scores_alone() -> None:
    kept = activation_bytes(attention="full", recompute="selective", sequence_parallel=True)
    assert kept == pytest.approx(activation_bytes(attention="flash", sequence_parallel=True), rel=1e-6)


def test_full_recomputation_keeps_the_inputs_and_one_live_layer() -> None:
    """Inputs are 2sbh on every tensor rank; the layer being recomputed is live in full, less its own input."""
    shape = {"model": GPT, "training": {"sequence": 2048, "micro_batch": 64, "recompute": "full"}}
    found = asked(**shape, profile="zero-paper")["memory"]["per_rank_bytes"]["activations"]
    size = 2048 * 64 * 1024
    loss = 4 * 2048 * 64 * 32000 + 2 * 2 * size
    live = 34 * size - 2 * size
    assert found == pytest.approx(4 * 2 * size + size + max(live, loss))


@pytest.mark.parametrize(
    ("layers", "chunks", "expected"),
    [
        (126, 16, (7, *(8,) * 14, 7)),  # Llama 3.1 405B, as published
        (61, 16, (3, 3, *(4,) * 13, 3)),
        (96, 8, (12,) * 8),
        (5, 5, (1,) * 5),
        (7, 4, (1, 2, 2, 2)),
    ],
)
def test_layers_are_dealt_with_the_ends_lighter(layers: int, chunks: int, expected: tuple[int, ...]) -> None:
    assert chunk_sizes(layers, chunks) == expected
    assert sum(expected) == layers


@pytest.mark.parametrize("name", ["gpt-2-1.5b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize(("tensor", "pipeline", "expert"), [(1, 1, 1), (1, 4, 1), (4, 1, 1), (2, 4, 4)])
def test_shards_sum_to_the_whole_model(name: str, tensor: int, pipeline: int, expert: int) -> None:
    """Every tensor rank's part, less what they repeat, is the whole; a tied head on another stage is a second copy."""
    model, sequence = PRESETS[name].model, 1024
    if model.experts % expert or model.heads % tensor:
        pytest.skip("this model does not divide so")
    parts = [stage_held(model, stage, sequence, tensor, expert, pipeline) for stage in stages(model, pipeline, 1)]
    repeated = [stage_held(model, stage, sequence, 10**9, expert, pipeline) for stage in stages(model, pipeline, 1)]
    whole = sum(tensor * part.dense + tensor * expert * part.expert for part in parts)
    heads = (
        0 if model.latent_attention else model.layers * 2 * model.hidden * head_size(model)
    )  # one is the least a rank has
    whole -= (tensor - 1) * (sum(part.dense for part in repeated) - heads)  # cut to nothing, what stays is what repeats
    copy = model.vocab * model.hidden if model.tied_embeddings and pipeline > 1 else 0
    assert whole - copy == pytest.approx(parameter_count(model, sequence), rel=1e-6)


def test_ranks_beyond_the_key_value_heads_repeat_them() -> None:
    """Llama 3 8B has 8 heads of 128 for keys and values: on 16 ranks each holds a whole one, on 8 too."""
    layers = [layer_held(PRESETS["llama-3-8b"].model, False, tensor, 1).dense for tensor in (8, 16)]
    keys = 2 * 4096 * 128
    cut = (218_112_000 - 2 * 4096 - 8 * keys) / 8  # all other matrices, on one of eight ranks
    assert layers == pytest.approx([2 * 4096 + keys + cut, 2 * 4096 + keys + cut / 2])


def test_gpipe_keeps_the_logits_of_all_micro_batches() -> None:
    plan = {"training": {"sequence": 1024, "global_batch": 32}, "profile": "megatron"}

    def last(schedule: str) -> float:
        found = asked("llama-3-8b", parallel={"pipeline": 8, "schedule": schedule}, **plan)["memory"]["by_stage"][-1]
        return float(found["bytes"]["activations"])

    layers = last("1f1b") - last("gpipe")
    assert -layers > 32 * 4 * 1024 * 128256


def test_latent_attention_keeps_its_latents() -> None:
    """DeepSeek-V3: queries of 1,536 and keys of 512 before and after their norms, and 64 rotated, 16-bit."""
    model = PRESETS["deepseek-v3"].model
    small = model.model_copy(
        update={"latent_attention": model.latent_attention.model_copy(update={"query_rank": None})}
    )
    requests = [
        LayerRequest(each, True, 10, 10, 8, 1, False, "flash", "none", 2.0, "megatron") for each in (model, small)
    ]
    kept = [kept_bytes(request) for request in requests]
    assert kept[0] - kept[1] == pytest.approx(10 * 2 * 1536 * 2)


def test_dense_layers_come_first() -> None:
    """DeepSeek-V3: 61 layers of which the first three are dense."""
    found = stages(PRESETS["deepseek-v3"].model, 16, 1)
    assert [stage.dense_layers for stage in found] == [3, *(0,) * 15]
    assert sum(stage.layers for stage in found) == 61


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved", "looped-bfs", "zero-bubble", "zbv", "dualpipev"])
@pytest.mark.parametrize(("pipeline", "micro_batches"), [(2, 4), (4, 4), (4, 16), (8, 32)])
def test_in_flight_counts_are_those_of_the_simulated_order(schedule: str, pipeline: int, micro_batches: int) -> None:
    chunks = 2 if schedule in ("interleaved", "looped-bfs", "zbv", "dualpipev") else 1
    if schedule == "dualpipev" and micro_batches < 2 * pipeline:
        pytest.skip("DualPipe-V takes at least two micro-batches a stage")
    peaks = peak_in_flight(order(schedule, pipeline, micro_batches, chunks))
    found = [in_flight(schedule, rank, pipeline, micro_batches, chunks) * chunks for rank in range(pipeline)]
    if schedule in ("zbv", "dualpipev"):  # the fullest rank's, for every rank
        assert max(peaks) == max(found)
    else:
        assert found == list(peaks)


@pytest.mark.parametrize(("zero", "sharded"), [(0, 0), (1, 12), (2, 14), (3, 16)])
def test_zero_divides_what_its_stage_says(zero: int, sharded: int) -> None:
    found = asked("llama-3-8b", parallel={"data": 64, "zero": zero}, profile="zero-paper")
    state = sum(found["memory"]["per_rank_bytes"][part] for part in ("parameters", "gradients", "optimizer"))
    assert state == pytest.approx(found["parameters"]["total"] * ((16 - sharded) + sharded / 64))


def test_experts_are_sharded_over_the_ranks_that_repeat_them() -> None:
    """Mixtral: 8 experts on 8 expert ranks, 16 data ranks: an expert's state has two copies, the rest sixteen."""
    found = asked("mixtral-8x7b", parallel={"data": 16, "expert": 8, "zero": 1}, profile="zero-paper")
    expert = 32 * 3 * 4096 * 14336
    dense = PRESETS["mixtral-8x7b"].published_parameters - 8 * expert
    memory = found["memory"]["per_rank_bytes"]
    assert memory["parameters"] == pytest.approx(2 * (expert + dense), rel=1e-3)
    assert memory["optimizer"] == pytest.approx(12 * (expert / 2 + dense / 16), rel=1e-3)


@pytest.mark.parametrize(
    ("offload", "here"),
    [("none", {"optimizer", "gradients", "parameters"}), ("optimizer", {"parameters"}), ("all", set())],
)
def test_what_is_offloaded_is_on_the_host_and_not_here(offload: str, here: set[str]) -> None:
    found = asked("llama-3-8b", training={"offload": offload}, parallel={"data": 8, "zero": 3})["memory"]
    state = {name for name in ("parameters", "gradients", "optimizer") if found["per_rank_bytes"][name]}
    assert state == here
    away = 16 * 8030261248 / 8 - sum(found["per_rank_bytes"][name] for name in state)
    assert found["host_bytes"] == pytest.approx(away, rel=1e-6)


@pytest.mark.parametrize(
    ("optimizer", "bytes_each"), [("adamw", 12.0), ("sgd", 8.0), ("adafactor", 4.0), ("adamw-8bit", 6.03125)]
)
def test_the_optimizer_keeps_its_own_moments(optimizer: str, bytes_each: float) -> None:
    """Master 4 and: two fp32 moments, one, none, or two of a byte with an fp32 scale for each 256 values."""
    found = asked("llama-3-8b", training={"optimizer": optimizer})["memory"]["per_rank_bytes"]
    assert found["optimizer"] == pytest.approx(8030261248 * bytes_each)


def test_fsdp_holds_two_gathered_layers_the_root_and_one_gradient() -> None:
    """Llama 3 8B: a layer of 218.1M, embeddings, norm and head of 1,050.7M; bf16, reduced in the type that is kept."""
    layer, table = 218_112_000, 128256 * 4096
    root = 2 * table + 4096
    for layout, reduced in (("zero-16", 2), ("torch-amp", 4), ("mixed-20", 4)):
        plan = {"model": "llama-3-8b", "training": {"state_layout": layout}, "parallel": {"data": 8, "zero": 3}}
        found = estimate(parse_estimate_request(plan)).memory.per_rank_bytes.temporary
        assert found == pytest.approx(2 * (2 * layer + root + layer + table) + reduced * layer)


def test_a_plan_without_a_gpu_has_places_and_no_times() -> None:
    plan = plan_of(parse_estimate_request({"model": "llama-3-8b", "parallel": {"tensor": 8, "data": 2}}))
    assert plan.device is None
    assert plan.ranks("tensor").nodes == 1
    assert plan.ranks("data").nodes == 2
