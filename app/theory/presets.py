"""Published models by name. Counts they must reproduce are tested.

Only what `Model` describes exactly: models with parallel blocks, norms after the embedding or relative positions of
their own (PaLM, BLOOM, BERT, Chinchilla) are left out rather than approximated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from labs.spec import LAB_MODELS, LatentAttention, Model


@dataclass(frozen=True)
class Preset:
    """A model with the sequence of its main pre-training phase and where its shape is published.

    `published_parameters` is the count of the released weights, digit by digit, or what the source prints, rounded to
    `published_digits` significant digits. `expert_nodes`: its router sends a token to the experts of at most so many
    nodes.
    """

    name: str
    title: str
    family: str
    model: Model
    sequence: int
    published_parameters: float
    source: str
    published_digits: int | None = None
    expert_nodes: int | None = None


# What the models of a family have alike besides their sizes.
ARCHITECTURES: Mapping[str, Mapping[str, Any]] = {
    # Llama's, which most later models share: rotary positions, RMSNorm, gated MLP, no biases.
    "llama": {"gated_mlp": True, "tied_embeddings": False, "positions": "rotary", "norm": "rms"},
    # GPT-2's, which GPT-3 kept: learned positions, LayerNorm, biases, tied embeddings.
    "gpt": {"positions": "learned", "norm": "layer", "biases": True},
}


def _gpt(layers: int, hidden: int, heads: int) -> Model:
    shape = {"layers": layers, "hidden": hidden, "heads": heads, "vocab": 50257}
    return Model.model_validate({**shape, **ARCHITECTURES["gpt"]})


def _llama(layers: int, hidden: int, heads: int, kv: int, ffn: int, vocab: int, **more: Any) -> Model:
    shape = {"layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv, "ffn_hidden": ffn, "vocab": vocab}
    return Model.model_validate({**shape, **ARCHITECTURES["llama"], **more})


_GPT2 = "Radford et al. 2019 (GPT-2), released weights"
_GPT3 = "Brown et al. 2020 (GPT-3), shape of table 2.1, count of table D.1"
_GPT3_XL = _GPT3 + "; 16 heads of 128 make its hidden size, where table 2.1 prints 24"
_GPT3_13B = _GPT3 + "; hidden size of its 40 heads of 128, where table 2.1 prints 5140"
_LLAMA2 = "Touvron et al. 2023 (Llama 2), released weights"
_LLAMA3 = "Llama team 2024 (Llama 3), table 3, and released weights; Llama 3.1 has the same shape"
_LLAMA32 = "Llama 3.2 model card 2024 and released weights; sequence as Llama 3's main phase"
_MISTRAL = "Jiang et al. 2023 (Mistral 7B), table 1, and released weights"
_MIXTRAL = "Jiang et al. 2024 (Mixtral of experts), table 1, and released weights; 12.9B active"
_QWEN = "Qwen team 2024 (Qwen2.5 technical report) and released weights"
_DEEPSEEK = (
    "DeepSeek-AI 2024 (DeepSeek-V3), section 4.2, and released configuration; 37B active; without the multi-token "
    "prediction module and without the routers' balancing offsets, which no gradient trains"
)
_DEEPSEEK_V3 = _llama(
    61,
    7168,
    128,
    128,
    18432,
    129280,
    experts=256,
    active_experts=8,
    shared_experts=1,
    expert_ffn_hidden=2048,
    dense_layers=3,
    latent_attention=LatentAttention(query_rank=1536, key_value_rank=512, rope_dim=64, nope_dim=128, value_dim=128),
)

Row = tuple[str, str, Model, float]


def _presets(family: str, sequence: int, source: str, *rows: Row, digits: int | None = None) -> tuple[Preset, ...]:
    """Rows of name, title, shape and published count that share the rest."""
    return tuple(
        Preset(name, title, family, model, sequence, published, source, digits)
        for name, title, model, published in rows
    )


_ALL = (
    *_presets(
        "GPT-2",
        1024,
        _GPT2,
        ("gpt-2-124m", "GPT-2, 124M", _gpt(12, 768, 12), 124_439_808),
        ("gpt-2-355m", "GPT-2 medium, 355M", _gpt(24, 1024, 16), 354_823_168),
        ("gpt-2-774m", "GPT-2 large, 774M", _gpt(36, 1280, 20), 774_030_080),
        ("gpt-2-1.5b", "GPT-2 XL, 1.5B", _gpt(48, 1600, 25), 1_557_611_200),
    ),
    *_presets(
        "GPT-3",
        2048,
        _GPT3,
        ("gpt-3-125m", "GPT-3 Small, 125M", _gpt(12, 768, 12), 125e6),
        ("gpt-3-350m", "GPT-3 Medium, 350M", _gpt(24, 1024, 16), 356e6),
        ("gpt-3-760m", "GPT-3 Large, 760M", _gpt(24, 1536, 16), 760e6),
        digits=3,
    ),
    *_presets("GPT-3", 2048, _GPT3_XL, ("gpt-3-1.3b", "GPT-3 XL, 1.3B", _gpt(24, 2048, 16), 1.32e9), digits=3),
    *_presets(
        "GPT-3",
        2048,
        _GPT3,
        ("gpt-3-2.7b", "GPT-3, 2.7B", _gpt(32, 2560, 32), 2.65e9),
        ("gpt-3-6.7b", "GPT-3, 6.7B", _gpt(32, 4096, 32), 6.66e9),
        digits=3,
    ),
    *_presets("GPT-3", 2048, _GPT3_13B, ("gpt-3-13b", "GPT-3, 13B", _gpt(40, 5120, 40), 12.85e9), digits=4),
    *_presets("GPT-3", 2048, _GPT3, ("gpt-3-175b", "GPT-3, 175B", _gpt(96, 12288, 96), 174.6e9), digits=4),
    *_presets(
        "Llama 2",
        4096,
        _LLAMA2,
        ("llama-2-7b", "Llama 2, 7B", _llama(32, 4096, 32, 32, 11008, 32000), 6_738_415_616),
        ("llama-2-13b", "Llama 2, 13B", _llama(40, 5120, 40, 40, 13824, 32000), 13_015_864_320),
        ("llama-2-70b", "Llama 2, 70B", _llama(80, 8192, 64, 8, 28672, 32000), 68_976_648_192),
    ),
    *_presets(
        "Llama 3",
        8192,
        _LLAMA3,
        ("llama-3-8b", "Llama 3, 8B", _llama(32, 4096, 32, 8, 14336, 128256), 8_030_261_248),
        ("llama-3-70b", "Llama 3, 70B", _llama(80, 8192, 64, 8, 28672, 128256), 70_553_706_496),
        ("llama-3-405b", "Llama 3.1, 405B", _llama(126, 16384, 128, 8, 53248, 128256), 405_853_388_800),
    ),
    *_presets(
        "Llama 3",
        8192,
        _LLAMA32,
        ("llama-3.2-1b", "Llama 3.2, 1B", _llama(16, 2048, 32, 8, 8192, 128256, tied_embeddings=True), 1_235_814_400),
        ("llama-3.2-3b", "Llama 3.2, 3B", _llama(28, 3072, 24, 8, 8192, 128256, tied_embeddings=True), 3_212_749_824),
    ),
    *_presets(
        "Mistral", 8192, _MISTRAL, ("mistral-7b", "Mistral, 7B", _llama(32, 4096, 32, 8, 14336, 32000), 7_241_732_096)
    ),
    *_presets(
        "Mistral",
        32768,
        _MIXTRAL,
        (
            "mixtral-8x7b",
            "Mixtral, 8 × 7B",
            _llama(32, 4096, 32, 8, 14336, 32000, experts=8, active_experts=2),
            46_702_792_704,
        ),
    ),
    *_presets(
        "Qwen2.5",
        4096,
        _QWEN,
        ("qwen-2.5-7b", "Qwen2.5, 7B", _llama(28, 3584, 28, 4, 18944, 152064, qkv_biases=True), 7_615_616_512),
        ("qwen-2.5-72b", "Qwen2.5, 72B", _llama(80, 8192, 64, 8, 29568, 152064, qkv_biases=True), 72_706_203_648),
    ),
    # Section 2.1.2 of its report: node-limited routing, at most four nodes a token.
    *(
        replace(each, expert_nodes=4)
        for each in _presets(
            "DeepSeek", 4096, _DEEPSEEK, ("deepseek-v3", "DeepSeek-V3, 671B", _DEEPSEEK_V3, 671e9), digits=3
        )
    ),
)

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _ALL}


def model_named(name: str) -> Model | None:
    """A published or a lab model."""
    preset = PRESETS.get(name)
    return preset.model if preset else LAB_MODELS.get(name)
