"""Generating tokens, and reinforcement learning's split of GPUs between rollout and training."""

from __future__ import annotations

from dataclasses import replace

from app.theory import generation
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import ACHIEVED, BYTES_EACH, LAYERS, PARAMETERS, TENSOR, Inputs, by_case, plain

_MEMORY = Input("memory_bytes_per_second", "Memory bandwidth", "B", "bytes_per_second", minimum=1, maximum=1e17)
_HEADS = Input("key_value_heads", "Key-value heads", "g", minimum=1, maximum=1e4, integer=True)
_HEAD_SIZE = Input("head_size", "Head size", "d", minimum=1, maximum=1e4, integer=True)
_TOKENS = Input("tokens", "Tokens of all sequences", "T", "tokens", minimum=1, maximum=1e12)
_CACHED = Input("cached_bytes", "Cache of the batch", "C", "bytes", minimum=0, maximum=1e15)
_POPE = "Pope et al. 2023 (Efficiently scaling transformer inference), section 2"
_AREAL = "Fu et al. 2025 (AReaL), section 5.1"


def _work(name: str, label: str, symbol: str) -> Input:
    return Input(name, label, symbol, "seconds", minimum=1e-6, maximum=1e12)


def _tensor_decode_latex(inputs: Inputs) -> tuple[str, str]:
    read = (
        r"\frac{w\,N + C}{t\,B}",
        r"\frac{{{bytes_each} \times {parameters} + {cached_bytes}}}{{{tensor} \times {memory_bytes_per_second}}}",
    )
    if inputs["tensor"] == 1:
        return read
    return rf"{read[0]} + 2\,L\,a", rf"{read[1]} + 2 \times {{layers}} \times {{all_reduce_seconds}}"


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F65",
        "kv_cache",
        "Key-value cache",
        generation.kv_cache_bytes,
        (LAYERS, _HEADS, _HEAD_SIZE, _TOKENS, BYTES_EACH),
        "bytes",
        "GB",
        plain(
            r"2\,L\,g\,d\,T\,w",
            r"2 \times {layers} \times {key_value_heads} \times {head_size} \times {tokens} \times {bytes_each}",
        ),
        "Shazeer 2019 (multi-query attention); Ainslie et al. 2023 (GQA)",
        "Keys and values. Latent attention keeps a compressed vector instead, and this does not count it.",
        example={"layers": 32, "key_value_heads": 8, "head_size": 128, "tokens": 262144},
    ),
    Formula(
        "F62",
        "latent_cache",
        "Cache of latent attention",
        generation.latent_cache_bytes,
        (
            LAYERS,
            Input("key_value_rank", "Latent of keys and values", "d_c", minimum=0, maximum=1e5, integer=True),
            Input("rope_dim", "Rotated key", "d_R", minimum=0, maximum=1e5, integer=True),
            _TOKENS,
            BYTES_EACH,
        ),
        "bytes",
        "GB",
        plain(
            r"(d_c + d_R)\,L\,T\,w",
            r"({key_value_rank} + {rope_dim}) \times {layers} \times {tokens} \times {bytes_each}",
        ),
        "DeepSeek-AI 2024 (DeepSeek-V3), section 2.1.1",
        "One latent serves keys and values of all heads. Tensor parallelism does not divide it.",
        example={"layers": 61, "key_value_rank": 512, "rope_dim": 64, "tokens": 1},
    ),
    Formula(
        "F65",
        "decode_time",
        "Least time of a decoding step",
        generation.decode_seconds,
        (PARAMETERS, _CACHED, _MEMORY, BYTES_EACH),
        "seconds",
        "ms",
        plain(
            r"\frac{w\,N + C}{B}",
            r"\frac{{{bytes_each} \times {parameters} + {cached_bytes}}}{{{memory_bytes_per_second}}}",
        ),
        _POPE,
        "One token for every sequence of the batch. Below the break-even batch; launches and collectives come on top.",
        example={"parameters": 8e9, "cached_bytes": 34359738368, "memory_bytes_per_second": 3.35e12},
    ),
    Formula(
        "F65",
        "decode_break_even",
        "Sequences that make decoding as long in compute as in weights read",
        generation.decode_break_even_sequences,
        (ACHIEVED, _MEMORY, BYTES_EACH),
        "count",
        "",
        plain(
            r"\frac{w\,\eta F}{2\,B}",
            r"\frac{{{bytes_each} \times {achieved_flops_per_second}}}{{2 \times {memory_bytes_per_second}}}",
        ),
        "wN bytes against 2N FLOPs for each sequence",
        "The cache is left out; it grows with the batch, so that long contexts stay bound by memory at any batch.",
        example={"achieved_flops_per_second": 9.89e14, "memory_bytes_per_second": 3.35e12},
    ),
    Formula(
        "F66",
        "rollout_gpus",
        "GPUs to generate on",
        generation.rollout_gpus,
        (
            Input("gpus", "GPUs", "G", minimum=1, maximum=1e7),
            _work("rollout_gpu_seconds", "GPU time to generate a batch", "R"),
            _work("training_gpu_seconds", "GPU time to train on it", "T"),
        ),
        "count",
        "GPUs",
        plain(
            r"G\,\frac{R}{R + T}",
            r"{gpus} \times \frac{{{rollout_gpu_seconds}}}{{{rollout_gpu_seconds} + {training_gpu_seconds}}}",
        ),
        "R/x = T/(G − x)",
        "Both run at the same time, and neither waits. GPU time is taken not to depend on how many GPUs share it.",
        example={"gpus": 64, "rollout_gpu_seconds": 3000, "training_gpu_seconds": 1000},
    ),
    Formula(
        "F66",
        "rollout_idle",
        "Idle share of a synchronous rollout phase",
        generation.batch_idle_fraction,
        (
            _work("mean_seconds", "Mean time of a rollout", r"\bar{t}"),
            _work("longest_seconds", "Time of the longest", r"t_{\mathrm{most}}"),
        ),
        "fraction",
        "%",
        plain(
            r"\max(0, 1 - \frac{\bar{t}}{t_{\mathrm{most}}})",
            r"\max(0, 1 - \frac{{{mean_seconds}}}{{{longest_seconds}}})",
        ),
        "by counting slots",
        "One rollout in each slot, no refill. A slot that empties early also makes the others' steps a little faster.",
        example={"mean_seconds": 100, "longest_seconds": 800},
    ),
    Formula(
        "F66",
        "rollouts_admitted",
        "Rollouts that may have been started",
        generation.rollouts_admitted,
        (
            Input("batch", "Rollouts per training step", "B", minimum=1, maximum=1e9, integer=True),
            Input("version", "Version the trainer is at", "v", minimum=0, maximum=1e9, integer=True),
            Input("staleness", "Greatest staleness", r"\eta", minimum=0, maximum=1e6, integer=True),
        ),
        "count",
        "",
        plain(r"B\,(v + \eta + 1)", r"{batch} \times ({version} + {staleness} + 1)"),
        _AREAL,
        "Counted from the first, trained on in the order they were started.",
        example={"batch": 512, "version": 10, "staleness": 4},
    ),
    Formula(
        "F76",
        "rank_cache",
        "Key-value cache of a tensor-parallel rank",
        generation.rank_cache_bytes,
        (LAYERS, _HEADS, _HEAD_SIZE, _TOKENS, TENSOR, BYTES_EACH),
        "bytes",
        "GB",
        plain(
            r"2\,L\,\lceil \frac{g}{t} \rceil\,d\,T\,w",
            r"2 \times {layers} \times \lceil \frac{{{key_value_heads}}}{{{tensor}}} \rceil \times {head_size}"
            r" \times {tokens} \times {bytes_each}",
        ),
        f"{_POPE} and 3.3",
        "Heads are dealt out whole. With more ranks than heads of keys and values each head is held several times.",
        example={"layers": 80, "key_value_heads": 8, "head_size": 128, "tokens": 131072, "tensor": 8},
    ),
    Formula(
        "F76",
        "tensor_decode",
        "Least time of a decoding step on several GPUs",
        generation.tensor_decode_seconds,
        (
            PARAMETERS,
            _CACHED,
            replace(_MEMORY, label="Memory bandwidth of one GPU"),
            TENSOR,
            LAYERS,
            Input("all_reduce_seconds", "One small all-reduce", "a", "seconds", minimum=0, maximum=1),
            BYTES_EACH,
        ),
        "seconds",
        "ms",
        by_case(_tensor_decode_latex),
        f"{_POPE} and 3; Shoeybi et al. 2019 (Megatron-LM) for two all-reduces a layer",
        "An all-reduce of a decoding step is so small that only its latency counts. Launches come on top.",
        example={
            "parameters": 70e9,
            "cached_bytes": 0,
            "memory_bytes_per_second": 3.35e12,
            "tensor": 8,
            "layers": 80,
            "all_reduce_seconds": 1e-5,
        },
    ),
    Formula(
        "F76",
        "sequences_that_fit",
        "Sequences whose cache fits",
        generation.sequences_that_fit,
        (
            Input("memory_bytes", "Memory of all GPUs", "M", "bytes", minimum=1, maximum=1e18),
            PARAMETERS,
            Input("cache_bytes_per_sequence", "Cache of a sequence", "c", "bytes", minimum=1, maximum=1e15),
            BYTES_EACH,
        ),
        "count",
        "sequences",
        plain(
            r"\max(0, \lfloor \frac{M - w\,N}{c} \rfloor)",
            r"\max(0, \lfloor \frac{{{memory_bytes} - {bytes_each} \times {parameters}}}"
            r"{{{cache_bytes_per_sequence}}} \rfloor)",
        ),
        "by counting; Kwon et al. 2023 (vLLM), section 3",
        "Paged, so that nothing is lost between sequences. Activations and graphs want a few gigabytes of M.",
        example={"memory_bytes": 512e9, "parameters": 70e9, "cache_bytes_per_sequence": 2.68e9},
    ),
)
