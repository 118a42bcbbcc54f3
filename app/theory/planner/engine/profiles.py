"""How a framework does it, as data: what it keeps, in which type it reduces, what it overlaps, which kernels it fuses.

The engine reads these records and knows no framework by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

MIB = float(2**20)


@dataclass(frozen=True)
class Profile:
    """One implementation.

    `dropout` keeps and applies one-byte masks. `fused` element-wise kernels read and write each tensor once; eager ones
    pass over memory for every operation of the formula. `fused_cores`: RMS norms and flash attention of grouped queries
    are one function each, which keeps only what it was given. `selective` is what selective recomputation recomputes.
    `reduce_bytes` is the type gradients are reduced in (None: that of the layout's gradients). `overlaps_gradients`
    reduces during the last backward; without it the reduction follows the last micro-batch. `overlaps_tensor_backward`
    runs tensor-parallel collectives of backward beside weight gradients, `overlaps_sends` pipeline messages beside
    compute. `keeps_gathered` keeps whole until backward what sequence parallelism gathered in forward, where others
    gather it again (F20). `all_rails` gathers over nodes through all of a node's network cards, as rings do, and not
    through one a rank. `live_units` are FSDP units gathered at once, `keeps_root` keeps the unit outside the layers
    gathered between forward and backward. `bucket_bytes` is the staging memory of gradient reduction, `update_passes`
    how often the update reads and writes what one fused kernel would once a value it needs only once, `loss_bytes` what
    the loss holds at once per logit, the 16-bit logit included. `softmax_statistics` counts a fused attention kernel's
    two fp32 values per query.
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
    overlaps_tensor_backward: bool
    keeps_gathered: bool
    overlaps_sends: bool
    all_rails: bool
    live_units: int
    keeps_root: bool
    bucket_bytes: float
    update_passes: float
    loss_bytes: float
    loss_traffic_bytes: float
    softmax_statistics: bool
    attention_slowdown: float


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
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
            overlaps_tensor_backward=True,
            keeps_gathered=False,
            overlaps_sends=True,
            all_rails=True,
            live_units=1,
            keeps_root=False,
            bucket_bytes=0.0,
            update_passes=1.0,
            attention_slowdown=1.0,
            loss_bytes=4.0,
            loss_traffic_bytes=40.0,
            softmax_statistics=False,
        ),
        Profile(
            name="megatron",
            title="Megatron-LM",
            source="Narayanan et al. 2021; Korthikanti et al. 2022; Megatron-LM's source",
            dropout=True,
            fused=True,
            fused_cores=True,
            selective="attention",
            recomputed_attention_booked=3,
            reduce_bytes=None,
            overlaps_gradients=False,
            overlaps_tensor_backward=True,
            keeps_gathered=False,
            overlaps_sends=False,
            all_rails=True,
            live_units=1,
            keeps_root=False,
            bucket_bytes=0.0,
            update_passes=1.8,
            attention_slowdown=1.0,
            loss_bytes=10.0,
            loss_traffic_bytes=40.0,
            softmax_statistics=False,
        ),
        Profile(
            name="fsdp2",
            title="PyTorch FSDP2",
            source="PyTorch 2.13 fully_shard; torchtitan's selective recomputation and loss",
            dropout=False,
            fused=False,
            fused_cores=False,
            selective="every-other-matmul",
            recomputed_attention_booked=1,
            reduce_bytes=4.0,
            overlaps_gradients=True,
            overlaps_tensor_backward=False,
            keeps_gathered=True,
            overlaps_sends=True,
            all_rails=True,
            live_units=2,
            keeps_root=True,
            bucket_bytes=25 * MIB,
            update_passes=2.9,
            attention_slowdown=1.0,
            loss_bytes=14.0,
            loss_traffic_bytes=40.0,
            softmax_statistics=True,
        ),
        Profile(
            name="composer",
            title="Composer with FSDP1 and FlashAttention 1",
            source="MosaicML Composer and LLM Foundry, 2023; Dao 2023 for the kernel's speed: half of its successor's",
            dropout=False,
            fused=False,
            fused_cores=False,
            selective="every-other-matmul",
            recomputed_attention_booked=1,
            reduce_bytes=4.0,
            overlaps_gradients=True,
            overlaps_tensor_backward=False,
            keeps_gathered=True,
            overlaps_sends=True,
            all_rails=True,
            live_units=2,
            keeps_root=True,
            bucket_bytes=25 * MIB,
            update_passes=2.9,
            attention_slowdown=2.0,
            loss_bytes=4.0,
            loss_traffic_bytes=6.0,
            softmax_statistics=True,
        ),
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
            overlaps_tensor_backward=True,
            keeps_gathered=False,
            overlaps_sends=False,
            all_rails=False,
            live_units=2,
            keeps_root=False,
            bucket_bytes=2e9,
            update_passes=1.8,
            attention_slowdown=1.0,
            loss_bytes=14.0,
            loss_traffic_bytes=40.0,
            softmax_statistics=True,
        ),
        Profile(
            name="rankzero-labs",
            title="This lab's own runs",
            source="labs/train.py, compared with its measurements in every run",
            dropout=False,
            fused=False,
            fused_cores=True,
            selective="every-other-matmul",
            recomputed_attention_booked=1,
            reduce_bytes=4.0,
            overlaps_gradients=True,
            overlaps_tensor_backward=False,
            keeps_gathered=False,
            overlaps_sends=True,
            all_rails=True,
            live_units=2,
            keeps_root=True,
            bucket_bytes=25 * MIB,
            update_passes=2.9,
            attention_slowdown=1.0,
            loss_bytes=4.0,
            loss_traffic_bytes=40.0,
            softmax_statistics=True,
        ),
    )
}


def gathers_again(profile: Profile, recompute: str) -> bool:
    """Whether backward gathers the inputs of tensor-parallel blocks from stretches of the sequence once more (F20).

    Recomputing every other product starts at the stretch a rank kept, and so gathers them as well.
    """
    recomputes = recompute == "selective" and profile.selective == "every-other-matmul"
    return recomputes or not profile.keeps_gathered
