"""What recomputation, 16 bits and ZeRO-1 do to what a cut model sends and holds, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory.lab_runs import RunTheory, rank_theory, run_theory, world
from labs.spec import RunSpec, parse_run_spec

# Four layers of width 128, two sequences of 64 tokens, four micro-batches: B × T × H values, and what crosses the head.
LAYERS, MICRO_BATCHES, STREAM, TOKENS = 4, 4, 2 * 64 * 128, 2 * 64
ZERO_16 = {"precision": "bf16-mixed", "state_layout": "zero-16"}
AMP = {"precision": "bf16-mixed", "state_layout": "torch-amp"}


def cut(training: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **parallel: Any) -> RunSpec:
    shape = {"layers": LAYERS, "hidden": 128, "heads": 4, "vocab": 256, **(model or {})}
    given = {"sequence": 64, "micro_batch": 2, "micro_batches": MICRO_BATCHES, **(training or {})}
    return parse_run_spec({"model": shape, "training": given, "parallel": parallel})


def sent(theory: RunTheory, group: str, operation: str, phase: str) -> tuple[int, float]:
    found = [each for each in theory.transfers if (each.group, each.operation, each.phase) == (group, operation, phase)]
    return sum(each.count for each in found), sum(each.payload_bytes for each in found)


@pytest.mark.parametrize(("recompute", "every", "layers"), [("full", 1, 4), ("selective", 1, 4), ("full", 3, 2)])
def test_a_recomputed_layer_sums_its_results_twice_more_in_backward(recompute: str, every: int, layers: int) -> None:
    """Six all-reduces a layer instead of four."""
    plain = run_theory(cut(tensor=2))
    again = run_theory(cut({"recompute": recompute, "recompute_every": every}, tensor=2))
    assert sent(again, "tensor", "all_reduce", "forward") == sent(plain, "tensor", "all_reduce", "forward")
    count, size = sent(plain, "tensor", "all_reduce", "backward")
    more = MICRO_BATCHES * 2 * layers
    assert sent(again, "tensor", "all_reduce", "backward") == (count + more, size + more * 4 * STREAM)


def test_a_pipelines_rank_recomputes_its_own_every_third_layer() -> None:
    """Layers 0 and 3: one on each of two ranks."""
    spec = cut({"recompute": "full", "recompute_every": 3}, tensor=2, pipeline=2)
    for place in world(spec):
        repeated = [each for each in rank_theory(spec, place).transfers if "recomputed" in each.title]
        assert [each.count for each in repeated] == [MICRO_BATCHES * 2]


def test_keys_values_and_rows_travel_once_more_when_they_are_recomputed() -> None:
    around = [run_theory(cut({"recompute": each}, context=4)) for each in ("none", "full")]
    ring = [sent(theory, "context", "send", "backward")[0] for theory in around]
    assert ring == [MICRO_BATCHES * LAYERS * 7, MICRO_BATCHES * LAYERS * 10]
    mixture = {"experts": 4, "active_experts": 2}
    routed = [run_theory(cut({"recompute": each}, mixture, data=2, expert=2)) for each in ("none", "full")]
    exchanged = [sent(theory, "expert", "all_to_all", "backward")[0] for theory in routed]
    assert exchanged == [MICRO_BATCHES * LAYERS * 2, MICRO_BATCHES * LAYERS * 5]


def test_sixteen_bits_halve_what_is_sent_but_for_the_loss() -> None:
    three_numbers = MICRO_BATCHES * 3 * 4 * TOKENS
    whole, half = (sent(run_theory(cut(each, tensor=2)), "tensor", "all_reduce", "forward") for each in ({}, ZERO_16))
    assert whole[0] == half[0]
    assert whole[1] - three_numbers == 2 * (half[1] - three_numbers)


def test_autocast_leaves_the_stream_between_stages_in_fp32_and_fsdp2_does_not() -> None:
    message = MICRO_BATCHES * STREAM
    kept = {**AMP, "reshard_after_forward": False}
    sharded = cut(kept, pipeline=2, data=2, zero=3)
    for spec, size_bytes in (
        (cut(pipeline=2), 4),
        (cut(AMP, pipeline=2), 4),
        (cut(ZERO_16, pipeline=2), 2),
        (sharded, 2),
    ):
        first = rank_theory(spec, next(world(spec)))
        assert sent(first, "pipeline", "send", "forward") == (MICRO_BATCHES, size_bytes * message)


def test_zero_1_divides_what_a_tensor_and_pipeline_rank_has_of_the_optimizer_among_its_replicas() -> None:
    alone, shared = (run_theory(cut(ZERO_16, tensor=2, pipeline=2, data=data, zero=1)) for data in (1, 2))
    for name in ("parameters", "gradients"):
        assert shared.model_state_bytes[name] == alone.model_state_bytes[name]
    assert shared.model_state_bytes["optimizer"] == alone.model_state_bytes["optimizer"] / 2


def test_both_ends_sum_their_pieces_of_a_tied_table() -> None:
    spec = cut({"bucket_bytes": 50_000}, pipeline=2, data=2, zero=1)
    assert [sent(rank_theory(spec, place), "ends", "all_reduce", "backward") for place in world(spec)] == [
        (1, 4 * 256 * 128 / 2)
    ] * 4


def test_pieces_of_norms_and_positions_are_summed_once_each() -> None:
    """A rank's flat pieces have some of them: all data ranks together have all."""
    spec = cut({"bucket_bytes": 50_000}, data=4, tensor=2, sequence_parallel=True, zero=1)
    replicated = 4 * (LAYERS * 4 * 128 + 2 * 128 + 64 * 128)
    sizes = [sent(rank_theory(spec, place), "tensor", "all_reduce", "backward")[1] for place in world(spec)]
    assert sum(sizes) == 2 * replicated
    assert len(set(sizes)) > 1


def test_everybody_agrees_about_an_overflow() -> None:
    scaled = {"precision": "fp16-mixed", "state_layout": "zero-16", "loss_scaling": True}
    for parallel, group in (({"tensor": 2}, "tensor"), ({"tensor": 2, "pipeline": 2}, "world"), ({"data": 2}, "data")):
        assert sent(run_theory(cut(scaled, **parallel)), group, "all_reduce", "optimizer") == (1, 4.0)
