"""Context parallelism: a sequence over several ranks, and what its attention moves (F60).

Bytes are what one rank sends for one layer and micro-batch, forward or in training. g is the width of keys (heads of
keys and values times their size), which grouped queries make smaller than the hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.theory.checks import check_divides
from app.theory.collectives import all_to_all_bytes, half_ring_bytes

CONTEXT_PASSES = ("forward", "training")


@dataclass(frozen=True)
class RingSends:
    """How often a rank sends keys and values of its size, for one layer and micro-batch."""

    forward: int
    backward: int  # the keys and values again
    gradients: int  # theirs

    @property
    def training(self) -> int:
        return self.forward + self.backward + self.gradients


def ring_sends(ranks: int, turns_back: bool = False) -> RingSends:
    """F60: what ring attention sends. Keys and values see all c ranks in c−1 sends, forward and again in backward.

    Their gradients start at home and are added to at every rank, so they need c sends to be home again. A ring that
    `turns_back` starts backward where forward ended, and goes the other way: they end at home after c−1. Sources: Liu
    et al. 2023 (Ring Attention), section 3; PyTorch's context_parallel sends c times, as this lab does, and
    Transformer Engine, which Megatron-Core calls, turns back.
    """
    once = ranks - 1
    return RingSends(once, once, once if turns_back or ranks == 1 else ranks)


def _pair_bytes(sequence: int, micro_batch: int, key_width: int, ranks: int, bytes_each: float) -> float:
    """Keys and values of the whole sequence. Raises SpecError where `ranks` does not divide it."""
    check_divides("ranks", ranks, "sequence", sequence)
    return 2 * bytes_each * micro_batch * sequence * key_width


def ring_attention_bytes(
    sequence: int,
    micro_batch: int,
    key_width: int,
    ranks: int,
    passes: str = "training",
    bytes_each: float = 2.0,
) -> float:
    """F60: keys and values passed round a ring, (c−1)/c of both; in training round again, and their gradients home.

    Those travel with them and one step further: (c−1)/c + 1 of both. Raises SpecError where `ranks` does not divide the
    sequence. Source: Liu et al. 2023 (Ring Attention), section 3.
    """
    sends = ring_sends(ranks)
    count = sends.forward if passes == "forward" else sends.training
    return count * _pair_bytes(sequence, micro_batch, key_width, ranks, bytes_each) / ranks


def gathered_attention_bytes(
    sequence: int,
    micro_batch: int,
    key_width: int,
    ranks: int,
    passes: str = "training",
    bytes_each: float = 2.0,
) -> float:
    """F60: an all-gather of keys and values, (c−1)/c of both; in training gathered again, and a reduce-scatter back.

    Raises SpecError where `ranks` does not divide the sequence. Source: Llama team 2024 (The Llama 3 Herd of Models),
    section 3.3.2.
    """
    pairs = _pair_bytes(sequence, micro_batch, key_width, ranks, bytes_each)
    return (1 if passes == "forward" else 3) * half_ring_bytes(pairs, ranks)


def ulysses_bytes(
    sequence: int,
    micro_batch: int,
    hidden: int,
    key_width: int,
    ranks: int,
    passes: str = "training",
    bytes_each: float = 2.0,
) -> float:
    """F60: all-to-alls from a shard of the sequence to whole heads and back: queries, keys, values and the output.

    A rank holds a c-th of each and keeps a c-th of that: (c−1)/c² of b·s·(2h + 2g). Backward sends the gradients of the
    same four. Raises SpecError where `ranks` does not divide the sequence, the hidden size or the keys. Source: Jacobs
    et al. 2023 (DeepSpeed-Ulysses), section 3.
    """
    check_divides("ranks", ranks, "sequence", sequence)
    check_divides("ranks", ranks, "hidden", hidden)
    check_divides("ranks", ranks, "key_width", key_width)
    held = bytes_each * micro_batch * sequence * (2 * hidden + 2 * key_width) / ranks
    return (1 if passes == "forward" else 2) * all_to_all_bytes(held, ranks)


def causal_imbalance(ranks: int) -> float:
    """F60: what the last of c equal shards computes over the mean under a causal mask, (2c−1)/c.

    By hand: shard i sees i full ones before it and half of itself, so 2i + 1 halves; the last has 2c − 1, and their
    mean is c. Two halves of a shard each, the i-th and the i-th from the end, give every rank the mean.
    """
    return (2 * ranks - 1) / ranks


def ring_break_even_tokens(
    hidden: int, key_width: int, achieved_flops_per_second: float, bytes_per_second: float
) -> float:
    """F60: tokens a rank from which a step of the ring hides its send, forward, causal and balanced: 2g·ηF/(h·B).

    By hand: n tokens of queries meet n of keys in 4·n²·h FLOPs, half of them under the mask, while 2·n·g values of 2
    bytes move on: 2n²h/(ηF) ≥ 4ng/B. Source: Liu et al. 2023 (Ring Attention), section 3, there without a mask.
    """
    return 2 * key_width * achieved_flops_per_second / (hidden * bytes_per_second)
