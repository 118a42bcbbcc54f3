"""What a run of the lab is expected to hold and send, by counting tensors by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from app.theory.lab_runs import RunTheory, rank_theory, run_theory, world
from labs.spec import RunSpec, parse_run_spec

# gpt-mini: two layers of width 128, 256 words, 128 positions. First dimension and values of every tensor.
LAYER = [(128, 128 * 128)] * 4 + [(512, 512 * 128), (128, 128 * 512)] + [(128, 128)] * 4
OUTSIDE = [(256, 256 * 128), (128, 128 * 128), (128, 128), (128, 128)]
PARAMETERS = sum(size for _, size in 2 * LAYER + OUTSIDE)


def padded(tensors: list[tuple[int, int]], ranks: int) -> int:
    """fp32 bytes when every tensor is cut into `ranks` equal pieces of whole rows, the last ones padded."""
    return sum(4 * ranks * math.ceil(rows / ranks) * (size // rows) for rows, size in tensors)


def spec(ranks: int, stage: int, **training: Any) -> RunSpec:
    return parse_run_spec({"model": "gpt-mini", "training": training, "parallel": {"data": ranks, "zero": stage}})


def test_the_count_is_the_models() -> None:
    assert PARAMETERS == 443_648 == run_theory(spec(1, 0)).parameters


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ddp_holds_sixteen_bytes_a_parameter_on_every_rank(ranks: int) -> None:
    theory = run_theory(spec(ranks, 0))
    assert theory.model_state_bytes == {
        "parameters": 4 * PARAMETERS,
        "gradients": 4 * PARAMETERS,
        "optimizer": 8 * PARAMETERS,
    }
    assert theory.state_total_bytes == 16 * PARAMETERS
    assert theory.state_layout == "fp32"


@pytest.mark.parametrize("micro_batches", [1, 4])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ddp_all_reduces_its_gradients_once_a_step(ranks: int, micro_batches: int) -> None:
    theory = run_theory(spec(ranks, 0, micro_batches=micro_batches))
    assert [transfer.operation for transfer in theory.transfers] == ["all_reduce"]
    assert theory.payload_bytes_per_step == 4 * PARAMETERS
    assert theory.wire_bytes_per_step == pytest.approx(2 * (ranks - 1) / ranks * 4 * PARAMETERS)


@pytest.mark.parametrize("ranks", [2, 4])
def test_fsdp_holds_an_equal_share_where_ranks_divide_every_tensor(ranks: int) -> None:
    assert run_theory(spec(ranks, 3)).state_total_bytes == 16 * PARAMETERS / ranks


def test_three_ranks_hold_and_send_padding() -> None:
    """A third of 128 rows is 43 rows and a bit: rank 0 keeps 43, and what is sent is 3 × 43."""
    theory = run_theory(spec(3, 3))
    whole = padded(2 * LAYER + OUTSIDE, 3)
    assert theory.state_total_bytes == 4 * whole / 3
    assert theory.state_total_bytes > 16 * PARAMETERS / 3
    assert theory.payload_bytes_per_step == 2 * whole + padded(2 * LAYER, 3)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_fsdp_gathers_twice_and_scatters_once_in_every_micro_step(ranks: int) -> None:
    """The unit outside the layers stays gathered between forward and backward."""
    theory = run_theory(spec(ranks, 3, micro_batches=2))
    whole, layers = padded(2 * LAYER + OUTSIDE, ranks), padded(2 * LAYER, ranks)
    sent = {(t.operation, t.phase): (t.count, t.payload_bytes) for t in theory.transfers}
    assert sent == {
        ("all_gather", "forward"): (2 * 3, 2 * whole),
        ("all_gather", "backward"): (2 * 2, 2 * layers),
        ("reduce_scatter", "backward"): (2 * 3, 2 * whole),
    }
    assert theory.wire_bytes_per_step == pytest.approx((ranks - 1) / ranks * 2 * (2 * whole + layers))


def test_keeping_layers_gathered_saves_the_second_gather() -> None:
    kept, freed = run_theory(spec(2, 3, reshard_after_forward=False)), run_theory(spec(2, 3))
    assert {transfer.phase for transfer in kept.transfers if transfer.operation == "all_gather"} == {"forward"}
    assert freed.payload_bytes_per_step - kept.payload_bytes_per_step == padded(2 * LAYER, 2)
    assert kept.model_state_bytes == freed.model_state_bytes


@pytest.mark.parametrize("stage", [0, 3])
def test_a_rank_alone_holds_everything_and_puts_nothing_on_a_wire(stage: int) -> None:
    theory = run_theory(spec(1, stage))
    assert theory.state_total_bytes == 16 * PARAMETERS
    assert theory.wire_bytes_per_step == 0


def test_fsdp_sends_half_as_much_again_as_ddp_when_the_model_is_all_layers() -> None:
    """For deep models the embeddings vanish: 3 against 2 times the weights."""
    shape = {"layers": 40, "hidden": 128, "heads": 4, "vocab": 256}
    deep = {"model": shape, "training": {"sequence": 2, "steps": 1}}
    ddp, fsdp = (
        run_theory(parse_run_spec({**deep, "parallel": {"data": 2, "zero": stage}})).wire_bytes_per_step
        for stage in (0, 3)
    )
    assert fsdp / ddp == pytest.approx(1.5, rel=0.01)


# Everything below with gpt-mini, two sequences of 64 tokens and three micro-batches. Bytes of B × T × H values:
STREAM = 4 * 2 * 64 * 128
TWO_LAYERS = 2


def cut(model: dict[str, Any] | None = None, **parallel: Any) -> RunSpec:
    shape = {"layers": 2, "hidden": 128, "heads": 4, "vocab": 256, **(model or {})}
    training = {"sequence": 64, "micro_batch": 2, "micro_batches": 3}
    return parse_run_spec({"model": shape, "training": training, "parallel": parallel})


def sent(theory: RunTheory, group: str) -> dict[tuple[str, str], tuple[int | None, float]]:
    """Count and payload by operation and phase, of the transfers in `group`."""
    found: dict[tuple[str, str], tuple[int | None, float]] = {}
    for each in theory.transfers:
        if each.group == group:
            count, size = found.get((each.operation, each.phase), (0, 0.0))
            found[each.operation, each.phase] = (count + (each.count or 0), size + each.payload_bytes)
    return found


def test_tensor_parallelism_sums_twice_a_layer_each_way_and_once_at_each_end() -> None:
    token = 4 * 2 * 64
    for untied in (False, True):
        theory = run_theory(cut({"tied_embeddings": not untied}, tensor=2))
        assert sent(theory, "tensor") == {
            ("all_reduce", "forward"): (3 * (2 * TWO_LAYERS + 1 + 3), 3 * ((2 * TWO_LAYERS + 1) * STREAM + 3 * token)),
            ("all_reduce", "backward"): (3 * (2 * TWO_LAYERS + 1), 3 * (2 * TWO_LAYERS + 1) * STREAM),
        }
        assert {each.group for each in theory.transfers} == {"tensor"}, "alone on the data axis"


def test_sequence_parallelism_sends_halves_and_once_more_for_the_inputs_it_does_not_keep() -> None:
    sums, token = 2 * TWO_LAYERS + 1, 4 * 2 * 64
    replicated = 4 * (TWO_LAYERS * 4 * 128 + 2 * 128 + 64 * 128)  # norms of the layers and at the end, positions
    assert sent(run_theory(cut(tensor=2, sequence_parallel=True)), "tensor") == {
        ("reduce_scatter", "forward"): (3 * sums, 3 * sums * STREAM),
        ("all_gather", "forward"): (3 * sums, 3 * sums * STREAM),
        ("all_reduce", "forward"): (3 * 3, 3 * 3 * token),
        ("all_gather", "backward"): (3 * 2 * sums, 3 * 2 * sums * STREAM),
        ("reduce_scatter", "backward"): (3 * sums, 3 * sums * STREAM),
        ("all_reduce", "backward"): (1, replicated),
    }


def test_norms_and_positions_are_summed_in_the_shards_that_zero_3_leaves() -> None:
    whole, halves = (
        sent(run_theory(cut(tensor=2, sequence_parallel=True, data=2, zero=zero)), "tensor")["all_reduce", "backward"]
        for zero in (0, 3)
    )
    assert whole == (1, 2 * halves[1])
    assert halves[0] == 1


def test_a_tensor_rank_holds_a_part_of_every_matrix_and_all_of_the_rest() -> None:
    model = cut().model
    matrices = 2 * (4 * 128 * 128 + 2 * 512 * 128) + 256 * 128
    rest = 64 * 128 + 2 * 4 * 128 + 2 * 128
    for ranks in (1, 2, 4):
        state = run_theory(cut(tensor=ranks)).model_state_bytes
        assert state["parameters"] == 4 * (matrices / ranks + rest)
    assert model.ffn_hidden == 512


@pytest.mark.parametrize(("ranks", "kv_heads", "tensor"), [(2, 4, 1), (4, 2, 1), (4, 2, 2)])
def test_keys_and_values_go_round_once_and_back_home_with_their_gradients(
    ranks: int, kv_heads: int, tensor: int
) -> None:
    message = 4 * 2 * 2 * (64 // ranks) * (kv_heads // tensor) * 32
    times = 3 * TWO_LAYERS
    assert sent(run_theory(cut({"kv_heads": kv_heads}, context=ranks, tensor=tensor)), "context") == {
        ("send", "forward"): (times * (ranks - 1), times * (ranks - 1) * message),
        ("send", "backward"): (times * (2 * ranks - 1), times * (2 * ranks - 1) * message),
    }


def test_context_ranks_are_data_ranks_to_the_parameters() -> None:
    by_context, by_data = (run_theory(cut(**{axis: 2}, zero=3)) for axis in ("context", "data"))
    assert by_context.model_state_bytes == by_data.model_state_bytes
    assert sent(by_context, "data") == sent(by_data, "data")


MIXTURE = {"experts": 4, "active_experts": 2, "dense_layers": 1}
EXPERT = 2 * 512 * 128


def test_tokens_travel_to_their_experts_and_back_in_the_layers_that_have_some() -> None:
    rows = 2 * 64 * 2 * 4 * 128  # each token twice
    theory = run_theory(cut(MIXTURE, data=4, expert=2))
    assert sent(theory, "expert") == {
        ("all_to_all", "forward"): (3 * 3, 3 * (2 * rows + 8 * 4)),
        ("all_to_all", "backward"): (3 * 2, 3 * 2 * rows),
    }
    assert {each.title for each in theory.transfers if each.is_mean} == {
        "Results back (the ranks' mean)",
        "Gradients of rows back (the ranks' mean)",
    }
    assert sent(theory, "expert_replicas") == {("all_reduce", "backward"): (1, 4 * 2 * EXPERT)}
    everything_else = run_theory(cut(MIXTURE)).parameters - 4 * EXPERT
    assert sent(theory, "data")["all_reduce", "backward"][1] == 4 * everything_else


def test_expert_ranks_hold_different_experts_and_their_replicas_the_same() -> None:
    spec = cut(MIXTURE, data=4, expert=2)
    held = [rank_theory(spec, place).model_state_bytes["parameters"] for place in world(spec)]
    assert held == [4 * (run_theory(spec).parameters - 2 * EXPERT)] * 4


def test_no_replica_no_sum_of_expert_gradients() -> None:
    assert sent(run_theory(cut(MIXTURE, data=2, expert=2)), "expert_replicas") == {}
