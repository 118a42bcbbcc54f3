"""How a framework does it, as data: what it keeps, in which type it reduces, what it overlaps, which kernels it fuses.

The engine reads these records and knows no framework by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from app.theory.planner.attention_kernels import Kernel
from app.theory.planner.fields import Module, PlanTraining
from labs.spec import BUCKET_BYTES


@dataclass(frozen=True)
class Profile:
    """One implementation.

    `dropout` keeps and applies one-byte masks. `fused` element-wise kernels read and write each tensor once; eager ones
    pass over memory for every operation of the formula. `fused_cores`: RMS norms and flash attention of grouped queries
    are one function each, which keeps only what it was given. `selective` is what selective recomputation recomputes.
    `reduce_bytes` is the type gradients are reduced in (None: that of the layout's gradients). `overlaps_gradients`
    reduces during the last backward; without it the reduction follows the last micro-batch. `overlaps_weights` gathers
    weights during forward. `overlaps_tensor` splits tensor-parallel collectives into chunks beside their products;
    `overlaps_tensor_backward` runs those of backward beside weight gradients. `overlaps_sends` sends between stages
    beside compute, always or where chunks are interleaved. `keeps_gathered` keeps whole until backward what sequence
    parallelism gathered in forward, where others gather it again (F20). `all_rails` gathers over nodes through all of a
    node's network cards, as rings do, and not through one a rank. `live_units` are FSDP units gathered at once,
    `keeps_root` keeps the unit outside the layers gathered between forward and backward. `bucket_bytes` is the staging
    memory of gradient reduction, `update_passes` how often the update reads and writes what one fused kernel would once
    a value it needs only once, `loss_bytes` what the loss holds at once per logit, the 16-bit logit included;
    `loss_backward_bytes` what its backward makes of each on top, where that is not in it, before there is any gradient
    of a weight; `divided_loss_bytes` what it holds besides where logits are divided over tensor ranks: loss_parallel's
    steps in fp32, one tensor each. `softmax_statistics` counts a fused attention kernel's two fp32 values per query.
    `merged_bytes` are what merging the attention of each block of a ring with what was there reads and writes,
    (forward, backward) for a value of its output; `sends_repeated_keys` sends keys and values once per query head, and
    sums their gradients in fp32. `attention_kernels` are tried in order: the first that runs on the GPU is used.
    `divides_sends`: without sequence parallelism each tensor rank sends its part of an activation to the next stage,
    and they gather it there (Narayanan et al. 2021, 4.1); PyTorch's stages and Megatron-Core send it whole, from each.
    `ring_turns_back`: backward of ring attention starts where forward ended, which saves a send (F60).
    """

    name: str
    title: str
    source: str
    dropout: bool
    fused: bool
    fused_cores: bool
    selective: Literal["attention", "every-other-matmul"]
    recomputed_attention_booked: int
    reduce_bytes: float | None
    overlaps_gradients: bool
    overlaps_weights: bool
    overlaps_tensor: bool
    overlaps_tensor_backward: bool
    keeps_gathered: bool
    overlaps_sends: Literal["never", "interleaved", "always"]
    all_rails: bool
    live_units: int
    keeps_root: bool
    bucket_bytes: float
    update_passes: float
    loss_bytes: float
    divided_loss_bytes: float
    loss_traffic_bytes: float
    softmax_statistics: bool
    attention_kernels: tuple[Kernel, ...]
    ring_turns_back: bool = False
    loss_backward_bytes: float = 0.0
    merged_bytes: tuple[float, float] = (0.0, 0.0)
    sends_repeated_keys: bool = False
    divides_sends: bool = True


# PyTorch's ring merges blocks in fp32, an operation at a time: forward upcasts (6), subtracts, scales and subtracts (12
# each), joins keys and values (8) and writes halves back (8 every other time), and every other block is half a one.
# Backward adds three gradients (10 each), joins keys with values (8) and their gradients (16), and writes halves back.
_EAGER_MERGE = ((6.0 + 3 * 12.0 + 8.0 / 2) * 0.75 + 8.0, 3 * 10.0 + 8.0 + 16.0 + 3 * 16.0 / 2)

_FSDP2 = Profile(
    name="fsdp2",
    title="PyTorch FSDP2",
    source="PyTorch 2.13 fully_shard; torchtitan's selective recomputation and loss",
    dropout=False,
    fused=False,
    fused_cores=False,
    selective="every-other-matmul",
    recomputed_attention_booked=1,
    reduce_bytes=None,
    overlaps_gradients=True,
    overlaps_weights=True,
    overlaps_tensor=False,
    overlaps_tensor_backward=False,
    keeps_gathered=True,
    overlaps_sends="always",
    all_rails=True,
    live_units=2,
    keeps_root=True,
    bucket_bytes=float(BUCKET_BYTES),
    update_passes=2.9,
    attention_kernels=("flash-2",),
    loss_bytes=14.0,
    divided_loss_bytes=8.0,
    loss_traffic_bytes=40.0,
    softmax_statistics=True,
    merged_bytes=_EAGER_MERGE,
    sends_repeated_keys=True,
    divides_sends=False,
)
# What else trains through FSDP says where it differs.
_COMPOSER = replace(
    _FSDP2,
    name="composer",
    title="Composer with FSDP1 and FlashAttention 1",
    source="MosaicML Composer and LLM Foundry, 2023; Dao 2023 for the kernel's speed: half of its successor's",
    attention_kernels=("flash-1",),
    loss_bytes=4.0,
    divided_loss_bytes=0.0,
    loss_traffic_bytes=6.0,
)
_LABS = replace(
    _FSDP2,
    name="rankzero-labs",
    title="This lab's own runs",
    source="labs/train.py, compared with its measurements in every run",
    fused_cores=True,
    keeps_gathered=False,
    loss_bytes=4.0,
    loss_backward_bytes=8.0,  # fp32 gradients of the log-softmax and of the logits, as dry runs see them
    divided_loss_bytes=0.0,
    merged_bytes=(0.0, 0.0),
    sends_repeated_keys=False,
)
_TORCHTITAN = replace(
    _FSDP2,
    name="torchtitan",
    title="torchtitan",
    source="torchtitan's benchmarks and source, 2024 and 2025: FSDP2 with DTensor's tensor parallelism",
)
_WRITTEN = (
    Profile(
        name="zero-paper",
        title="The papers' arithmetic",
        source="Rajbhandari et al. 2020 (ZeRO); Korthikanti et al. 2022 for activations",
        dropout=True,
        fused=True,
        fused_cores=True,
        selective="attention",
        recomputed_attention_booked=1,
        reduce_bytes=None,
        overlaps_gradients=True,
        overlaps_weights=True,
        overlaps_tensor=False,
        overlaps_tensor_backward=True,
        keeps_gathered=False,
        overlaps_sends="always",
        all_rails=True,
        live_units=1,
        keeps_root=False,
        bucket_bytes=0.0,
        update_passes=1.0,
        attention_kernels=("flash-2",),
        loss_bytes=4.0,
        divided_loss_bytes=0.0,
        loss_traffic_bytes=40.0,
        softmax_statistics=False,
    ),
    Profile(
        name="megatron",
        title="Megatron-LM of 2021",
        source="Narayanan et al. 2021; Korthikanti et al. 2022; Megatron-LM's source",
        dropout=True,
        fused=True,
        fused_cores=True,
        selective="attention",
        recomputed_attention_booked=3,
        reduce_bytes=None,
        overlaps_gradients=False,
        overlaps_weights=False,
        overlaps_tensor=False,
        overlaps_tensor_backward=True,
        keeps_gathered=False,
        overlaps_sends="never",
        all_rails=True,
        live_units=1,
        keeps_root=False,
        bucket_bytes=0.0,
        update_passes=1.8,
        attention_kernels=("flash-2",),
        loss_bytes=10.0,
        divided_loss_bytes=0.0,
        loss_traffic_bytes=40.0,
        softmax_statistics=False,
    ),
    Profile(
        name="megatron-core",
        title="Megatron-Core",
        source="Megatron-LM's README of 2024 and its flags --overlap-grad-reduce, --overlap-param-gather and "
        "--tp-comm-overlap; Transformer Engine's fused kernels",
        dropout=False,
        fused=True,
        fused_cores=True,
        selective="attention",
        recomputed_attention_booked=3,
        reduce_bytes=None,
        overlaps_gradients=True,
        overlaps_weights=True,
        overlaps_tensor=True,
        overlaps_tensor_backward=True,
        keeps_gathered=False,
        overlaps_sends="interleaved",
        all_rails=True,
        live_units=1,
        keeps_root=False,
        bucket_bytes=0.0,
        update_passes=1.8,
        attention_kernels=("cudnn", "flash-2"),
        ring_turns_back=True,
        divides_sends=False,
        loss_bytes=10.0,
        divided_loss_bytes=0.0,
        loss_traffic_bytes=40.0,
        softmax_statistics=True,
    ),
    _FSDP2,
    _COMPOSER,
    Profile(
        name="deepspeed",
        title="DeepSpeed ZeRO",
        source="DeepSpeed's configuration documentation (buckets); Narayanan et al. 2021, table 2 (gathers)",
        dropout=True,
        fused=True,
        fused_cores=True,
        selective="attention",
        recomputed_attention_booked=1,
        reduce_bytes=2.0,
        overlaps_gradients=True,
        overlaps_weights=True,
        overlaps_tensor=False,
        overlaps_tensor_backward=True,
        keeps_gathered=False,
        overlaps_sends="never",
        all_rails=False,
        live_units=2,
        keeps_root=False,
        bucket_bytes=2e9,
        update_passes=1.8,
        attention_kernels=("flash-2",),
        loss_bytes=14.0,
        divided_loss_bytes=0.0,
        loss_traffic_bytes=40.0,
        softmax_statistics=True,
    ),
    _LABS,
    _TORCHTITAN,
)

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in _WRITTEN}


@lru_cache(maxsize=32)
def profile_named(name: str, compiled: bool = False) -> Profile:
    """A profile, with its element-wise operations fused by a compiler where the plan compiles."""
    found = PROFILES[name]
    return replace(found, fused=True, fused_cores=True) if compiled else found


def selected(training: PlanTraining) -> tuple[Module, ...]:
    """The modules that selective recomputation repeats, where the plan names them."""
    return (training.recompute_modules or ()) if training.recompute == "selective" else ()


def gathers_again(profile: Profile, training: PlanTraining) -> bool:
    """Whether backward gathers the inputs of tensor-parallel blocks from shards of the sequence once more (F20).

    Recomputing every other product starts at the shard a rank kept, and so gathers them as well.
    """
    by_matrix = profile.selective == "every-other-matmul" and training.recompute_modules is None
    recomputes = training.recompute == "selective" and by_matrix
    return recomputes or not profile.keeps_gathered
