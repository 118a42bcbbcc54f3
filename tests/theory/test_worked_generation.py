"""Formulas of generation and rollouts against figures worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.theory import generation
from app.theory.presets import PRESETS
from tests.theory.worked import GB, H100, MB, MS, OPENING, PERCENT, Example, Inputs, worked

LLAMA_8B: Inputs = {"layers": 32, "key_value_heads": 8, "head_size": 128}
LLAMA_70B: Inputs = {"layers": 80, "key_value_heads": 8, "head_size": 128}
HBM: Inputs = {"memory_bytes_per_second": 3.35e12}

EXAMPLES: list[Example] = [
    # 2 × 32 × 8 × 128 × 2 = 131,072 bytes a token; 80 layers: 327,680
    ("kv_cache", {**LLAMA_8B, "tokens": 1}, MB, "0.131"),
    ("kv_cache", OPENING, GB, "34.36"),
    ("kv_cache", {**LLAMA_70B, "tokens": 131072}, GB, "42.95"),
    # 576 × 2 × 61 bytes a token, as published (DeepSeek-AI 2025, table 1); Llama 3 405B: 2 × 126 × 8 × 128 × 2
    ("latent_cache", OPENING, 1e3, "70.272"),
    ("kv_cache", {"layers": 126, "key_value_heads": 8, "head_size": 128, "tokens": 1}, 1e3, "516.096"),
    # 16 GB over 3.35 TB/s; with 34.36 GB of cache; 140 GB over eight GPUs
    ("decode_time", {"parameters": 8e9, "cached_bytes": 0, **HBM}, MS, "4.78"),
    ("decode_time", OPENING, MS, "15.03"),
    ("decode_time", {"parameters": 70e9, "cached_bytes": 0, "memory_bytes_per_second": 26.8e12}, MS, "5.22"),
    # 989 / 3.35; with weights of one byte, half
    ("decode_break_even", OPENING, 1, "295.2"),
    ("decode_break_even", {"achieved_flops_per_second": H100, **HBM, "bytes_each": 1}, 1, "147.6"),
    # three quarters of the work is generation
    ("rollout_gpus", OPENING, 1, "48"),
    ("rollout_idle", OPENING, PERCENT, "87.5"),
    # at version 0 with no staleness one batch, with 4 five of them
    ("rollouts_admitted", {"batch": 512, "version": 0, "staleness": 0}, 1, "512"),
    ("rollouts_admitted", OPENING, 1, "7680"),
    # 327,680 bytes a token over 8 ranks; over 16 the eight heads are held twice: no less
    ("rank_cache", OPENING, GB, "5.369"),
    ("rank_cache", {**LLAMA_70B, "tokens": 131072, "tensor": 16}, GB, "5.369"),
    ("rank_cache", {**LLAMA_70B, "tokens": 131072, "tensor": 1}, GB, "42.95"),
    # 140 GB over 26.8 TB/s and 160 all-reduces of 10 µs; alone there are none
    ("tensor_decode", OPENING, MS, "6.82"),
    (
        "tensor_decode",
        {"parameters": 70e9, "cached_bytes": 0, **HBM, "tensor": 1, "layers": 80, "all_reduce_seconds": 1e-5},
        MS,
        "41.8",
    ),
    # 372 GB over 2.68 GB, whole sequences; none where the weights alone are too much
    ("sequences_that_fit", OPENING, 1, "138"),
    ("sequences_that_fit", {"memory_bytes": 80e9, "parameters": 70e9, "cache_bytes_per_sequence": 1e9}, 1, "0"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_generation_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def test_both_sides_of_a_split_pool_take_the_same_time() -> None:
    for gpus, rollout, training in ((64, 3000.0, 1000.0), (256, 10.0, 90.0), (8, 5.0, 5.0)):
        generating = generation.rollout_gpus(gpus, rollout, training)
        assert rollout / generating == pytest.approx(training / (gpus - generating))


def test_at_the_break_even_batch_compute_takes_as_long_as_the_weights() -> None:
    sequences = generation.decode_break_even_sequences(H100, 3.35e12)
    assert sequences * 2 * 8e9 / H100 == pytest.approx(generation.decode_seconds(8e9, 0, 3.35e12))


def test_the_cache_is_that_of_the_presets_heads() -> None:
    model = PRESETS["llama-3-8b"].model
    head = model.hidden // model.heads
    assert generation.kv_cache_bytes(model.layers, 8, head, 1) == 131072


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_no_rollout_is_trained_on_later_than_the_bound(staleness: int) -> None:
    """Start as many as are admitted at each version and train on them in order: the gap stays within the bound."""
    batch, begun = 4, list[int]()
    for version in range(20):
        begun += [version] * (generation.rollouts_admitted(batch, version, staleness) - len(begun))
        taken = begun[version * batch : (version + 1) * batch]
        assert len(taken) == batch
        assert max(version - start for start in taken) == min(version, staleness)
    assert all(earlier <= later for earlier, later in pairwise(begun))


def test_nobody_waits_where_all_rollouts_are_alike() -> None:
    assert generation.batch_idle_fraction(100, 100) == 0
    assert generation.batch_idle_fraction(101, 100) == 0
