"""Bytes that element-wise operations of a layer read and write, counted operation by operation.

Counts are in passes: one pass reads or writes a whole tensor once. A fused kernel passes over each tensor it needs
once; an eager one passes for every operation of the formula, in fp32 where the formula is computed in fp32.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.shapes import attention_shape, linears, per_rank
from labs.spec import Model

if TYPE_CHECKING:
    from app.theory.planner.engine.layer import LayerRequest

# Passes over a tensor in the compute type: (forward, backward).
_NORM = (2.0, 3.0)
_EAGER_RMS_NORM = (20.0, 48.0)  # upcast, square, mean, scale, weight, downcast; each again for its gradient
_EAGER_RMS_NORM_FP32 = (7.0, 18.0)  # nothing to cast
_RESIDUAL = (3.0, 3.0)  # read both, write one; backward adds the two gradients
_DROPOUT = (0.0, 2.0)  # fused with the residual forward
_ACTIVATION = (2.0, 3.0)  # GELU over the MLP's width
_GATE = (3.0, 5.0)  # SiLU and product in one kernel
_EAGER_GATE = (5.0, 9.0)
_ROTARY = (2.0, 2.0)
_EAGER_ROTARY = (10.0, 10.0)  # to fp32, complex product, back
_LAYOUT = (2.0, 2.0)  # heads next to each other
_REPEAT = (1.0, 1.0)  # key and value heads written out once per query head
_SOFTMAX = (2.0, 3.0)
FP32 = 4.0


def forward_bytes(request: LayerRequest) -> float:
    """Bytes one rank reads and writes for a layer and micro-batch forward, matrix products and scores left out."""
    return _bytes(request, 0)


def backward_bytes(request: LayerRequest) -> float:
    """The same for backward."""
    return _bytes(request, 1)


def cast_bytes(request: LayerRequest) -> tuple[float, float]:
    """Bytes that casting reads and writes for a layer and micro-batch, (forward, backward); none in 16 bits or more.

    Every product casts both its factors. Backward casts the output's gradient and both factors of forward again, which
    are kept in 16 bits, and lays the gradient and the input out once more for the product over tokens. Source:
    torchao's float8 linear layer and its column- and row-parallel styles.
    """
    model, forward, backward, cast = request.model, 0.0, 0.0, CASTS.get(request.precision)
    if cast is None:
        return 0.0, 0.0
    for each in linears(model, request.routed):
        into, out = per_rank(each, request.cut_of(each.routed))
        rows = request.rows_of(each.routed) * (model.active_experts if each.routed else 1)
        weights = into * out * (model.experts / request.expert if each.routed else 1)
        # What tensor ranks gather is cast before, each its shard of the sequence, and travels so.
        spread = request.cut_of(each.routed) if request.sequence_parallel else 1
        taken = rows * into / (spread if each.cut == "out" else 1)
        given = rows * out / (spread if each.cut == "in" else 1)
        forward += cast.factor * (taken + weights)
        backward += cast.factor * (taken + given + weights)
        backward += rows * (cast.input_again * into + cast.gradient_again * out)
    return forward, backward


def norm_bytes(request: LayerRequest) -> float:
    """Bytes that a layer's two norms read and write forward."""
    spread = request.tensor if request.sequence_parallel else 1
    hidden = request.model.hidden * request.bytes_each / spread
    return request.tokens * 2 * hidden * _norm_passes(request)[0]


def activation_bytes(request: LayerRequest, width: float) -> float:
    """Bytes that the activation of an MLP of `width` values a token on this rank reads and writes forward."""
    gate = (_GATE if request.record.fused else _EAGER_GATE)[0] if request.model.gated_mlp else _ACTIVATION[0]
    return request.tokens * width * request.bytes_each * gate


def score_bytes(request: LayerRequest) -> tuple[float, float]:
    """Bytes per query-key pair that an unfused softmax reads and writes, (forward, backward); dropout keeps a mask."""
    profile, size = request.record, request.bytes_each
    masks = (2 * size + 1, 2 * size + 1) if request.dropout else (0.0, 0.0)
    eager = 0.0 if profile.fused else 4 * size  # scale and mask as kernels of their own
    return _SOFTMAX[0] * size + masks[0] + eager, _SOFTMAX[1] * size + masks[1] + eager


def _bytes(request: LayerRequest, way: int) -> float:
    model, profile, size = request.model, request.record, request.bytes_each
    spread = request.tensor if request.sequence_parallel else 1
    hidden = model.hidden * size / spread
    norm = _norm_passes(request)[way]
    each = 2 * hidden * (norm + _RESIDUAL[way])
    if request.dropout:
        each += 2 * (hidden * _DROPOUT[way] + model.hidden / spread)
    each += _attention_bytes(request, way)
    gate = (_GATE if profile.fused else _EAGER_GATE)[way]
    width = mlp_width(model, request.routed) / request.tensor * size
    each += width * (gate if model.gated_mlp else _ACTIVATION[way])
    if request.routed:
        # gather tokens by expert, and back
        each += 4 * model.active_experts * model.hidden * size * request.expert_cut / request.tensor
    return request.tokens * each


def eager_norm(request: LayerRequest) -> bool:
    """Whether norms are computed operation by operation: RMS norms without a fused kernel."""
    return request.model.norm == "rms" and not request.record.fused_cores


def repeats_keys(request: LayerRequest) -> bool:
    """Whether keys and values are copied for every query that shares them, for want of a kernel that can share."""
    record, shape = request.record, attention_shape(request.model, request.tensor)
    shares = record.fused_cores and (record.fused or request.attention == "flash")
    return shape.key_heads < shape.heads and not shares


def _norm_passes(request: LayerRequest) -> tuple[float, float]:
    if not eager_norm(request):
        return _NORM
    return _EAGER_RMS_NORM if request.bytes_each < FP32 else _EAGER_RMS_NORM_FP32


def _attention_bytes(request: LayerRequest, way: int) -> float:
    model, profile, size = request.model, request.record, request.bytes_each
    shape = attention_shape(model, request.tensor)
    found = _LAYOUT[way] * shape.output * size
    if model.positions == "rotary":
        found += (_ROTARY if profile.fused else _EAGER_ROTARY)[way] * (shape.query + shape.key) * size
    if repeats_keys(request):
        found += 2 * _REPEAT[way] * (shape.query + shape.key) * size
    return found


@lru_cache(maxsize=4096)
def mlp_width(model: Model, routed: bool) -> float:
    """Inner MLP values of a token: over the experts it is sent to and the shared ones, where there are any."""
    return sum(
        each.into * (model.active_experts if each.routed else 1) for each in linears(model, routed) if each.ends_mlp
    )
