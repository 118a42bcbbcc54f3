"""Hostile requests for runs: what would cost the machine too much, and what no reader may stumble over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.theory.planner import parse_estimate_request
from app.theory.planner.engine.memory import stage_memories
from app.theory.planner.engine.resolve import plan_of
from labs.spec import SpecError, Violation, parse_run_spec
from labs.spec.limits import approximate_activation_bytes
from tests.attacks.conftest import ClientOf

SPEC = {"model": "gpt-mini", "parallel": {"data": 2}}


def refused(data: Any) -> list[Violation]:
    with pytest.raises(SpecError) as found:
        parse_run_spec(data)
    assert len(json.dumps([str(each) for each in found.value.violations])) < 5_000
    return found.value.violations


@pytest.mark.parametrize(
    ("field", "entries"),
    [
        ("faults", [{"kind": "kill"}] * 17),
        ("faults", [{"kind": "kill"}] * 100_000),
        ("probes", ["memory"] * 5),
        ("probes", ["memory"] * 100_000),
    ],
)
def test_a_list_without_end_is_refused_by_name(field: str, entries: list[Any]) -> None:
    (violation,) = refused({**SPEC, field: entries})
    assert violation.field == field
    assert "too many" in violation.message
    assert violation.accepted.startswith("at most")


@pytest.mark.parametrize("number", ["²", "-1", "1e3", "0x10", " 7", "٣", "9" * 400, "1\u00a0", "nan", "1;drop", "'"])
def test_a_place_in_the_stream_that_is_none_is_refused(client_of: ClientOf, number: str) -> None:
    client = client_of()
    assert client.post("/api/v1/lab/runs", json={"spec": SPEC}).status_code == 201
    headers = {"Last-Event-ID": number.encode()}
    for path in ("/api/v1/lab/runs/1/events", "/lab/runs/1/events"):
        reply = client.get(path, headers=headers)  # type: ignore[arg-type]
        assert reply.status_code == 422
        assert "Last-Event-ID" in reply.text


@pytest.mark.parametrize("number", ["-1", "2147483648", "9" * 400, "x", "1.5", ""])
def test_a_place_to_go_on_from_is_a_number_the_database_knows(client_of: ClientOf, number: str) -> None:
    client = client_of()
    client.post("/api/v1/lab/runs", json={"spec": SPEC})
    assert client.get("/api/v1/lab/runs/1/events", params={"after": number}).status_code == 422


HOG: dict[str, Any] = {"layers": 32, "hidden": 512, "heads": 512, "vocab": 256, "ffn_hidden": 8, "kv_heads": 512}
NARROW = {"layers": 8, "hidden": 64, "heads": 4, "vocab": 256}
LONG = {"sequence": 1024, "steps": 1, "micro_batch": 64}


@pytest.mark.parametrize(
    ("field", "data"),
    [
        ("training.attention", {"model": HOG, "training": {**LONG, "micro_batch": 1, "attention": "full"}}),
        ("training.micro_batch", {"model": {**NARROW, "heads": 64}, "training": {**LONG, "attention": "full"}}),
        (
            "training.micro_batch",
            {"model": {**NARROW, "heads": 64}, "training": {**LONG, "attention": "full", "recompute": "full"}},
        ),
        ("training.micro_batch", {"model": {**NARROW, "vocab": 65536}, "training": {**LONG, "sequence": 128}}),
        (
            "training.micro_batch",
            {
                "model": NARROW,
                "training": {**LONG, "micro_batch": 4, "micro_batches": 64},
                "parallel": {"pipeline": 8, "schedule": "gpipe"},
            },
        ),
        (
            "training.micro_batch",
            {
                "model": {**NARROW, "experts": 8, "active_experts": 8, "expert_ffn_hidden": 2048},
                "training": {**LONG, "micro_batches": 1},
            },
        ),
        ("options.hidden", {"program": "gemm", "options": {"hidden": 16_384, "tokens": 8, "slices": [1]}}),
        ("options.sides", {"program": "gemm", "options": {"sides": [16_384], "dtypes": ["fp32"], "slices": []}}),
        (
            "options.sizes_bytes",
            {"program": "collectives", "options": {"sizes_bytes": [4, 2**26]}, "parallel": {"data": 8}},
        ),
    ],
    ids=range(9),
)
def test_what_would_take_too_much_memory_is_refused_by_field(field: str, data: dict[str, Any]) -> None:
    violations = refused({"device": "cpu", **data})
    assert field in {violation.field for violation in violations}
    assert all(violation.accepted for violation in violations)


GRID = [
    {"model": {"layers": layers, "hidden": 64, "heads": heads, "vocab": vocab}, "training": training}
    for layers, heads, vocab in ((2, 4, 256), (8, 64, 256), (2, 8, 16_384))
    for training in (
        {"sequence": sequence, "micro_batch": 2, "attention": attention, "recompute": recompute}
        for sequence in (64, 512)
        for attention in ("flash", "full")
        for recompute in ("none", "selective", "full")
    )
]


@pytest.mark.parametrize("data", GRID, ids=range(len(GRID)))
def test_what_the_gate_reckons_with_is_no_less_than_theory_says(data: dict[str, Any]) -> None:
    """Its rule of thumb has to be torch-free and quick; that it is no smaller is what protects the machine."""
    spec = parse_run_spec({**data, "device": "cpu"})
    known = {"precision": "fp32", "state_layout": "fp32", "global_batch": 2}
    request = parse_estimate_request(
        {"model": spec.model.model_dump(), "training": {**known, **data["training"]}, "profile": "rankzero-labs"}
    )
    memory = max(stage.activations for stage in stage_memories(plan_of(request)))
    assert 2 * approximate_activation_bytes(spec) > 0.95 * memory
