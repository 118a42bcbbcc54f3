"""What must hold of every estimate, over generated plans: finite, non-negative, monotonic where physics says so."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from app.theory.planner import estimate, parse_estimate_request
from labs.spec import SpecError

SHAPED = settings(max_examples=75, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])

DEGREES = st.sampled_from([1, 2, 4, 8])


@st.composite
def models(draw: st.DrawFn) -> dict[str, Any]:
    heads = draw(st.sampled_from([8, 16, 32]))
    experts = draw(st.sampled_from([1, 1, 8]))
    return {
        "layers": draw(st.integers(8, 40)),
        "hidden": heads * draw(st.sampled_from([32, 64, 128])),
        "heads": heads,
        "kv_heads": draw(st.sampled_from([1, 2, heads])),
        "ffn_hidden": draw(st.sampled_from([1024, 4096, 11008])),
        "vocab": draw(st.integers(1000, 130_000)),
        "gated_mlp": draw(st.booleans()),
        "tied_embeddings": draw(st.booleans()),
        "biases": draw(st.booleans()),
        "norm": draw(st.sampled_from(["layer", "rms"])),
        "positions": draw(st.sampled_from(["learned", "rotary"])),
        "experts": experts,
        "active_experts": 2 if experts > 1 else 1,
        "shared_experts": draw(st.integers(0, 2)) if experts > 1 else 0,
        "dense_layers": draw(st.integers(0, 3)) if experts > 1 else 0,
    }


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    pipeline = draw(DEGREES)
    data, micro_batch = draw(DEGREES), draw(st.integers(1, 8))
    virtual = draw(st.sampled_from([1, 2])) if pipeline > 1 and pipeline <= 4 else 1
    schedule = draw(st.sampled_from(["gpipe", "1f1b", "zero-bubble", "looped-bfs"])) if pipeline > 1 else "1f1b"
    if virtual > 1:
        schedule = draw(st.sampled_from(["interleaved", "zero-bubble", "looped-bfs", "zbv"]))
    rounds = draw(st.integers(1, 6))
    return {
        "model": draw(models()),
        "training": {
            "sequence": draw(st.sampled_from([512, 2048, 8192])),
            "micro_batch": micro_batch,
            "global_batch": micro_batch * data * pipeline * rounds,
            "precision": draw(st.sampled_from(["bf16-mixed", "fp32", "fp8-mixed"])),
            "optimizer": draw(st.sampled_from(["adamw", "sgd", "adafactor", "adamw-8bit"])),
            "recompute": draw(st.sampled_from(["none", "selective", "full"])),
            "attention": draw(st.sampled_from(["flash", "full"])),
            "offload": draw(st.sampled_from(["none", "none", "optimizer", "all"])),
            "state_layout": draw(st.sampled_from(["zero-16", "megatron-18", "torch-amp", "bf16"])),
        },
        "parallel": {
            "data": data,
            "tensor": draw(DEGREES),
            "pipeline": pipeline,
            "context": draw(st.sampled_from([1, 2])),
            "virtual_stages": virtual,
            "schedule": schedule,
            "sequence_parallel": draw(st.booleans()),
            "zero": draw(st.integers(0, 3)),
            "expert": draw(st.sampled_from([1, 1, data])),
            "shard": draw(st.sampled_from([None, None, max(1, data // 2)])),
        },
        "cluster": {
            "gpu": draw(st.sampled_from(["h100-80gb", "h200-141gb", "b200-180gb"])),
            "gpus_per_node": draw(st.sampled_from([1, 6, 8])),
        },
        "profile": draw(
            st.sampled_from(["zero-paper", "megatron", "fsdp2", "composer", "deepspeed", "rankzero-labs", None])
        ),
    }


def answered(plan: dict[str, Any]) -> dict[str, Any]:
    """The estimate; plans that are refused are not what is tested here."""
    try:
        return estimate(parse_estimate_request(plan)).to_json()
    except SpecError:
        assume(False)
        raise


def changed(plan: dict[str, Any], section: str, **values: Any) -> dict[str, Any]:
    return {**plan, section: {**plan[section], **values}}


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in numbers(inner)]
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def total(plan: dict[str, Any]) -> float:
    return float(answered(plan)["memory"]["per_rank_bytes"]["total"])


@SHAPED
@given(plans())
def test_every_number_is_finite_and_none_is_negative(plan: dict[str, Any]) -> None:
    found = answered(plan)
    assert all(math.isfinite(number) and number >= 0 for number in numbers(found))
    assert 0 <= found["pipeline"]["bubble_fraction"] < 1
    assert 0 < found["mfu"] <= found["hfu"] * (1 + 1e-9) <= 1
    parts = found["memory"]["per_rank_bytes"]
    assert math.isclose(parts["total"], sum(size for name, size in parts.items() if name != "total"))
    assert parts["total"] == max(stage["bytes"]["total"] for stage in found["memory"]["by_stage"])


@SHAPED
@given(plans())
def test_a_step_is_its_parts_and_no_faster_than_its_compute(plan: dict[str, Any]) -> None:
    time = answered(plan)["time"]
    names = ("compute", "recompute", "bubble", "exposed_communication", "optimizer")
    assert math.isclose(time["step_seconds"], sum(time[f"{name}_seconds"] for name in names), rel_tol=1e-9)
    assert time["step_seconds"] >= time["compute_seconds"] > 0


@SHAPED
@given(plans(), st.sampled_from([("training", "sequence"), ("training", "micro_batch")]))
def test_longer_sequences_and_larger_micro_batches_take_more_memory(
    plan: dict[str, Any], field: tuple[str, str]
) -> None:
    section, name = field
    free = changed(plan, "training", global_batch=None)
    assert total(changed(free, section, **{name: 2 * plan[section][name]})) > total(free)


@SHAPED
@given(plans())
def test_a_higher_zero_stage_never_holds_more_state(plan: dict[str, Any]) -> None:
    def states(zero: int) -> list[float]:
        """Of every stage: which of them holds most besides may change with the profile."""
        found = answered(changed(plan, "parallel", zero=zero))["memory"]["by_stage"]
        return [
            sum(float(stage["bytes"][name]) for name in ("parameters", "gradients", "optimizer")) for stage in found
        ]

    for before, after in pairwise(states(zero) for zero in range(4)):
        assert all(higher <= lower * (1 + 1e-12) for lower, higher in zip(before, after, strict=True))


@SHAPED
@given(plans())
def test_recomputing_more_keeps_less(plan: dict[str, Any]) -> None:
    kept = [
        answered(changed(plan, "training", recompute=what))["memory"]["per_rank_bytes"]["activations"]
        for what in ("none", "selective", "full")
    ]
    assert kept[0] * (1 + 1e-12) >= kept[1]
    assert kept[0] * (1 + 1e-12) >= kept[2]


@SHAPED
@given(plans(), st.floats(1e9, 1e13), st.floats(1.0, 4.0))
def test_more_memory_never_makes_a_fitting_plan_not_fit(plan: dict[str, Any], memory: float, more: float) -> None:
    small, large = (
        answered(changed(plan, "cluster", memory_bytes=min(size, 1e21)))["memory"]["fits"]
        for size in (memory, memory * more)
    )
    assert large or not small


@SHAPED
@given(plans())
def test_wire_bytes_follow_from_the_payload(plan: dict[str, Any]) -> None:
    """A ring all-reduce sends 2(n−1)/n of the payload, everything else that is not a message (n−1)/n."""
    for row in answered(plan)["communication"]:
        n = row["group_size"]
        share = {"all_reduce": 2 * (n - 1) / n, "send": 1.0}.get(row["operation"], (n - 1) / n)
        payload, wire = (row[f"{what}_bytes_per_rank_per_step"] for what in ("payload", "wire"))
        assert math.isclose(wire, share * payload, rel_tol=1e-9)


@SHAPED
@given(plans(), st.integers(2, 5))
def test_slower_links_never_make_a_step_faster(plan: dict[str, Any], factor: int) -> None:
    def step(slower: float) -> float:
        given_links = {"intra_node_bytes_per_second": 4e11 / slower, "inter_node_bytes_per_second": 5e10 / slower}
        return float(answered(changed(plan, "cluster", **given_links))["time"]["step_seconds"])

    assert step(factor) >= step(1) * (1 - 1e-12)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_value_that_is_offered_keeps_to_every_rule_of_its_field(data: st.DataObject) -> None:
    draw = data.draw
    few, many = st.sampled_from([1, 2, 3, 4, 6, 7, 8]), st.sampled_from([1, 2, 3, 4, 5, 8, 12])
    experts = draw(st.sampled_from([1, 6, 8, 16]))
    model = {"layers": 12, "hidden": 768, "heads": 12, "ffn_hidden": draw(st.sampled_from([2048, 3072, 2056]))}
    model |= {"vocab": 32000, "experts": experts, "active_experts": min(2, experts)}
    tensor, pipeline = draw(few), draw(st.sampled_from([1, 2, 4]))
    parallel = {"data": draw(many), "tensor": tensor, "pipeline": pipeline, "context": draw(few), "expert": draw(few)}
    parallel |= {"sequence_parallel": draw(st.booleans()), "expert_tensor": draw(st.sampled_from([None, 1, 2, 3]))}
    if pipeline > 1:
        parallel |= draw(st.sampled_from([{}, {"schedule": "interleaved", "virtual_stages": 3}]))
    training = {"sequence": draw(st.sampled_from([1536, 2048, 2100])), "global_batch": draw(st.integers(1, 200))}
    request = {"model": model, "training": training, "parallel": parallel}
    for field, accepted in _violations(request).items():
        part, _, name = field.partition(".")
        offered = accepted.partition("such as ")[2].replace(" or ", ", ") or accepted
        for text in offered.split(", "):
            if text.replace(",", "").isdecimal():
                value = int(text.replace(",", ""))
                changed = {**request, part: {**request[part], name: value}}
                assert field not in _violations(changed), (field, value)


def _violations(request: dict[str, Any]) -> dict[str, str]:
    try:
        parse_estimate_request(request)
    except SpecError as error:
        return {each.field: each.accepted for each in error.violations}
    return {}
