"""Formulas of context parallelism against figures worked out by hand, and against what a run of this lab counts."""

from __future__ import annotations

import pytest

from app.theory import context
from app.theory.lab_runs import run_theory
from labs.spec import SpecError, parse_run_spec
from tests.theory.worked import GB, MB, OPENING, Example, Inputs, worked

# Llama 3 405B: 128 heads of 128, eight of keys and values; 131,072 tokens. 2 × 2 × 131,072 × 1,024 bytes = 536.9 MB
LLAMA: Inputs = {"sequence": 131072, "micro_batch": 1, "key_width": 1024, "ranks": 16}

EXAMPLES: list[Example] = [
    ("ring_attention_bytes", {**LLAMA, "passes": "forward"}, MB, "503.3"),
    ("ring_attention_bytes", OPENING, GB, "1.544"),  # 2 × 15/16 + 1 times 536.9 MB
    ("ring_attention_bytes", {**LLAMA, "ranks": 1}, MB, "0"),
    ("gathered_attention_bytes", {**LLAMA, "passes": "forward"}, MB, "503.3"),
    ("gathered_attention_bytes", OPENING, GB, "1.510"),  # 3 × 15/16 times
    # 2 × 2 × 8,192 × (16,384 + 1,024) bytes held by each of 16; 15/16 of them leave. Eight heads allow 8 ranks.
    ("ulysses_bytes", {**LLAMA, "hidden": 16384, "passes": "forward"}, MB, "534.8"),
    ("ulysses_bytes", OPENING, GB, "1.996"),  # 2 × 7/64 × 9.1268 GB
    ("causal_imbalance", {"ranks": 1}, 1, "1"),
    ("causal_imbalance", OPENING, 1, "1.875"),
    # 2 × 1,024/16,384 × 445 TFLOP/s over 50 GB/s
    (
        "ring_break_even_tokens",
        OPENING,
        1,
        "1113",
    ),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_context_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def _visible(shards: list[int], count: int, size: int) -> int:
    """Pairs of a query and a key it may see, for the queries in these shards of `count` in all."""
    assert all(shard < count for shard in shards)
    return sum(query + 1 for shard in shards for query in range(shard * size, (shard + 1) * size))


def test_the_imbalance_is_that_of_counted_pairs_and_halves_from_both_ends_have_none() -> None:
    ranks, size = 8, 500
    plain = [_visible([rank], ranks, size) for rank in range(ranks)]
    assert max(plain) * ranks / sum(plain) == pytest.approx(context.causal_imbalance(ranks), rel=1e-3)
    paired = [_visible([rank, 2 * ranks - 1 - rank], 2 * ranks, size // 2) for rank in range(ranks)]
    assert len(set(paired)) == 1


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("turns_back", [False, True])
def test_a_ring_played_out_shows_every_rank_all_keys_and_brings_their_gradients_home(
    ranks: int, turns_back: bool
) -> None:
    """Whose keys each rank has at hand, moved on one rank a send; a gradient travels with its keys."""
    sends = context.ring_sends(ranks, turns_back)
    at_hand, met = list(range(ranks)), [{rank} for rank in range(ranks)]

    def pass_on(owners: list[int], step: int) -> list[int]:
        return [owners[(rank - step) % ranks] for rank in range(ranks)]

    for _ in range(sends.forward):
        at_hand = pass_on(at_hand, 1)
        for rank, owner in enumerate(at_hand):
            met[rank].add(owner)
    assert all(len(owners) == ranks for owners in met)

    step = -1 if turns_back else 1
    at_hand = at_hand if turns_back else list(range(ranks))
    gradients, added = list(at_hand), [[owner] for owner in at_hand]  # where each gradient is, and to what it came
    for _ in range(sends.gradients):
        gradients = pass_on(gradients, step)
        added = [added[(rank - step) % ranks] for rank in range(ranks)]
        for rank, ranks_met in enumerate(added):
            ranks_met.append(rank)
    assert gradients == list(range(ranks)), "home"
    assert sends.backward == ranks - 1
    assert sends.training == 3 * (ranks - 1) + (not turns_back and ranks > 1)


def test_a_step_takes_as_long_to_send_as_to_compute_at_the_break_even() -> None:
    hidden, key_width, achieved, link = 8192, 1024, 4e14, 5e10
    tokens = context.ring_break_even_tokens(hidden, key_width, achieved, link)
    assert 4 * tokens**2 * hidden / 2 / achieved == pytest.approx(2 * 2 * tokens * key_width / link)


def test_heads_and_tokens_must_be_shared_evenly() -> None:
    with pytest.raises(SpecError, match="does not divide sequence"):
        context.ring_attention_bytes(1000, 1, 128, 16)
    with pytest.raises(SpecError, match="does not divide key_width"):
        context.ulysses_bytes(4096, 1, 4096, 1000, 16)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_ring_sends_what_a_run_of_this_lab_is_expected_to_send(ranks: int) -> None:
    spec = parse_run_spec(
        {"model": "gpt-mini", "training": {"sequence": 64, "micro_batches": 3}, "parallel": {"context": ranks}}
    )
    width = spec.model.kv_heads * spec.model.hidden // spec.model.heads
    each = context.ring_attention_bytes(64, spec.training.micro_batch, width, ranks, bytes_each=4)
    sent = sum(row.wire_bytes for row in run_theory(spec).transfers if row.group == "context")
    assert sent == 3 * spec.model.layers * each
