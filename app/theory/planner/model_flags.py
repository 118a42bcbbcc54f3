"""A model as other programs are told it: Megatron-LM's arguments, torchtitan's flavors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.theory.presets import PRESETS
from labs.spec import LatentAttention, Model

Pairs = Iterator[tuple[str, str]]
# The flavors that torchtitan's model registry has of published models.
TORCHTITAN_FLAVORS: Mapping[str, tuple[str, str]] = {
    "llama-3-8b": ("llama3", "8B"),
    "llama-3-70b": ("llama3", "70B"),
    "llama-3-405b": ("llama3", "405B"),
    "deepseek-v3": ("deepseek_v3", "671B"),
}


def megatron_model(model: Model, sequence: int) -> Pairs:
    """The model's arguments; its vocabulary as one of a tokenizer that is none."""
    yield "--num-layers", str(model.layers)
    yield "--hidden-size", str(model.hidden)
    yield "--ffn-hidden-size", str(model.ffn_hidden)
    yield "--num-attention-heads", str(model.heads)
    if model.latent_attention is not None:
        yield from _latent(model.latent_attention)
    elif model.kv_heads < model.heads:
        yield "--group-query-attention", ""
        yield "--num-query-groups", str(model.kv_heads)
    if model.head_dim is not None:
        yield "--kv-channels", str(model.head_dim)
    yield "--max-position-embeddings", str(sequence)
    yield "--tokenizer-type", "NullTokenizer"
    yield "--vocab-size", str(model.vocab)
    if model.positions == "rotary":
        yield "--position-embedding-type", "rope"
    if model.norm == "rms":
        yield "--normalization", "RMSNorm"
    for argument, is_wanted in (
        ("--swiglu", model.gated_mlp),
        ("--untie-embeddings-and-output-weights", not model.tied_embeddings),
        ("--disable-bias-linear", not model.biases),
        ("--add-qkv-bias", model.qkv_biases and not model.biases),
    ):
        if is_wanted:
            yield argument, ""
    if model.experts > 1:
        yield from _experts(model)


def _latent(latent: LatentAttention) -> Pairs:
    yield "--multi-latent-attention", ""
    if latent.query_rank is not None:
        yield "--q-lora-rank", str(latent.query_rank)
    yield "--kv-lora-rank", str(latent.key_value_rank)
    yield "--qk-head-dim", str(latent.nope_dim)
    yield "--qk-pos-emb-head-dim", str(latent.rope_dim)
    yield "--v-head-dim", str(latent.value_dim)
    yield "--qk-layernorm", ""


def _experts(model: Model) -> Pairs:
    width = model.expert_ffn_hidden or model.ffn_hidden
    yield "--num-experts", str(model.experts)
    yield "--moe-router-topk", str(model.active_experts)
    yield "--moe-ffn-hidden-size", str(width)
    if model.shared_experts:
        yield "--moe-shared-expert-intermediate-size", str(model.shared_experts * width)
    if model.dense_layers:
        yield "--moe-layer-freq", f'"([0]*{model.dense_layers}+[1]*{model.layers - model.dense_layers})"'


def torchtitan_model(model: Model) -> Pairs:
    """The model's flavor, where torchtitan has one of its shape."""
    found = _flavor(model)
    if found is not None:
        name, flavor = found
        yield "--model.name", name
        yield "--model.flavor", flavor


def torchtitan_model_open(model: Model) -> tuple[str, ...]:
    """What is to be registered where torchtitan has no such flavor."""
    if _flavor(model) is not None:
        return ()
    sizes = f"n_layers={model.layers}, dim={model.hidden}, n_heads={model.heads}, n_kv_heads={model.kv_heads}"
    return (f"the model: a flavor of its own with {sizes}, an MLP of {model.ffn_hidden}, vocab_size={model.vocab}",)


def _flavor(model: Model) -> tuple[str, str] | None:
    return next((flavor for name, flavor in TORCHTITAN_FLAVORS.items() if PRESETS[name].model == model), None)
