"""What a plan says beyond a run of ours: how much is overlapped, by which kernels, on which stages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.theory.mesh import AXES, Axis
from app.theory.planner.attention_kernels import AttentionKernel
from labs.spec import Parallel, Strict, Training

MfuDefinition = Literal["6n", "attention", "causal-attention"]
ContextExchange = Literal["ring", "all-gather"]
# What selective recomputation repeats, by the names of Megatron-Core's --recompute-modules.
Module = Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]


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
    """`Training` with the global batch of a plan, in sequences, and how its kernels are made.

    `recompute_modules` says what selective recomputation repeats, in place of what the profile does.
    `predicted_tokens` more than the next one are trained for, each by a layer and a pass through the head of its own
    (DeepSeek-AI 2024, section 2.2: multi-token prediction).
    """

    global_batch: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    attention_kernel: AttentionKernel = "auto"
    compile: bool = False
    recompute_modules: tuple[Module, ...] | None = None
    predicted_tokens: Annotated[int, Field(ge=0, le=8)] = 0


class PlanParallel(Parallel):
    """`Parallel` with what a plan may choose besides."""

    overlap: Overlap = Overlap()
    # Whether ZeRO-3 lets go of gathered weights between forward and backward; left out, unless there is a pipeline.
    reshard_after_forward: bool | None = None
    # At most so many nodes hold a token's experts, and each gets it once (DeepSeek-AI 2024, section 3.2.2).
    expert_nodes: Annotated[int, Field(ge=1, le=1_000)] | None = None
    # Ranks a single expert is cut over; left out, as many of the tensor ranks as the expert ranks leave, so that
    # experts are dealt over data × tensor ranks of their own (Liu et al. 2025, MoE Parallel Folding, section 3).
    expert_tensor: Annotated[int, Field(ge=1, le=100_000)] | None = None
    # Layers of every chunk in order, pipeline × virtual_stages of them; the first and the last may hold none.
    stages: Annotated[tuple[Annotated[int, Field(ge=0, le=10_000)], ...], Field(max_length=100_000)] | None = None
    # How context ranks get keys and values: passed around a ring behind attention (Liu et al. 2023), or gathered by
    # all before it (Llama team 2024, section 3.3.2).
    context_exchange: ContextExchange = "ring"
    # Which axis' neighbours have neighbouring ranks, and so share a node, to the axis whose neighbours lie farthest
    # apart; left out, as everybody does it: tensor, context, data, pipeline (F26).
    order: tuple[Axis, Axis, Axis, Axis] | None = None

    @property
    def has_own_order(self) -> bool:
        """Whether the axes are placed otherwise than everybody does it."""
        return self.order not in (None, AXES)

    @property
    def expert_cut(self) -> int:
        """Ranks a single expert is cut over, chosen if left open."""
        if self.expert_tensor is not None:
            return self.expert_tensor
        if self.expert == 1 or self.data % self.expert == 0:
            return self.tensor
        return next(cut for cut in range(self.tensor, 0, -1) if self._folds(cut))

    def _folds(self, cut: int) -> bool:
        return (self.tensor % cut == 0 and (self.data * self.tensor) % (cut * self.expert) == 0) or cut == 1
