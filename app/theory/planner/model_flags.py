"""What other programs are told, and of it the model: Megatron-LM's arguments, torchtitan's flavors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.theory.presets import PRESETS
from labs.spec import LatentAttention, Model

Pairs = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Flags:
    """What to write on the command line of `framework`, and what it does not say."""

    framework: str
    flags: tuple[str, ...]
    leaves_open: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"Flags of {self.framework}"

    @property
    def text(self) -> str:
        """A line for each flag, ready for a shell."""
        return " \\\n".join(self.flags)


@dataclass(frozen=True)
class TorchtitanModel:
    """A model of torchtitan's: its package, the flavor in its registry, and the configuration it is trained with."""

    name: str
    flavor: str
    function: str

    @property
    def module(self) -> str:
        return f"torchtitan.models.{self.name}.config_registry"


# What torchtitan's model registry has of published models.
TORCHTITAN_MODELS: Mapping[str, TorchtitanModel] = {
    "llama-3-8b": TorchtitanModel("llama3", "8B", "llama3_8b"),
    "llama-3-70b": TorchtitanModel("llama3", "70B", "llama3_70b"),
    "llama-3-405b": TorchtitanModel("llama3", "405B", "llama3_405b"),
    "deepseek-v3": TorchtitanModel("deepseek_v3", "671B", "deepseek_v3_671b"),
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


def torchtitan_model(model: Model) -> TorchtitanModel | None:
    """Torchtitan's own of this shape, where it has one."""
    return next((own for name, own in TORCHTITAN_MODELS.items() if PRESETS[name].model == model), None)
