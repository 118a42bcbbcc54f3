"""What one layer costs on one rank: seconds forward, backward and recomputed, and the bytes it keeps for backward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from app.theory.planner.attention_kernels import attention_seconds
from app.theory.planner.engine.elementwise import (
    activation_bytes,
    backward_bytes,
    cast_bytes,
    forward_bytes,
    norm_bytes,
    score_bytes,
)
from app.theory.planner.engine.profiles import Profile, profile_named
from app.theory.planner.engine.roofline import Device, matmul_seconds, stream_seconds
from app.theory.planner.engine.shapes import Linear, attention_shape, linears, per_rank, repeated
from app.theory.planner.fields import Module
from labs.spec import Model, Precision


@dataclass(frozen=True)
class LayerRequest:
    """One layer on one rank for one micro-batch: `tokens` it computes, each attending to `sequence`. A single expert is
    cut over `expert_tensor` ranks, or all tensor ranks; `modules` are what selective recomputation repeats in place of
    what the profile does."""

    model: Model
    routed: bool
    tokens: int
    sequence: int
    tensor: int
    expert: int
    sequence_parallel: bool
    attention: str
    recompute: str
    bytes_each: float
    profile: str
    compiled: bool = False
    precision: Precision = "bf16-mixed"
    expert_tensor: int | None = None
    modules: tuple[Module, ...] | None = None
    contexts: int = 1

    @property
    def record(self) -> Profile:
        return profile_named(self.profile, self.compiled)

    @property
    def expert_cut(self) -> int:
        return self.expert_tensor or self.tensor

    def cut_of(self, routed: bool) -> int:
        """Over how many ranks a matrix is cut."""
        return self.expert_cut if routed else self.tensor

    def rows_of(self, routed: bool) -> float:
        """Tokens that pass a matrix on this rank: an expert's come from the ranks it is cut over alone."""
        return self.tokens * self.cut_of(routed) / self.tensor

    @property
    def dropout(self) -> bool:
        """Models with RMS norms are trained without dropout, whatever the framework could do."""
        return self.record.dropout and self.model.norm == "layer"


@dataclass(frozen=True)
class LayerSeconds:
    """Compute of one layer and micro-batch. `recompute` is forward work done again during backward."""

    forward: float
    backward: float
    recompute: float
    weight_gradients: float
    attention: float
    products: float  # forward; backward's take twice as long


@lru_cache(maxsize=8192)
def layer_seconds(request: LayerRequest, device: Device) -> LayerSeconds:
    """Forward, backward and recomputation of one layer in seconds, communication left out."""
    products = [_linear_seconds(request, device, each) for each in linears(request.model, request.routed)]
    forward, inputs, weights = (sum(each[part] for each in products) for part in range(3))
    core, core_backward = _attention(request, device)
    stream = stream_seconds(device, forward_bytes(request))
    stream_back = stream_seconds(device, backward_bytes(request))
    cast, cast_back = (stream_seconds(device, size) for size in cast_bytes(request))
    stream, stream_back = stream + cast, stream_back + cast_back
    unfused = core if request.attention == "full" else 0.0  # a fused kernel's output is kept
    again = {
        "none": 0.0,
        "full": forward + core + stream,
        "selective": core if request.record.selective == "attention" else forward / 2 + stream + unfused,
    }[request.recompute]
    if request.recompute == "selective" and request.record.selective == "attention" and request.attention == "flash":
        again = 0.0  # the fused kernel keeps no scores: nothing is left to recompute
    if request.recompute == "selective" and request.modules is not None:
        again = _modules_seconds(request, device, request.modules, core)
    return LayerSeconds(
        forward + core + stream,
        inputs + weights + core_backward + stream_back,
        again,
        weights,
        core + core_backward,
        forward,
    )


def _modules_seconds(request: LayerRequest, device: Device, modules: tuple[Module, ...], core: float) -> float:
    """Forward of what is recomputed, module by module (Megatron-Core's --recompute-modules)."""
    found = core if "core_attn" in modules else 0.0
    if "layernorm" in modules:
        found += stream_seconds(device, norm_bytes(request))
    for each in linears(request.model, request.routed):
        if repeated(each, modules):
            found += _linear_seconds(request, device, each)[0]
        if each.ends_mlp and (repeated(each, modules) or (each.routed and "moe_act" in modules)):
            width = each.into / request.tensor * (request.model.active_experts if each.routed else 1)
            found += stream_seconds(device, activation_bytes(request, width))
    return found


def _linear_seconds(request: LayerRequest, device: Device, linear: Linear) -> tuple[float, float, float]:
    """(forward, gradient of the input, gradient of the weight) of one matrix of the layer."""
    model = request.model
    into, out = per_rank(linear, request.cut_of(linear.routed))
    rows, count = float(request.tokens), 1.0
    if linear.routed:
        count = max(1.0, model.experts / request.expert)
        # balanced: every expert gets an equal share
        rows = request.rows_of(routed=True) * model.active_experts / count
    size = request.bytes_each
    return (
        matmul_seconds(device, rows, out, into, size, count),
        matmul_seconds(device, rows, into, out, size, count),
        matmul_seconds(device, into, out, rows, size, count),
    )


def _attention(request: LayerRequest, device: Device) -> tuple[float, float]:
    """(forward, backward) of scores, softmax and values. A fused kernel skips what a causal mask hides, and computes
    the scores again in backward: five products for the two of forward (Dao et al. 2022, section 3.1)."""
    shape = attention_shape(request.model, request.tensor)
    pairs = float(request.tokens) * request.sequence * shape.heads
    if request.attention == "flash":
        found = attention_seconds(device.attention, pairs / 2, request.sequence, shape.score_dim, shape.value_dim)
        merged = (request.contexts - 1) * request.tokens * shape.output
        ahead, back = (stream_seconds(device, merged * each) for each in request.record.merged_bytes)
        return found[0] + ahead, found[1] + back
    heads = request.tokens / request.sequence * shape.heads
    length, size = float(request.sequence), request.bytes_each
    scores = matmul_seconds(device, length, length, shape.score_dim, size, heads)
    values = matmul_seconds(device, length, shape.value_dim, length, size, heads)
    probabilities = matmul_seconds(device, length, length, shape.value_dim, size, heads)
    queries = matmul_seconds(device, length, shape.score_dim, length, size, heads)
    ahead, back = score_bytes(request)
    return (
        scores + values + stream_seconds(device, pairs * ahead),
        probabilities + values + 2 * queries + stream_seconds(device, pairs * back),
    )
