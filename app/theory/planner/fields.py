"""What a plan says beyond a run of ours: how much is overlapped, by which kernels, on which stages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.theory.planner.attention_kernels import AttentionKernel
from labs.spec import Parallel, Strict, Training

MfuDefinition = Literal["6n", "attention", "causal-attention"]


class Overlap(Strict):
    """What runs beside compute; what is left out is as the profile does it.

    `data`: gradients behind backward. `weights`: updated weights, or ZeRO-3's gathered ones, behind forward. `tensor`:
    collectives in chunks beside their products. `pipeline`: sends behind compute. `expert`: tokens on their way to
    experts beside another micro-batch's compute.
    """

    data: bool | None = None
    weights: bool | None = None
    tensor: bool | None = None
    pipeline: bool | None = None
    expert: bool | None = None


class PlanTraining(Training):
    """`Training` with the global batch of a plan, in sequences, and how its kernels are made."""

    global_batch: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    attention_kernel: AttentionKernel = "auto"
    compile: bool = False


class PlanParallel(Parallel):
    """`Parallel` with what a plan may choose besides."""

    overlap: Overlap = Overlap()
    # Whether ZeRO-3 lets go of gathered weights between forward and backward; left out, unless there is a pipeline.
    reshard_after_forward: bool | None = None
    # At most so many nodes hold a token's experts, and each gets it once (DeepSeek-AI 2024, section 3.2.2).
    expert_nodes: Annotated[int, Field(ge=1, le=1_000)] | None = None
