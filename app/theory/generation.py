"""Generating tokens, and sharing GPUs between the ranks that generate and those that train (F62, F65, F66, F76).

Decoding reads every weight and the whole cache once for each token of every sequence: what is counted here are those
bytes. A rollout is one generated sequence; versions of the policy are counted from 0 as the trainer publishes them.
"""

from __future__ import annotations


def kv_cache_bytes(layers: int, key_value_heads: int, head_size: int, tokens: float, bytes_each: float = 2.0) -> float:
    """F65: bytes of keys and values of `tokens` tokens, 2·L·g·d·T·w.

    Source: Shazeer 2019; Ainslie et al. 2023 (GQA).
    """
    return 2 * layers * key_value_heads * head_size * tokens * bytes_each


def latent_cache_bytes(
    layers: int, key_value_rank: int, rope_dim: int, tokens: float, bytes_each: float = 2.0
) -> float:
    """F62: bytes latent attention caches for `tokens` tokens, (d_c + d_R)·L·T·w.

    One latent for keys and values of all heads, and a rotated key they share. Source: DeepSeek-AI 2024 (DeepSeek-V3),
    section 2.1.1.
    """
    return (key_value_rank + rope_dim) * layers * tokens * bytes_each


def decode_seconds(
    parameters: float, cached_bytes: float, memory_bytes_per_second: float, bytes_each: float = 2.0
) -> float:
    """F65: least time of one decoding step of a batch, (wN + C)/B: all weights and all of the batch's cache are read.

    The memory is that of every GPU that shares the model, added up. Source: Pope et al. 2023, section 2.
    """
    return (parameters * bytes_each + cached_bytes) / memory_bytes_per_second


def decode_break_even_sequences(
    achieved_flops_per_second: float, memory_bytes_per_second: float, bytes_each: float = 2.0
) -> float:
    """F65: sequences decoded together from which 2N FLOPs for each take as long as reading wN bytes: wF/(2B)."""
    return bytes_each * achieved_flops_per_second / (2 * memory_bytes_per_second)


def rollout_gpus(gpus: float, rollout_gpu_seconds: float, training_gpu_seconds: float) -> float:
    """F66: GPUs of a pool to generate on, so that a batch takes as long to generate as to train on: G·R/(R + T)."""
    return gpus * rollout_gpu_seconds / (rollout_gpu_seconds + training_gpu_seconds)


def batch_idle_fraction(mean_seconds: float, longest_seconds: float) -> float:
    """F66: share of a synchronous rollout phase in which its slots stand idle, 1 − mean/longest.

    Every slot takes one rollout, and the next batch starts when the longest has ended.
    """
    return max(0.0, 1 - mean_seconds / longest_seconds)


def rollouts_admitted(batch: int, version: int, staleness: int) -> int:
    """F66: rollouts that may have been started while the trainer is at `version`, B·(v + η + 1).

    Each step takes `batch` of them in the order of their start, so that none is trained on more than `staleness`
    versions after it began. Source: Fu et al. 2025 (AReaL), section 5.1, there as ⌊(n − 1)/B⌋ ≤ v + η.
    """
    return batch * (version + staleness + 1)


def rank_cache_bytes(
    layers: int, key_value_heads: int, head_size: int, tokens: float, tensor: int, bytes_each: float = 2.0
) -> float:
    """F76: bytes of the cache on each of `tensor` ranks, 2·L·⌈g/t⌉·d·T·w.

    Heads of keys and values are dealt out whole: with more ranks than heads each head is held more than once, and the
    cache of a rank shrinks no further. Source: Pope et al. 2023, section 3.3.
    """
    return kv_cache_bytes(layers, -(-key_value_heads // tensor), head_size, tokens, bytes_each)


def tensor_decode_seconds(
    parameters: float,
    cached_bytes: float,
    memory_bytes_per_second: float,
    tensor: int,
    layers: int,
    all_reduce_seconds: float,
    bytes_each: float = 2.0,
) -> float:
    """F76: least time of one decoding step on `tensor` ranks, (wN + C)/(tB) + 2·L·a.

    `memory_bytes_per_second` is one rank's; `cached_bytes` is the cache of all ranks together. A layer needs two
    all-reduces, of a few hundred kilobytes and so of latency alone: `all_reduce_seconds` each, none with one rank.
    Source: Pope et al. 2023, sections 2 and 3; Shoeybi et al. 2019 for the two all-reduces.
    """
    exchanges = 2 * layers * all_reduce_seconds if tensor > 1 else 0.0
    return decode_seconds(parameters, cached_bytes, tensor * memory_bytes_per_second, bytes_each) + exchanges


def sequences_that_fit(
    memory_bytes: float, parameters: float, cache_bytes_per_sequence: float, bytes_each: float = 2.0
) -> float:
    """F76: whole sequences whose cache fits beside the weights, ⌊(M − wN)/c⌋, and none where the weights do not fit.

    `memory_bytes` is what all ranks of the model may fill. Source: by counting; Kwon et al. 2023 (vLLM), section 3.
    """
    return max(0.0, (memory_bytes - parameters * bytes_each) // cache_bytes_per_sequence)
