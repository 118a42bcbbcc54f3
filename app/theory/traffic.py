"""What each parallelism moves per micro-batch, and how much of it compute can hide. Bytes are per rank unless said."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from app.theory.checks import check_at_most, check_divides
from app.theory.collectives import all_to_all_bytes, half_ring_bytes, ring_all_reduce_bytes
from labs.spec import SpecError, Violation

# What a layer is computed for: its all-reduces of b·s·h values, and its matmuls counted in forwards.
_PASSES: Mapping[str, tuple[int, int]] = {
    "forward": (2, 1),  # behind attention and behind the MLP
    "training": (4, 3),  # backward has two more, and twice the FLOPs
    "training-full-recompute": (6, 4),  # and the forward once again
}
PASSES = tuple(_PASSES)
# Where backward finds the whole input of a block that forward gathered from shards of the sequence.
GATHERED_INPUTS = ("gathers-again", "kept")


def all_reduces_per_layer(passes: str) -> int:
    """F19: all-reduces of tensor parallelism in one layer. Source: Shoeybi et al. 2019 (Megatron-LM), section 3."""
    return _PASSES[passes][0]


def sequence_parallel_halves(passes: str, backward: str) -> int:
    """F20: all-gathers and reduce-scatters of a layer. Gathering again adds one for each of backward's two blocks."""
    again = 2 if passes != "forward" and backward == "gathers-again" else 0
    return 2 * all_reduces_per_layer(passes) + again


def tensor_parallel_share_factor(passes: str) -> Fraction:
    """F56: what (t−1)ηF/(hB) is multiplied by, c/(6f) for c all-reduces and f forwards of compute: 2/9 in training."""
    sends, forwards = _PASSES[passes]
    return Fraction(sends, 6 * forwards)


def tensor_parallel_bytes(
    sequence: int,
    micro_batch: int,
    hidden: int,
    tensor: int,
    layers: int = 1,
    passes: str = "training",
    bytes_each: float = 2.0,
) -> float:
    """F19: bytes each tensor rank sends for one micro-batch, 2(t−1)/t·w·bsh for each all-reduce.

    Raises SpecError where `tensor` does not divide the hidden size.
    Source: Shoeybi et al. 2019 (Megatron-LM), section 3: two all-reduces forward, two backward.
    """
    check_divides("tensor", tensor, "hidden", hidden)
    size = bytes_each * micro_batch * sequence * hidden
    return layers * all_reduces_per_layer(passes) * ring_all_reduce_bytes(size, tensor)


def tensor_parallel_seconds(
    sequence: int,
    micro_batch: int,
    hidden: int,
    tensor: int,
    bytes_per_second: float,
    layers: int = 1,
    passes: str = "training",
    latency_seconds: float = 0.0,
) -> float:
    """F19: the time of those all-reduces in bf16, each a ring: they block, so compute waits for all of it."""
    size = tensor_parallel_bytes(sequence, micro_batch, hidden, tensor, layers, passes)
    hops = layers * all_reduces_per_layer(passes) * 2 * (tensor - 1)
    return hops * latency_seconds + size / bytes_per_second


def sequence_parallel_bytes(
    sequence: int,
    micro_batch: int,
    hidden: int,
    tensor: int,
    layers: int = 1,
    passes: str = "training",
    bytes_each: float = 2.0,
    backward: str = "gathers-again",
) -> float:
    """F20: the same with sequence parallelism, an all-gather and a reduce-scatter for every all-reduce.

    Forward these are F19's bytes. `backward` gathers the inputs of both blocks once more, unless it finds them `kept`
    whole since forward: ten halves of an all-reduce in training instead of eight, 1.25 times the bytes. Raises
    SpecError where `tensor` does not divide the hidden size or the sequence. Source: Korthikanti et al. 2022, section
    4.2.2.
    """
    check_divides("tensor", tensor, "hidden", hidden)
    check_divides("tensor", tensor, "sequence", sequence)
    size = bytes_each * micro_batch * sequence * hidden
    return layers * sequence_parallel_halves(passes, backward) * half_ring_bytes(size, tensor)


def pipeline_boundary_bytes(sequence: int, micro_batch: int, hidden: int, bytes_each: float = 2.0) -> float:
    """F21: bytes of one micro-batch over one stage boundary one way, w·bsh: activations, or their gradients back."""
    return bytes_each * micro_batch * sequence * hidden


def pipeline_step_bytes(
    sequence: int,
    micro_batch: int,
    hidden: int,
    stages: int,
    micro_batches: int,
    chunks: int = 1,
    bytes_each: float = 2.0,
) -> float:
    """F21: bytes over all boundaries in a step, 2(pv−1)·m·w·bsh, both ways; `chunks` v per device interleave.

    Interleaving also crosses from the last device back to the first, v−1 times. Raises SpecError where one stage is
    to be interleaved. Source: Narayanan et al. 2021 (Megatron-LM), section 2.2.
    """
    if stages == 1 and chunks > 1:
        raise SpecError([Violation("chunks", chunks, "One stage has nothing to interleave with.", "1")])
    boundary = pipeline_boundary_bytes(sequence, micro_batch, hidden, bytes_each)
    return 2 * (stages * chunks - 1) * micro_batches * boundary


def moe_all_to_all_bytes(
    tokens: int, hidden: int, experts_per_token: int, ranks: int, transfers: int = 4, bytes_each: float = 2.0
) -> float:
    """F14: bytes each rank sends in a mixture-of-experts layer of balanced experts, (n−1)/n·T·k·h·w a transfer.

    Dispatch and combine, forward and backward, are four transfers. Source: Lepikhin et al. 2021 (GShard), section 3.
    """
    return transfers * all_to_all_bytes(bytes_each * tokens * experts_per_token * hidden, ranks)


def exposed_seconds(communication_seconds: float, overlappable_seconds: float, tail_seconds: float = 0.0) -> float:
    """F51: communication compute does not hide, max(0, T_comm − T_overlap) + tail.

    The tail is the part that starts when compute has ended, as DDP's last bucket does. Raises SpecError where it is
    longer than all communication.
    """
    check_at_most("tail_seconds", tail_seconds, "communication_seconds", communication_seconds)
    return max(0.0, communication_seconds - overlappable_seconds) + tail_seconds


def step_seconds(
    compute_seconds: float, communication_seconds: float, overlappable_seconds: float, tail_seconds: float = 0.0
) -> float:
    """F51: compute and what is exposed. Raises SpecError where more compute is to overlap than there is.

    Source: Li et al. 2020 (PyTorch DDP), section 3.2.3, for what overlaps.
    """
    check_at_most("overlappable_seconds", overlappable_seconds, "compute_seconds", compute_seconds)
    return compute_seconds + exposed_seconds(communication_seconds, overlappable_seconds, tail_seconds)


def communication_share(
    communication_seconds: float, compute_seconds: float, accumulation: int = 1, of: str = "step"
) -> float:
    """F51: communication without any overlap as a share of the `step` or of its `compute`, A micro-steps long."""
    compute = accumulation * compute_seconds
    whole = compute + communication_seconds if of == "step" else compute
    return communication_seconds / whole


def fsdp_break_even_tokens(ranks: int, achieved_flops_per_second: float, bytes_per_second: float) -> float:
    """F56: tokens per GPU and micro-step from which FSDP's three transfers of 2N bytes hide under 6N FLOPs per token.

    T* = ηF·(K−1)/(K·B): the model's size cancels.
    """
    return achieved_flops_per_second * (ranks - 1) / (ranks * bytes_per_second)


def ddp_break_even_tokens(ranks: int, achieved_flops_per_second: float, bytes_per_second: float) -> float:
    """F56: the same for DDP's two transfers, tokens per GPU and optimizer step: ⅔ of FSDP's."""
    return 2 / 3 * fsdp_break_even_tokens(ranks, achieved_flops_per_second, bytes_per_second)


def tensor_parallel_share(
    hidden: int, tensor: int, achieved_flops_per_second: float, bytes_per_second: float, passes: str = "training"
) -> float:
    """F56: time of a layer's tensor-parallel all-reduces over that of its matmuls, (2/9)(t−1)ηF/(hB) in training.

    By hand: c all-reduces of 2(t−1)/t·2bsh bytes against f forwards of 24bsh²/t FLOPs are c/(6f)·(t−1)ηF/(hB); batch
    and sequence cancel. Raises SpecError where `tensor` does not divide the hidden size.
    """
    check_divides("tensor", tensor, "hidden", hidden)
    factor = float(tensor_parallel_share_factor(passes))
    return factor * (tensor - 1) * achieved_flops_per_second / (hidden * bytes_per_second)
