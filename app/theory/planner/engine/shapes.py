"""One decoder layer as its matrix products, dealt over tensor- and expert-parallel ranks.

A matrix is cut along its outputs (column-parallel), along its inputs (row-parallel) or kept whole on every tensor rank
(Shoeybi et al. 2019, section 3). Widths are values per token.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Literal

from app.theory.planner.fields import Module
from app.theory.transformer import expert_width, head_size
from labs.spec import Model

Cut = Literal["out", "in", "whole"]
UP_PROJECTIONS = ("query up", "key-value up")  # of latent attention


@dataclass(frozen=True)
class Linear:
    """A weight of [out, into]; `routed` where a token meets only the experts it is sent to.

    `heads` are those of keys and values, which tensor ranks beyond their number repeat. `ends_mlp` marks what an MLP's
    activation goes into.
    """

    name: str
    into: int
    out: int
    cut: Cut
    routed: bool = False
    heads: int | None = None
    ends_mlp: bool = False


@dataclass(frozen=True)
class AttentionShape:
    """Widths of attention on one tensor rank: query and key of `heads` × `score_dim`, value of `heads` × `value_dim`;
    keys and values are stored for `key_heads` heads."""

    heads: int
    key_heads: int
    score_dim: int
    value_dim: int

    @property
    def query(self) -> int:
        return self.heads * self.score_dim

    @property
    def key(self) -> int:
        return self.key_heads * self.score_dim

    @property
    def value(self) -> int:
        return self.key_heads * self.value_dim

    @property
    def output(self) -> int:
        return self.heads * self.value_dim


@lru_cache(maxsize=4096)
def linears(model: Model, routed: bool) -> tuple[Linear, ...]:
    """The matrix products of a layer in the order of its forward pass; `routed` for a layer with experts."""
    return (*_attention_linears(model), *_mlp_linears(model, routed))


def _attention_linears(model: Model) -> tuple[Linear, ...]:
    h, heads, latent = model.hidden, model.heads, model.latent_attention
    if latent is None:
        wide, narrow = heads * head_size(model), model.kv_heads * head_size(model)
        return (
            Linear("query", h, wide, "out"),
            Linear("key", h, narrow, "out", heads=model.kv_heads),
            Linear("value", h, narrow, "out", heads=model.kv_heads),
            Linear("attention output", wide, h, "in"),
        )
    queries = heads * (latent.nope_dim + latent.rope_dim)
    down: tuple[Linear, ...] = (Linear("query", h, queries, "out"),)
    if latent.query_rank is not None:
        rank = latent.query_rank
        down = (Linear("query down", h, rank, "whole"), Linear("query up", rank, queries, "out"))
    return (
        *down,
        Linear("key-value down", h, latent.key_value_rank + latent.rope_dim, "whole"),
        Linear("key-value up", latent.key_value_rank, heads * (latent.nope_dim + latent.value_dim), "out"),
        Linear("attention output", heads * latent.value_dim, h, "in"),
    )


def _mlp_linears(model: Model, routed: bool) -> tuple[Linear, ...]:
    h = model.hidden
    if not routed:
        return _mlp("MLP", model, model.ffn_hidden, False)
    shared = _mlp("shared experts", model, model.shared_experts * expert_width(model), False)
    router = Linear("router", h, model.experts, "whole")
    return (router, *(shared if model.shared_experts else ()), *_mlp("expert", model, expert_width(model), True))


def repeated(linear: Linear, modules: tuple[Module, ...]) -> bool:
    """Whether selective recomputation of `modules` computes a matrix product again."""
    if linear.routed or linear.name == "router":
        return "moe" in modules
    if linear.name.startswith("shared experts"):
        return "moe" in modules or "shared_experts" in modules
    if linear.name.startswith("MLP"):
        return "mlp" in modules
    return linear.name in UP_PROJECTIONS and "mla_up_proj" in modules


def _mlp(name: str, model: Model, width: int, routed: bool) -> tuple[Linear, ...]:
    up = [Linear(f"{name} up", model.hidden, width, "out", routed)]
    if model.gated_mlp:
        up.insert(0, Linear(f"{name} gate", model.hidden, width, "out", routed))
    return (*up, Linear(f"{name} down", width, model.hidden, "in", routed, ends_mlp=True))


@lru_cache(maxsize=4096)
def attention_shape(model: Model, tensor: int) -> AttentionShape:
    """Attention on one of `tensor` ranks. Key and value heads fewer than ranks are repeated on several of them."""
    latent, heads = model.latent_attention, model.heads // tensor
    if latent is not None:
        return AttentionShape(heads, heads, latent.nope_dim + latent.rope_dim, latent.value_dim)
    size = head_size(model)
    return AttentionShape(heads, ceil(model.kv_heads / tensor), size, size)


def per_rank(linear: Linear, tensor: int) -> tuple[float, float]:
    """(into, out) of the part of `linear` on one of `tensor` ranks."""
    into = linear.into / tensor if linear.cut == "in" else float(linear.into)
    out = linear.out / tensor if linear.cut == "out" else float(linear.out)
    if linear.heads is not None:
        out = linear.out / linear.heads * ceil(linear.heads / tensor)
    return into, out


@dataclass(frozen=True)
class ForwardFlops:
    """FLOPs of one token's forward pass: the matrices of layers, attention's own products, and the head."""

    matrices: float
    attention: float
    head: float

    @property
    def total(self) -> float:
        return self.matrices + self.attention + self.head


@lru_cache(maxsize=4096)
def layer_flops(model: Model, routed: bool, sequence: int) -> ForwardFlops:
    """FLOPs of one token's forward pass through one layer of its kind.

    A multiply-add is two FLOPs; a token passes only the experts it is sent to; attention is counted over the whole
    sequence, without the half a causal mask skips (Korthikanti et al. 2022, appendix A; PaLM counts the same).
    """
    shape = attention_shape(model, 1)
    matrices = sum(
        2.0 * each.into * each.out * (model.active_experts if each.routed else 1) for each in linears(model, routed)
    )
    return ForwardFlops(matrices, 2.0 * sequence * shape.heads * (shape.score_dim + shape.value_dim), 0.0)


@lru_cache(maxsize=4096)
def forward_flops(model: Model, sequence: int) -> ForwardFlops:
    """FLOPs of one token's forward pass through the whole model."""
    kinds = [(layers, layer_flops(model, routed, sequence)) for routed, layers in layer_kinds(model)]
    return ForwardFlops(
        sum(layers * each.matrices for layers, each in kinds),
        sum(layers * each.attention for layers, each in kinds),
        head_flops(model),
    )


def head_flops(model: Model) -> float:
    """FLOPs of one token's logits."""
    return 2.0 * model.hidden * model.vocab


def layer_kinds(model: Model) -> tuple[tuple[bool, int], ...]:
    """(routed, how many layers of that kind), for the kinds there are."""
    routed = model.layers - model.dense_layers if model.experts > 1 else 0
    return tuple(kind for kind in ((False, model.layers - routed), (True, routed)) if kind[1])
