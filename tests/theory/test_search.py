"""The search reports what looking at every plan would report, and finds what is run in practice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from app.theory import SearchResult, estimate, parse_search_request, search
from app.theory.planner.asking import SearchRequest, read_search
from app.theory.planner.bounds import memory_floor, order_bytes, order_seconds, shape_bytes, shape_seconds, time_floor
from app.theory.planner.plans import Plans
from app.theory.planner.ranking import Ranking
from app.theory.planner.space import Order, Shape, Sharding
from labs.spec import SpecError
from tests.support.exhaustive import best_of_all

SMALL = {"layers": 6, "hidden": 1024, "heads": 16, "kv_heads": 4, "vocab": 32000, "gated_mlp": True}
FEW = {"micro_batch": [1, 2], "virtual_stages": [1, 2, 3], "context": [1, 2], "recompute": ["none", "full"]}


def asked(model: Any, sequence: int, batch: int, gpu: str, nodes: int, **more: Any) -> dict[str, Any]:
    training = {"sequence": sequence, "global_batch": batch, **more.pop("training", {})}
    cluster = {"gpu": gpu, "nodes": nodes, "gpus_per_node": more.pop("gpus_per_node", 8)}
    return {"model": model, "training": training, "cluster": cluster, **more}


def found(*request: Any, **more: Any) -> SearchResult:
    return search(parse_search_request(asked(*request, **more)))


CASES = {
    "every axis": asked(SMALL, 2048, 12, "a100-40gb", 1, gpus_per_node=4),
    "every axis, three nodes": asked(
        SMALL, 1536, 12, "a100-40gb", 3, gpus_per_node=2, axes={"context": [1, 3], "recompute": ["none", "full"]}
    ),
    "least memory": asked("llama-3-8b", 8192, 16, "h100-80gb", 1, axes=FEW, objective="memory"),
    "64 GPUs": asked("llama-2-13b", 4096, 64, "a100-80gb", 8, axes={**FEW, "micro_batch": [2], "shard": [8, 64]}),
    "experts, folded, and modules": asked(
        "mixtral-8x7b",
        4096,
        64,
        "h100-80gb",
        4,
        axes={"micro_batch": [1], "shard": [32], "virtual_stages": [1, 2], "context": [1], "pipeline": [1, 2, 4]},
    ),
    "one implementation": asked("llama-3-8b", 4096, 32, "h100-80gb", 2, profile="torchtitan", axes=FEW),
    "scores in memory": asked(
        "gpt-3-13b", 2048, 16, "a100-80gb", 2, training={"attention": "full"}, axes={**FEW, "zero": [1, 3]}
    ),
    "choices listed": asked(
        "llama-3-8b",
        8192,
        16,
        "h100-80gb",
        2,
        axes={
            "precision": ["bf16-mixed", "fp8-mixed"],
            "overlap": [{}, {"tensor": False, "data": False}],
            "schedule": ["gpipe", "1f1b", "looped-bfs"],
            "micro_batch": [1],
            "virtual_stages": [1, 2],
            "context": [1],
        },
    ),
}


LARGER = ("one implementation", "scores in memory")  # each takes as long as three of the others


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGER else []) for name in CASES]
)
def test_the_ten_best_are_those_of_a_search_that_looks_at_every_plan(name: str) -> None:
    request = parse_search_request(CASES[name])
    plans, best = best_of_all(request)
    result = search(request)
    reported = [(each.step_seconds, each.memory_bytes) for each in result.best]
    assert len(reported) == 10
    assert [key[::-1] if request.objective == "memory" else key for key, _ in best] == reported
    assert result.pruned + result.evaluated == plans
    assert result.considered == result.decided + plans
    assert result.evaluated < plans / 5, "most are left out by a bound"
    assert sum(result.rejected.values()) <= result.considered


@pytest.mark.parametrize("name", CASES)
def test_no_plan_beats_the_bounds_it_would_be_left_out_by(name: str) -> None:
    base, space = read_search(parse_search_request(CASES[name]))
    plans, pick = Plans(base, space), Random(7)
    for shape in pick.sample(list(space.shapes(Counter())), 40):
        m = space.micro_batches(shape)
        order = pick.choice(space.orders(shape.pipeline, m, shape.profile))
        sharding = pick.choice(space.shardings_of(shape))
        made = estimate(plans.request(shape, order, sharding))
        memory = memory_floor(plans.at_best(shape))
        time = time_floor(plans.at_best(shape), None)
        replicas = shape.data * shape.context
        zero = max(space.zeros_of(shape))
        seconds = order_seconds(time, space.model, shape.pipeline, m, order)
        assert shape_seconds(time, shape.pipeline, m) <= made.time.step_seconds * (1 + 1e-12)
        assert seconds <= made.time.step_seconds * (1 + 1e-12)
        held = order_bytes(memory, replicas, shape.pipeline, zero, m, order)
        assert shape_bytes(memory, replicas, shape.pipeline, zero) <= made.memory.per_rank_bytes.total
        assert held <= made.memory.per_rank_bytes.total


@pytest.mark.slow
def test_no_plan_is_reported_twice_and_selective_is_not_looked_at_where_it_is_nothing() -> None:
    result = found("llama-3-8b", 8192, 64, "h100-80gb", 4, limit=100)
    plans = {str((each.parallel, each.training, each.request.profile)) for each in result.best}
    assert len(plans) == len(result.best) == 100
    by_module = [each.training for each in result.best if each.request.profile == "megatron-core"]
    stages = {each.parallel.zero for each in result.best if each.request.profile == "megatron-core"}
    assert stages <= {0, 1}, "its distributed optimizer shards nothing else"
    assert all(each.recompute_modules for each in by_module if each.recompute == "selective")
    numbers = {(each.step_seconds, each.memory_bytes, each.parallel.world_size) for each in result.best}
    assert len(numbers) > 90, "what differs in name differs in what it takes"


@pytest.mark.slow
def test_one_plan_for_each_division_of_the_gpus() -> None:
    request = asked("llama-3-8b", 8192, 64, "h100-80gb", 4, limit=30)
    distinct = search(parse_search_request({**request, "distinct": "layout"})).best
    layouts = [(each.parallel.tensor, each.parallel.pipeline, each.parallel.context) for each in distinct]
    assert len(set(layouts)) == len(layouts) == 30
    plain = search(parse_search_request(request)).best
    firsts = {(each.parallel.tensor, each.parallel.pipeline, each.parallel.context): each for each in reversed(plain)}
    for each in distinct[: len(firsts)]:
        key = (each.parallel.tensor, each.parallel.pipeline, each.parallel.context)
        assert each.estimate == firsts[key].estimate


@pytest.mark.slow
def test_llama_405b_on_16384_gpus_is_laid_out_as_its_makers_did() -> None:
    """Llama team 2024, table 4: tensor 8, pipeline 16, 41 % and with 131,072 tokens context 16, 38 %."""
    result = found("llama-3-405b", 8192, 2048, "h100-80gb", 2048, distinct="layout", limit=20)
    assert result.best[0].estimate.mfu_by_definition.causal_attention >= 0.40
    published = [each for each in result.best if each.parallel.tensor == 8 and each.parallel.pipeline == 16]
    assert published
    assert published[0].step_seconds < 1.05 * result.best[0].step_seconds
    axes = {"tensor": [8], "pipeline": [16]}
    (long,) = found("llama-3-405b", 131072, 128, "h100-80gb", 2048, axes=axes, limit=1).best
    assert long.estimate.mfu_by_definition.causal_attention >= 0.35
    assert long.parallel.context > 1


@pytest.mark.slow
def test_deepseek_v3_spreads_its_experts_over_many_gpus() -> None:
    """DeepSeek-AI 2024, section 3.2: 64 expert ranks on 8 nodes, under a router that sends a token to four nodes."""
    axes = {"context": [1, 2], "tensor": [1, 2], "micro_batch": [1], "recompute": ["none"]}
    result = found("deepseek-v3", 4096, 15360, "h800-80gb", 256, axes=axes, training={"precision": "fp8-mixed"})
    assert all(each.parallel.expert >= 32 for each in result.best)
    assert {each.parallel.expert_nodes for each in result.best} == {4}


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "batch"), [(2500, 2000), (3750, 3000)])
def test_tens_of_thousands_of_gpus_with_odd_factors_are_searched(nodes: int, batch: int) -> None:
    result = found("llama-3-405b", 8192, batch, "h100-80gb", nodes, limit=3, axes={"micro_batch": [1], "tensor": [8]})
    assert all(each.parallel.world_size == 8 * nodes for each in result.best)
    assert len(result.best) == 3


def test_axes_narrow_what_is_looked_at() -> None:
    axes = {"tensor": [4], "zero": [3], "schedule": ["zbv"], "recompute": ["full"], "shard": [4]}
    result = found("llama-3-8b", 8192, 64, "h100-80gb", 4, axes=axes)
    for each in result.best:
        parallel = each.parallel
        assert (parallel.tensor, parallel.zero, each.training.recompute) == (4, 3, "full")
        assert parallel.shard == 4 or parallel.data * parallel.context == 4
        assert parallel.schedule == ("zbv" if parallel.pipeline > 1 else "1f1b")


def test_a_batch_that_cannot_be_shared_out_says_so() -> None:
    result = found("llama-3-8b", 8192, 7, "h100-80gb", 625)
    assert result.best == ()
    assert result.rejected["the global batch does not share out"] > 0


def test_a_misspelt_axis_is_named_with_what_is_taken() -> None:
    with pytest.raises(SpecError) as raised:
        parse_search_request(asked("llama-3-8b", 8192, 64, "h100-80gb", 4, axes={"tensors": [8], "zero": [4]}))
    assert {violation.field for violation in raised.value.violations} == {"axes.tensors", "axes.zero.0"}


LIMITED = asked(SMALL, 2048, 12, "a100-40gb", 1, gpus_per_node=4)
LIMITS: tuple[dict[str, Any], ...] = (
    {"axes": {"recompute": ["none"], "schedule": ["1f1b"], "zero": [1, 3]}, "at_most": {"tensor": 2}},
    {"at_least": {"pipeline": 2, "virtual_stages": 2}, "at_most": {"micro_batch": 2}},
    {"axes": {"shard": [None], "reshard_after_forward": [None], "context": [1], "data": [2, 4]}},
    {"axes": {"recompute": ["selective", "full"], "recompute_modules": [["layernorm"]], "shard": [2]}},
)


@pytest.mark.parametrize("limits", LIMITS)
def test_what_limits_take_out_is_counted_by_their_fields(limits: dict[str, Any]) -> None:
    """All plans without the limits, less those that keep to them as well."""
    free, limited = (set(_plans(parse_search_request({**LIMITED, **each}))) for each in ({}, limits))
    result = search(parse_search_request({**LIMITED, **limits, "memory_share": 1}))
    assert result.best
    assert sum(result.left_out.values()) == len(free - limited) > 0
    asked_for = {f"{part}.{axis}" for part, axes in limits.items() for axis in axes}
    assert set(result.left_out) <= asked_for
    assert len(result.left_out) > len(asked_for) / 2


def _plans(request: SearchRequest) -> Iterator[tuple[Shape, Order, Sharding]]:
    _, space = read_search(request)
    for shape in space.shapes(Counter()):
        for order in space.orders(shape.pipeline, space.micro_batches(shape), shape.profile):
            for sharding in space.shardings_of(shape):
                yield shape, order, sharding


def test_a_limit_of_memory_is_kept_in_bytes_or_as_a_share() -> None:
    request = asked("llama-3-8b", 8192, 64, "h100-80gb", 1, axes=FEW, limit=1)
    sizes = {}
    for name, more in {"bytes": {"memory_bytes": 40e9}, "share": {"memory_share": 0.4}, "both": {}}.items():
        limits = more or {"memory_bytes": 40e9, "memory_share": 0.4}
        sizes[name] = search(parse_search_request(request | limits)).best[0].memory_bytes
    assert sizes["bytes"] <= 40e9
    assert sizes["share"] == sizes["both"] <= 0.4 * 80 * 2**30


@pytest.mark.parametrize(
    ("limits", "accepted"),
    [
        ({"axes": {"tensor": [3]}}, {"axes.tensor": "1, 2, 4"}),
        (
            {"axes": {"tensor": [4]}, "at_least": {"pipeline": 2}},
            {"axes.tensor": "1, 2", "at_least.pipeline": "up to 1"},
        ),
        ({"axes": {"virtual_stages": [9]}, "at_least": {"pipeline": 2}}, {"axes.virtual_stages": "1, 2, 3, 4"}),
        ({"at_most": {"tensor": 2}, "at_least": {"tensor": 4}}, {"at_least.tensor": "up to 2"}),
        ({"memory_bytes": 80e9}, {"memory_bytes": "up to 42305427866"}),
        ({"profile": "composer", "at_least": {"pipeline": 2}}, {"at_least.pipeline": "up to 1"}),
        (
            {"axes": {"schedule": ["zbv"], "virtual_stages": [1]}, "at_least": {"pipeline": 2}},
            {"axes.virtual_stages": "2"},
        ),
    ],
)
def test_limits_that_leave_no_plan_are_named_with_what_would(limits: dict[str, Any], accepted: dict[str, str]) -> None:
    with pytest.raises(SpecError) as raised:
        parse_search_request({**LIMITED, **limits})
    named = {violation.field: violation.accepted for violation in raised.value.violations}
    assert {field: named.get(field) for field in accepted} == accepted


def test_a_ranking_keeps_the_best_of_each_group() -> None:
    ranking: Ranking[tuple[str]] = Ranking(2)
    for key, name, group in (((3.0, 0.0), "c", 1), ((2.0, 0.0), "b", 2), ((1.0, 9.0), "a", 3), ((1.5, 0.0), "d", 2)):
        ranking.add(key, (name,), group)
    assert ranking.items() == [("a",), ("d",)]
    assert ranking.may_take((1.5, 0.0), 9)
    assert not ranking.may_take((1.5, 0.1), 9)
    assert not ranking.may_take((1.2, 0.0), 3), "its group has a better one"
