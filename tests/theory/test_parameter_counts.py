"""Parameter counts against what was published, against the tensors one by one, and against hand calculations."""

from __future__ import annotations

import random
from typing import Any

import pytest

from app.theory.presets import PRESETS, Preset
from app.theory.transformer import (
    active_parameter_count,
    embedding_parameter_count,
    expert_parameter_count,
    final_norm_parameter_count,
    head_parameter_count,
    layer_expert_parameter_count,
    layer_parameter_count,
    padded_vocab,
    parameter_count,
    tensors,
)
from labs.spec import Model, SpecError, check_model

# Counts of the released weights, as listed with the checkpoints on the Hugging Face hub.
RELEASED = {
    "gpt-2-124m": 124_439_808,
    "gpt-2-355m": 354_823_168,
    "gpt-2-774m": 774_030_080,
    "gpt-2-1.5b": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen-2.5-7b": 7_615_616_512,
    "qwen-2.5-72b": 72_706_203_648,
}
# Brown et al. 2020, table D.1 in millions, and DeepSeek-AI 2024 in billions: as printed, with the digits that count.
PRINTED = {
    "gpt-3-125m": ("125", 1e6),
    "gpt-3-350m": ("356", 1e6),
    "gpt-3-760m": ("760", 1e6),
    "gpt-3-1.3b": ("132", 1e7),
    "gpt-3-2.7b": ("265", 1e7),
    "gpt-3-6.7b": ("666", 1e7),
    "gpt-3-13b": ("1285", 1e7),
    "gpt-3-175b": ("1746", 1e8),
    "deepseek-v3": ("671", 1e9),
}
SMALL: dict[str, Any] = {"layers": 3, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn_hidden": 96, "vocab": 100}
DEEPSEEK = PRESETS["deepseek-v3"].model


def counted(preset: Preset) -> int:
    return parameter_count(preset.model, preset.sequence)


def test_every_preset_is_held_against_a_published_count() -> None:
    assert set(PRESETS) == set(RELEASED) | set(PRINTED)
    for name, preset in PRESETS.items():
        assert check_model(preset.model) == [], name


@pytest.mark.parametrize("name", list(RELEASED))
def test_a_released_model_is_counted_to_the_last_parameter(name: str) -> None:
    assert counted(PRESETS[name]) == RELEASED[name] == PRESETS[name].published_parameters


@pytest.mark.parametrize("name", list(PRINTED))
def test_a_model_of_a_paper_is_counted_to_the_digits_printed(name: str) -> None:
    digits, unit = PRINTED[name]
    assert f"{counted(PRESETS[name]) / unit:.0f}" == digits
    assert PRESETS[name].published_parameters == pytest.approx(int(digits) * unit)
    assert PRESETS[name].published_digits == len(digits)


def test_the_names_of_gpt_3_models_round_further() -> None:
    # Brown et al. 2020, table 2.1: 175.0B, where table D.1 has 174,600M
    assert counted(PRESETS["gpt-3-175b"]) == pytest.approx(175.0e9, rel=3e-3)


def test_experts_count_once_each_and_a_token_uses_two_of_them() -> None:
    # Jiang et al. 2024, section 1: 47B parameters of which a token uses 13B; the release notes print 46.7B and 12.9B
    mixtral = PRESETS["mixtral-8x7b"].model
    assert f"{parameter_count(mixtral) / 1e9:.1f}" == "46.7"
    assert f"{active_parameter_count(mixtral) / 1e9:.1f}" == "12.9"
    # eight experts of three 4096 × 14336 matrices in 32 layers: 8 · 3 · 4096 · 14336 · 32
    assert expert_parameter_count(mixtral) == 45_097_156_608


def test_a_token_of_deepseek_v3_uses_37_of_671_billion() -> None:
    # DeepSeek-AI 2024 (DeepSeek-V3): 671B, 37B active. The notes on its weights print 36.6B with the output head and
    # without the input table, 129,280 × 7,168 = 0.93B, of which a token reads one row.
    active = active_parameter_count(DEEPSEEK) - embedding_parameter_count(DEEPSEEK)
    assert f"{active / 1e9:.1f}" == "36.6"
    assert f"{active / 1e9:.0f}" == "37"


def test_latent_attention_by_hand() -> None:
    """DeepSeek-V3, 128 heads: queries through 1,536, keys and values through 512 and 64 rotated values beside them."""
    queries = 7168 * 1536 + 1536 + 1536 * 128 * (128 + 64)  # down, norm, up: 48,760,320
    keys_and_values = 7168 * (512 + 64) + 512 + 512 * 128 * (128 + 128)  # 20,906,496
    attention = queries + keys_and_values + 128 * 128 * 7168  # and the output: 187,107,328
    dense = attention + 2 * 7168 + 3 * 7168 * 18432
    assert attention == 187_107_328
    assert layer_parameter_count(DEEPSEEK, 2) == dense == 583_483_392
    # from the fourth layer on a router of 256 rows, one shared and 256 routed experts of 3 · 7168 · 2048 = 44,040,192
    assert layer_parameter_count(DEEPSEEK, 3) == attention + 2 * 7168 + 256 * 7168 + 257 * 44_040_192
    assert layer_expert_parameter_count(DEEPSEEK, 2) == 0
    assert layer_expert_parameter_count(DEEPSEEK, 60) == 256 * 44_040_192
    assert expert_parameter_count(DEEPSEEK) == 58 * 256 * 44_040_192


def test_queries_may_skip_their_latent() -> None:
    latent = {"key_value_rank": 8, "rope_dim": 4, "nope_dim": 16, "value_dim": 12}
    direct = Model(**SMALL | {"kv_heads": 4}, norm="rms", latent_attention=latent)
    # 64·(4·20) + 64·(8+4) + norm 8 + 8·(4·28) + (4·12)·64 = 5,120 + 768 + 8 + 896 + 3,072; two norms of 64, MLP 2·64·96
    assert layer_parameter_count(direct, 0) == 9_864 + 2 * 64 + 2 * 64 * 96


def test_biases_on_queries_keys_and_values_alone() -> None:
    with_biases = Model(**SMALL, qkv_biases=True)
    # queries 64, keys and values 2 heads of 16 each, in three layers
    assert parameter_count(with_biases) - parameter_count(Model(**SMALL)) == 3 * (64 + 32 + 32)
    every = Model(**SMALL, biases=True)
    assert parameter_count(Model(**SMALL, biases=True, qkv_biases=True)) == parameter_count(every)


def test_heads_of_their_own_size_widen_attention_alone() -> None:
    # 4 heads and 2 key/value heads of 24 instead of 16: query and output 64·96, key and value 64·48
    wide = Model(**SMALL, head_dim=24)
    assert parameter_count(wide) - parameter_count(Model(**SMALL)) == 3 * (2 * 64 * (96 - 64) + 2 * 64 * (48 - 32))


def test_the_parts_by_hand() -> None:
    # Llama 3 8B: 128,256 × 4,096 each way; a layer is 4096·(4096 + 2·1024) + 4096² + 3·4096·14336 + 2·4096
    model = PRESETS["llama-3-8b"].model
    assert embedding_parameter_count(model, 8192) == head_parameter_count(model) == 525_336_576
    assert final_norm_parameter_count(model) == 4096
    assert layer_parameter_count(model, 31) == 218_112_000
    assert head_parameter_count(PRESETS["gpt-2-124m"].model) == 0


def random_model(source: random.Random) -> Model:
    """Any shape that `check_model` lets pass."""
    heads, experts, layers = source.choice([1, 2, 4, 6]), source.choice([1, 1, 2, 5]), source.randint(1, 4)
    shape: dict[str, Any] = {
        "layers": layers,
        "heads": heads,
        "hidden": heads * source.randint(1, 9),
        "vocab": source.randint(1, 99),
        "kv_heads": source.choice([k for k in (1, 2, 3, 4, 6) if heads % k == 0]),
        "ffn_hidden": source.randint(1, 70),
        "experts": experts,
        "active_experts": source.randint(1, experts),
        "positions": source.choice(["learned", "rotary"]),
        "norm": source.choice(["layer", "rms"]),
    }
    shape |= {flag: source.random() < 0.5 for flag in ("gated_mlp", "tied_embeddings", "biases", "qkv_biases")}
    if experts > 1:
        shape |= {"shared_experts": source.randint(0, 2), "dense_layers": source.randint(0, layers)}
        shape["expert_ffn_hidden"] = source.choice([None, source.randint(1, 30)])
    if source.random() < 0.4:
        sizes = {name: source.randint(1, 12) for name in ("key_value_rank", "rope_dim", "nope_dim", "value_dim")}
        shape["latent_attention"] = sizes | {"query_rank": source.choice([None, source.randint(1, 12)])}
        shape |= {"kv_heads": heads, "qkv_biases": False}
    elif source.random() < 0.4:
        shape |= {"head_dim": source.randint(1, 12), "hidden": source.randint(1, 40)}
    return Model(**shape)


@pytest.mark.parametrize("seed", range(300))
def test_every_count_is_that_of_the_tensors_one_by_one(seed: int) -> None:
    model = random_model(random.Random(seed))
    assert check_model(model) == []
    sizes = [(tensor, tensor.size) for tensor in tensors(model, 32)]
    idle = sum(size for tensor, size in sizes if tensor.expert is not None and tensor.expert >= model.active_experts)
    assert parameter_count(model, 32) == sum(size for _, size in sizes)
    assert active_parameter_count(model, 32) == sum(size for _, size in sizes) - idle
    assert expert_parameter_count(model) == sum(size for tensor, size in sizes if tensor.expert is not None)
    assert embedding_parameter_count(model, 32) == sum(size for tensor, size in sizes if "embedding" in tensor.name)
    for layer in range(model.layers):
        within = [(tensor, size) for tensor, size in sizes if tensor.layer == layer]
        assert layer_parameter_count(model, layer) == sum(size for _, size in within)
        routed = sum(size for tensor, size in within if tensor.expert is not None)
        assert layer_expert_parameter_count(model, layer) == routed


def test_a_dense_model_is_active_as_a_whole() -> None:
    model = PRESETS["gpt-2-124m"].model
    assert active_parameter_count(model, 1024) == parameter_count(model, 1024)
    assert expert_parameter_count(model) == 0


def test_idle_experts_take_their_biases_with_them() -> None:
    eight = Model(**SMALL, biases=True, experts=8, active_experts=3)
    three = Model(**SMALL, biases=True, experts=3, active_experts=3)
    routers = 3 * (8 - 3) * 64
    assert active_parameter_count(eight) == parameter_count(three) + routers


def test_learned_positions_grow_with_the_sequence_and_rotary_ones_do_not() -> None:
    learned, rotary = PRESETS["gpt-2-124m"].model, PRESETS["llama-3-8b"].model
    assert parameter_count(learned, 1024) - parameter_count(learned, 0) == 1024 * 768
    assert parameter_count(rotary, 8192) == parameter_count(rotary, 0)


def test_the_largest_shape_is_counted_at_once() -> None:
    """10,000 layers of 10,000 experts would be 200 million tensors to walk."""
    model = Model(**SMALL | {"layers": 10**4}, experts=10**4)
    assert parameter_count(model) > 10**8 * 2 * 64 * 96


@pytest.mark.parametrize("layer", [-1, 3])
def test_a_layer_there_is_not_is_refused(layer: int) -> None:
    for count in (layer_parameter_count, layer_expert_parameter_count):
        with pytest.raises(SpecError) as raised:
            count(Model(**SMALL), layer)
        assert [(v.field, v.value, v.accepted) for v in raised.value.violations] == [("layer", layer, "0 to 2")]


@pytest.mark.parametrize(
    ("vocab", "tensor", "padded"),
    # multiples of 128, 1,024 and 1,024: 393 · 128, 50 · 1,024 and exactly 32 · 1,024
    [(50257, 1, 50304), (50257, 8, 51200), (32768, 8, 32768)],
)
def test_a_vocabulary_is_padded_to_equal_parts(vocab: int, tensor: int, padded: int) -> None:
    assert padded_vocab(vocab, tensor) == padded


def test_a_vocabulary_without_ranks_is_refused() -> None:
    with pytest.raises(SpecError) as raised:
        padded_vocab(0, -1)
    assert {(v.field, v.value, v.accepted) for v in raised.value.violations} == {
        ("vocab", 0, "1 or more"),
        ("tensor", -1, "1 or more"),
    }
