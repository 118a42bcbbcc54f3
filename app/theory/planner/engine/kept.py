"""What a layer keeps from forward until backward, tensor by tensor.

The sum is s·b·h(34 + 5as/h) for the papers' layer, and its divided forms under tensor and sequence parallelism
(Korthikanti et al. 2022, equations 1 to 6). Gated MLPs, rotary positions, other norms and no dropout follow from the
same list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.theory.planner.engine.elementwise import FP32, eager_norm, repeats_keys
from app.theory.planner.engine.layer import LayerRequest
from app.theory.planner.engine.shapes import attention_shape, linears, per_rank, repeated
from app.theory.planner.fields import Module

EAGER_NORM_BYTES = 4.0  # more per value: its input in fp32 in place of 16 bits, and the normalised value besides
LOG_SUM_BYTES = FP32  # a fused attention kernel's softmax statistics, fp32


@dataclass(frozen=True)
class KeptTensor:
    """What a tensor, or several of a kind, keep for each token of one rank; `of_square` grows with the sequence."""

    name: str
    bytes_a_token: float
    of_square: bool = False


@lru_cache(maxsize=8192)
def kept_bytes(request: LayerRequest) -> float:
    """Bytes one layer and micro-batch keep on one rank under the request's recomputation."""
    if request.recompute == "full":
        return request.tokens * _stream(request)
    if request.recompute == "selective":
        if request.modules is not None:
            scores = "core_attn" not in request.modules
            return _everything(request, scores) - request.tokens * _dropped(request, request.modules)
        if request.record.selective == "attention":
            return _everything(request, scores=False)
        return request.tokens * _half_of_the_matrices(request)
    return _everything(request, scores=True)


def live_bytes(request: LayerRequest) -> float:
    """What a layer holds besides while its backward runs: what it recomputes."""
    if request.recompute == "none":
        return 0.0
    return max(0.0, _everything(request, scores=True) - kept_bytes(request))


def _stream(request: LayerRequest) -> float:
    """The residual stream, one value of `hidden` per token; sequence parallelism spreads it."""
    return request.model.hidden * request.bytes_each / (request.tensor if request.sequence_parallel else 1)


def kept_tensors(request: LayerRequest) -> tuple[KeptTensor, ...]:
    """Everything one layer keeps where nothing is computed again."""
    return (*_attention(request, scores=True), *_norms(request), *_mlp(request))


def _everything(request: LayerRequest, scores: bool) -> float:
    return request.tokens * sum(
        tensor.bytes_a_token for tensor in (*_attention(request, scores), *_norms(request), *_mlp(request))
    )


def eager_norm_bytes(request: LayerRequest) -> float:
    """Bytes per value that an eager norm keeps beyond its input and output; fp32 needs no second copy."""
    return EAGER_NORM_BYTES if eager_norm(request) and request.bytes_each < FP32 else 0.0


def _norms(request: LayerRequest) -> Iterator[KeptTensor]:
    """Two norms' inputs and outputs, and dropout masks of one byte behind attention and MLP.

    Some frameworks keep the outputs as the products took them, gathered from the whole sequence.
    """
    stream = _stream(request)
    outputs = request.model.hidden * request.bytes_each if request.record.keeps_gathered else stream
    upcast = 2 * eager_norm_bytes(request) / request.bytes_each
    yield KeptTensor("two norms: what they take", 2 * stream)
    yield KeptTensor("two norms: what they give", 2 * outputs)
    if upcast:
        yield KeptTensor("two norms: copies in fp32", upcast * stream)
    if request.dropout:
        yield KeptTensor("two dropout masks", 2 * stream / request.bytes_each)


def _attention(request: LayerRequest, scores: bool) -> Iterator[KeptTensor]:
    """Queries, keys, values and the attention output; scores, unless a fused kernel keeps only their statistics."""
    shape, size = attention_shape(request.model, request.tensor), request.bytes_each
    keys = shape.query + shape.output if repeats_keys(request) else shape.key + shape.value
    yield KeptTensor("queries", shape.query * size)
    yield KeptTensor("keys and values", keys * size)
    yield KeptTensor("attention: what it gives", shape.output * size)
    if latents := _latents(request):
        yield KeptTensor("latents", latents * size)
    if request.attention == "flash":
        if request.record.softmax_statistics:
            yield KeptTensor("softmax: a statistic a row", LOG_SUM_BYTES * shape.heads)
    elif scores:
        square = shape.heads * request.sequence
        yield KeptTensor("softmax: what it gives", size * square, of_square=True)
        if request.dropout:
            yield KeptTensor("softmax: its dropout mask", float(square), of_square=True)
            yield KeptTensor("softmax: what dropout leaves", size * square, of_square=True)


def _latents(request: LayerRequest) -> int:
    """Latent attention: what its down-projections give, before and after their norms, whole on every tensor rank."""
    latent = request.model.latent_attention
    if latent is None:
        return 0
    return 2 * ((latent.query_rank or 0) + latent.key_value_rank) + latent.rope_dim


def _mlp(request: LayerRequest) -> Iterator[KeptTensor]:
    """What the activation takes and what the last matrix takes; a gate has two inputs, and an eager one keeps its
    activation besides. Routed tokens are kept once per expert they are sent to."""
    model, found = request.model, 0.0
    widths = 2 if not model.gated_mlp else 3 if request.record.fused else 4
    for each in linears(model, request.routed):
        if not each.ends_mlp:
            continue
        into, _ = per_rank(each, request.tensor)
        copies = model.active_experts if each.routed else 1
        found += into * copies * request.bytes_each
    yield KeptTensor("MLP: what its last matrix takes", found)
    yield KeptTensor("MLP: what its activation takes", (widths - 1) * found)
    if request.routed:
        yield KeptTensor("tokens sent to experts, and back", _dispatched(request))


def _dispatched(request: LayerRequest) -> float:
    """Tokens as they came to this rank's experts, and as they go back."""
    share = request.rows_of(routed=True) / request.tokens
    return 2 * request.model.active_experts * request.model.hidden * request.bytes_each * share


def _dropped(request: LayerRequest, modules: tuple[Module, ...]) -> float:
    """Bytes a token that are computed again in place of being kept."""
    model, size, found = request.model, request.bytes_each, 0.0
    shape = attention_shape(model, request.tensor)
    if "layernorm" in modules:
        found += 2 * (model.hidden * size if request.record.keeps_gathered else _stream(request))
    if "mla_up_proj" in modules and model.latent_attention is not None:
        found += (shape.query + shape.key + shape.value) * size
    widths = 2 if not model.gated_mlp else 3 if request.record.fused else 4
    for each in linears(model, request.routed):
        if each.ends_mlp:
            kept = 1 if each.routed and "moe_act" in modules else 0
            into = each.into / request.tensor * (model.active_experts if each.routed else 1)
            found += into * size * (widths if repeated(each, modules) else kept)
    return found + (_dispatched(request) if request.routed and "moe" in modules else 0.0)


def _half_of_the_matrices(request: LayerRequest) -> float:
    """The layer's input, the attention output, and the output of every other matrix product."""
    model, shape, size = request.model, attention_shape(request.model, request.tensor), request.bytes_each
    fused = request.attention == "flash" and request.record.softmax_statistics
    found = _stream(request) + shape.output * size + (LOG_SUM_BYTES * shape.heads if fused else 0.0)
    for each in linears(model, request.routed)[::2]:
        _, out = per_rank(each, request.tensor)
        spread = request.tensor if request.sequence_parallel and each.cut == "in" else 1
        found += out / spread * size * (model.active_experts if each.routed else 1)
    return found
