"""Collectives of a step: counts, payload and links against the formulas and against counting by hand."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory.collectives import data_parallel_step_bytes
from app.theory.planner import estimate, parse_estimate_request
from app.theory.planner.engine.constants import FITTED
from app.theory.presets import PRESETS
from app.theory.traffic import moe_all_to_all_bytes, sequence_parallel_bytes, tensor_parallel_bytes
from app.theory.transformer import expert_parameter_count, parameter_count
from labs.spec import SpecError

GPT: dict[str, Any] = {"layers": 8, "hidden": 2048, "heads": 16, "vocab": 32000, "norm": "rms", "positions": "rotary"}
PARAMETERS = 8 * (12 * 2048**2 + 2 * 2048) + 2048 + 32000 * 2048  # tied embeddings


def rows(model: Any = None, **sections: Any) -> list[dict[str, Any]]:
    request = {"model": GPT if model is None else model, "cluster": {"gpu": "a100-80gb"}, **sections}
    found: list[dict[str, Any]] = estimate(parse_estimate_request(request)).to_json()["communication"]
    return found


def total(found: list[dict[str, Any]], what: str = "wire", **where: Any) -> float:
    key = f"{what}_bytes_per_rank_per_step"
    return sum(row[key] for row in found if all(row[name] == value for name, value in where.items()))


@pytest.mark.parametrize("accumulation", [1, 8])
@pytest.mark.parametrize(
    ("zero", "strategy", "profile"),
    [(0, "ddp", "megatron"), (1, "zero-1", "megatron"), (2, "zero-2", "megatron"), (3, "zero-3", "zero-paper")],
)
def test_data_parallel_traffic_is_f17(zero: int, strategy: str, profile: str, accumulation: int) -> None:
    """16-bit weights and gradients of 2N bytes each, over 8 ranks."""
    training = {"global_batch": 8 * accumulation, "state_layout": "zero-16"}
    found = rows(training=training, parallel={"data": 8, "zero": zero}, profile=profile)
    assert total(found) == pytest.approx(data_parallel_step_bytes(2 * PARAMETERS, 8, strategy, accumulation))


def test_megatron_reduces_in_fp32_unless_a_layout_says_otherwise() -> None:
    found = rows(training={"global_batch": 8}, parallel={"data": 8}, profile="megatron")
    assert total(found) == pytest.approx(data_parallel_step_bytes(4 * PARAMETERS, 8, "ddp"))


def test_fsdp_keeps_its_root_gathered_and_reduces_in_fp32() -> None:
    root = 32000 * 2048 + 2048
    found = rows(parallel={"data": 8, "zero": 3}, profile="fsdp2")
    gathered = 2 * (PARAMETERS + PARAMETERS - root)
    assert total(found, "payload", operation="all_gather") == pytest.approx(gathered)
    assert total(found, "payload", operation="reduce_scatter") == pytest.approx(4 * PARAMETERS)
    layers = [row for row in found if row["name"].startswith("Weights")]
    assert [row["count_per_step"] for row in layers] == [8, 8]


@pytest.mark.parametrize(("recompute", "passes"), [("none", "training"), ("full", "training-full-recompute")])
def test_tensor_parallel_traffic_is_f19_and_the_ends(recompute: str, passes: str) -> None:
    """Two all-reduces more a micro-batch: behind the embeddings forward, before the head backward."""
    found = rows(
        training={"recompute": recompute, "global_batch": 3, "sequence": 1024},
        parallel={"tensor": 8},
        profile="megatron",
    )
    layers = 3 * tensor_parallel_bytes(1024, 1, 2048, 8, 8, passes)
    ends = 3 * 2 * 2 * 7 / 8 * 2 * 1024 * 2048
    assert total(found, group="tensor") == pytest.approx(layers + ends)


@pytest.mark.parametrize(
    ("profile", "recompute", "times"),
    [
        ("megatron", "none", 10 / 8),
        ("rankzero-labs", "none", 10 / 8),
        ("megatron", "full", 14 / 12),
        ("fsdp2", "none", 1),  # keeps the gathered inputs
        ("fsdp2", "full", 1),  # and finds them in the forward pass it repeats
        ("fsdp2", "selective", 10 / 8),
    ],
)
def test_sequence_parallelism_gathers_again_in_backward(profile: str, recompute: str, times: float) -> None:
    """F20: ten halves of an all-reduce a layer for eight, where the gathered inputs were not kept; ends alike."""
    training = {"recompute": recompute, "sequence": 1024, "global_batch": 1}
    plain, split = (
        rows(training=training, parallel={"tensor": 8, "sequence_parallel": on}, profile=profile)
        for on in (False, True)
    )
    half = 7 / 8 * 2 * 1024 * 2048
    ends = 2 * 2 * half
    inputs_of_the_head = half if times > 1 else 0.0
    assert total(split, group="tensor") == pytest.approx(
        times * (total(plain, group="tensor") - ends) + ends + inputs_of_the_head
    )
    assert {row["operation"] for row in split if row["group"] == "tensor"} == {"all_gather", "reduce_scatter"}


def test_the_planner_counts_sequence_parallelism_as_the_registered_formula_does() -> None:
    found = rows(
        training={"sequence": 1024, "global_batch": 1},
        parallel={"tensor": 8, "sequence_parallel": True},
        profile="megatron",
    )
    ends = 5 * 7 / 8 * 2 * 1024 * 2048
    assert total(found, group="tensor") == pytest.approx(sequence_parallel_bytes(1024, 1, 2048, 8, 8) + ends)


def test_experts_get_their_tokens_by_all_to_all() -> None:
    """Mixtral: four transfers a layer of two copies of every token, over eight ranks (F14)."""
    found = rows("mixtral-8x7b", training={"sequence": 4096}, parallel={"data": 8, "expert": 8, "zero": 1})
    expected = 32 * moe_all_to_all_bytes(4096, 4096, 2, 8)
    assert total(found, operation="all_to_all") == pytest.approx(expected)
    (gradients,) = [row for row in found if row["name"] == "Gradients"]
    assert gradients["group_size"] == 8  # one expert a rank: nobody else has its gradient
    assert not [row for row in found if row["group"] == "expert data"]


def test_a_pipeline_sends_activations_one_way_and_gradients_the_other() -> None:
    found = rows(training={"global_batch": 16, "sequence": 1024}, parallel={"pipeline": 4}, profile="megatron")
    (row,) = [row for row in found if row["group"] == "pipeline"]
    assert row["payload_bytes_per_rank_per_step"] == 16 * 2 * 1024 * 2048  # the last stage is the slowest: one way only


@pytest.mark.parametrize(
    ("profile", "recompute", "sends"),
    [
        ("torchtitan", "none", 3 + 3 + 4),  # forward, again in backward, and the gradients until they are home
        ("torchtitan", "full", 3 + 3 + 3 + 4),
        ("megatron-core", "none", 3 + 3 + 3),  # backward starts where forward ended, and gradients end at home
    ],
)
def test_context_parallelism_takes_keys_and_values_round_the_ring(profile: str, recompute: str, sends: int) -> None:
    training = {"sequence": 4096, "recompute": recompute}
    found = rows(training=training, parallel={"context": 4}, profile=profile)
    (row,) = [row for row in found if row["group"] == "context"]
    assert row["count_per_step"] == 8 * sends
    doubled = 4 if profile == "torchtitan" else 0  # its gradients travel in fp32
    assert row["payload_bytes_per_rank_per_step"] == 8 * (sends + doubled) * 1024 * 2 * 2048 * 2


def test_hsdp_reduces_shards_between_replicas() -> None:
    for layout, sent in (("zero-16", 2), ("torch-amp", 4)):  # in the type that gradients are kept in
        found = rows(parallel={"data": 16, "shard": 8, "zero": 3}, training={"state_layout": layout})
        (row,) = [row for row in found if row["group"] == "replicate"]
        assert row["group_size"] == 2
        assert row["payload_bytes_per_rank_per_step"] == pytest.approx(sent * PARAMETERS / 8)
    assert row["link"] == "inter_node"
    assert {row["link"] for row in found if row["group"] == "shard"} == {"intra_node"}


@pytest.mark.parametrize(
    ("parallel", "group", "link"),
    [
        ({"tensor": 8, "data": 4}, "tensor", "intra_node"),
        ({"tensor": 16}, "tensor", "inter_node"),
        ({"tensor": 8, "data": 4}, "data", "inter_node"),
        ({"tensor": 2, "data": 4}, "data", "intra_node"),
        ({"tensor": 2, "pipeline": 4}, "pipeline", "intra_node"),
        ({"tensor": 8, "pipeline": 4}, "pipeline", "inter_node"),
        ({"data": 3, "pipeline": 2}, "pipeline", "intra_node"),  # six ranks lie in a node of eight
        ({"tensor": 2, "data": 3}, "data", "intra_node"),
        ({"data": 2, "pipeline": 4}, "ends", "intra_node"),  # ranks 0 and 6 of one node
        ({"tensor": 2, "pipeline": 8}, "ends", "inter_node"),
    ],
)
def test_a_groups_link_follows_from_the_rank_order(parallel: dict[str, int], group: str, link: str) -> None:
    assert {row["link"] for row in rows(parallel=parallel, profile="megatron") if row["group"] == group} == {link}


def test_a_ring_over_nodes_has_as_many_network_cards_as_ranks_on_a_node() -> None:
    """64 FSDP ranks of 8 a node go 8 cards wide; one rank of 8 on each of 8 nodes goes through its own card."""
    wide = rows(parallel={"data": 64, "zero": 3}, profile="fsdp2")
    narrow = rows(parallel={"data": 8, "tensor": 8, "zero": 3}, profile="fsdp2")

    def speed(found: list[dict[str, Any]]) -> float:
        (row,) = [row for row in found if row["name"] == "Weights, forward"]
        return float(row["wire_bytes_per_rank_per_step"] / row["seconds"])

    assert speed(wide) > 5 * speed(narrow)


def test_one_gpu_sends_nothing() -> None:
    assert rows() == []
    assert rows(parallel={"zero": 3}) == []


@pytest.mark.parametrize(
    ("compression", "operation", "payload"),
    [
        ({"kind": "none"}, "all_reduce", 4 * PARAMETERS),
        ({"kind": "bf16"}, "all_reduce", 2 * PARAMETERS),
        ({"kind": "random-k", "density": 0.01}, "all_reduce", 0.04 * PARAMETERS),
        ({"kind": "top-k", "density": 0.01}, "all_gather", 8 * 0.08 * PARAMETERS),  # value and index, of eight ranks
        ({"kind": "one-bit"}, "all_gather", PARAMETERS),  # an eighth of a byte, of eight ranks
        ({"kind": "powersgd", "rank": 4}, "all_reduce", 4 * PARAMETERS / (2048 / 8)),
    ],
    ids=str,
)
def test_compressed_gradients_are_as_large_as_counting_says(
    compression: dict[str, Any], operation: str, payload: float
) -> None:
    found = rows(
        training={"state_layout": "megatron-18"}, parallel={"data": 8}, compression=compression, profile="megatron"
    )
    (row,) = [row for row in found if row["name"] == "Gradients"]
    assert row["operation"] == operation
    assert row["payload_bytes_per_rank_per_step"] == pytest.approx(payload)


def test_compression_is_refused_where_gradients_are_sharded() -> None:
    with pytest.raises(SpecError) as raised:
        rows(parallel={"data": 8, "zero": 1}, compression={"kind": "top-k"})
    assert [violation.field for violation in raised.value.violations] == ["compression.kind"]


@pytest.mark.parametrize("accumulation", [1, 8])
def test_zero_3_gathers_experts_in_every_micro_batch(accumulation: int) -> None:
    """F17 for what 64 ranks repeat, and for experts, which 8 of them do."""
    model = PRESETS["mixtral-8x7b"].model
    training = {"sequence": 1024, "global_batch": 64 * accumulation}
    found = rows("mixtral-8x7b", training=training, parallel={"data": 64, "expert": 8, "zero": 3}, profile="zero-paper")
    experts = expert_parameter_count(model) / 8
    dense = parameter_count(model) - expert_parameter_count(model)
    expected = data_parallel_step_bytes(2 * dense, 64, "zero-3", accumulation)
    expected += data_parallel_step_bytes(2 * experts, 8, "zero-3", accumulation)
    assert total([row for row in found if row["operation"] != "all_to_all"]) == pytest.approx(expected)


def test_hsdp_reduces_each_expert_once() -> None:
    """Sixteen ranks in two shards of eight, eight experts: an expert is whole on a rank and has one copy elsewhere."""
    found = rows("mixtral-8x7b", parallel={"data": 16, "shard": 8, "expert": 8, "zero": 3}, profile="zero-paper")
    (row,) = [row for row in found if "of experts" in row["name"]]
    assert row["operation"] == "all_reduce"
    assert row["group_size"] == 2
    assert row["payload_bytes_per_rank_per_step"] == pytest.approx(2 * 32 * 3 * 4096 * 14336)


def test_sequence_parallelism_routes_a_ranks_own_tokens() -> None:
    plain, split = (
        rows(
            "mixtral-8x7b",
            training={"sequence": 4096},
            parallel={"data": 8, "expert": 8, "tensor": 4, "sequence_parallel": on},
        )
        for on in (False, True)
    )
    assert total(plain, operation="all_to_all") == pytest.approx(4 * total(split, operation="all_to_all"))


def test_the_ends_of_a_pipeline_share_a_tied_table() -> None:
    found = rows(parallel={"pipeline": 4, "tensor": 2}, profile="megatron", training={"state_layout": "megatron-18"})
    tied = [row for row in found if row["name"] == "Gradients of the tied table"]
    assert [row["payload_bytes_per_rank_per_step"] for row in tied] in ([], [4 * 32000 * 2048 / 2])


@pytest.mark.parametrize(("tensor", "gpus_per_node"), [(4, 6), (8, 12), (2, 3)])
def test_a_group_that_does_not_divide_a_node_crosses_it_somewhere(tensor: int, gpus_per_node: int) -> None:
    cluster = {"gpu": "a100-80gb", "gpus_per_node": gpus_per_node}
    found = rows(parallel={"tensor": tensor, "data": 3}, cluster=cluster, profile="megatron")
    assert {row["link"] for row in found if row["group"] == "tensor"} == {"inter_node"}


@pytest.mark.parametrize(("context", "speed"), [(8, 300e9), (16, 25e9)])
def test_a_ring_of_keys_goes_at_its_slowest_hop(context: int, speed: float) -> None:
    found = rows(training={"sequence": 65536}, parallel={"context": context})
    (row,) = [row for row in found if row["group"] == "context"]
    reached = row["wire_bytes_per_rank_per_step"] / row["seconds"]
    assert reached == pytest.approx(speed * FITTED.network_efficiency, rel=0.05)


def test_zero_3_behind_a_pipeline_gathers_once_a_step_unless_it_is_told_to_let_go() -> None:
    plan: dict[str, Any] = {
        "model": "llama-3-70b",
        "training": {"sequence": 8192, "global_batch": 128, "state_layout": "torch-amp"},
        "parallel": {"data": 8, "tensor": 8, "pipeline": 4, "zero": 3, "sequence_parallel": True},
        "cluster": {"gpu": "h100-80gb"},
        "profile": "torchtitan",
    }
    kept = estimate(parse_estimate_request(plan))
    plan["parallel"] = {**plan["parallel"], "reshard_after_forward": True}
    freed = estimate(parse_estimate_request(plan))
    counts = [
        max(row.count_per_step for row in found.communication if row.name.startswith("Weights"))
        for found in (kept, freed)
    ]
    assert counts == [1, 16 * 20]  # micro-batches × layers of a stage
    weights_and_gradients = 6 * kept.memory.by_stage[1].parameters
    assert kept.memory.by_stage[1].bytes.temporary == pytest.approx(weights_and_gradients)
    assert (freed.memory.per_rank_bytes.temporary or 0) < (kept.memory.per_rank_bytes.temporary or 0)


def test_few_nodes_and_fp8_send_a_token_less_far() -> None:
    """DeepSeek-AI 2024, section 3.2.2: 8 experts on at most 4 nodes, each reached once; dispatch in 8 bits."""
    plan: dict[str, Any] = {
        "model": "deepseek-v3",
        "training": {"sequence": 4096, "global_batch": 1024},
        "parallel": {"data": 128, "pipeline": 16, "expert": 64, "zero": 1},
        "cluster": {"gpu": "h800-80gb"},
    }

    def payload(**changes: Any) -> float:
        found = estimate(parse_estimate_request({**plan, **changes}))
        (row,) = [row for row in found.communication if row.group == "expert"]
        return row.payload_bytes_per_rank_per_step / row.count_per_step  # which stage is slowest is another matter

    plain, limited = payload(), payload(parallel={**plan["parallel"], "expert_nodes": 4})
    assert limited == pytest.approx(plain / 2)
    fp8 = {**plan["training"], "precision": "fp8-mixed"}
    both = payload(parallel={**plan["parallel"], "expert_nodes": 4}, training=fp8)
    assert both == pytest.approx(plain / 2 * 0.75)
