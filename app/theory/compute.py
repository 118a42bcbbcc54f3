"""FLOPs, the time and money they take, and how much of the hardware and of more GPUs is used."""

from __future__ import annotations

from collections.abc import Mapping

from app.units import factor_of
from labs.spec import SpecError, Violation

SECONDS_PER_HOUR = factor_of("h")

# F54: FLOPs per parameter and token of each part of training. A weight meets an activation once forward, its own
# gradient once and the input's gradient once, each a multiply and an add. Frozen weights need none of
# their own.
PASSES: Mapping[str, float] = {
    "forward": 2.0,
    "input-gradients": 2.0,
    "weight-gradients": 2.0,
    "backward": 4.0,
    "all": 6.0,
    "frozen-weights": 4.0,
}


def training_flops(parameters: float, tokens: float) -> float:
    """F30: 6ND: 2N forward and 4N backward per token, attention's own matmuls left out. Kaplan et al. 2020, 2.1."""
    return 6 * parameters * tokens


def pass_flops(parameters: float, tokens: float, part: str = "all") -> float:
    """F54: FLOPs of one part of training in matrix products with the weights, a key of `PASSES`, per 2N per token.

    Source: Kaplan et al. 2020, section 2.1 and table 1; backward by counting its two products per weight matrix.
    """
    return PASSES[part] * parameters * tokens


# FLOPs of attention's own products (scores and weighted values) per layer, token, hidden and key, 2·2 of them forward.
# A causal mask leaves half, if the kernel skips the masked half.
_ATTENTION_FORWARD: Mapping[str, float] = {"full": 4.0, "causal": 2.0}


def attention_flops(tokens: float, layers: int, hidden: int, sequence: int, mask: str = "full") -> float:
    """F31: training FLOPs of attention's own products, 12·L·h·s per token, or 6·L·h·s with the causal half skipped.

    They come on top of 6ND. Source: Chowdhery et al. 2022 (PaLM), appendix B.
    """
    return 3 * _ATTENTION_FORWARD[mask] * layers * hidden * sequence * tokens


def attention_factor(parameters: float, layers: int, hidden: int, sequence: int, mask: str = "full") -> float:
    """F31: training FLOPs with attention's own products over 6ND, 1 + 2Lhs/N (causal: 1 + Lhs/N)."""
    return 1 + attention_flops(1.0, layers, hidden, sequence, mask) / training_flops(parameters, 1.0)


def training_seconds(parameters: float, tokens: float, gpus: int, peak_flops_per_second: float, mfu: float) -> float:
    """F32: 6ND over what `gpus` deliver at a model FLOPs utilisation of `mfu` (0 to 1, of the dense peak)."""
    return training_flops(parameters, tokens) / (gpus * peak_flops_per_second * mfu)


def affordable_flops(gpus: int, seconds: float, peak_flops_per_second: float, mfu: float) -> float:
    """F32: model FLOPs `gpus` deliver in `seconds`, G·F·MFU·t."""
    return gpus * peak_flops_per_second * mfu * seconds


def gpu_seconds(parameters: float, tokens: float, peak_flops_per_second: float, mfu: float) -> float:
    """F32: GPU time of a training, 6ND/(F·MFU), in GPU-seconds; the number of GPUs cancels at a given MFU."""
    return training_seconds(parameters, tokens, 1, peak_flops_per_second, mfu)


def training_cost(gpus: float, seconds: float, price_per_gpu_hour: float) -> float:
    """What `gpus` rented for `seconds` cost, GPU-hours times price, in the price's currency."""
    return gpus * seconds / SECONDS_PER_HOUR * price_per_gpu_hour


def model_flops_utilisation(
    tokens_per_second: float, parameters: float, gpus: int, peak_flops_per_second: float
) -> float:
    """F33: MFU, 6N × tokens per second of the whole job over G·F. F is the dense peak.

    Source: Chowdhery et al. 2022 (PaLM), section 4.1 and appendix B, without attention's own products.
    """
    return training_flops(parameters, tokens_per_second) / (gpus * peak_flops_per_second)


def throughput(parameters: float, gpus: int, peak_flops_per_second: float, mfu: float) -> float:
    """F33: tokens per second of the whole job at an MFU, G·F·MFU/(6N)."""
    return gpus * peak_flops_per_second * mfu / training_flops(parameters, 1.0)


# Forward passes through the layers' weights that recomputation adds.
RECOMPUTED_FORWARDS: Mapping[str, float] = {"none": 0.0, "full": 1.0}


def hardware_flops_utilisation(mfu: float, recompute: str = "full") -> float:
    """F34: HFU, which counts recomputed FLOPs: 8N per token over 6N under full recomputation, so 4/3 MFU.

    Raises SpecError where that would be more than the hardware has.
    Source: Chowdhery et al. 2022 (PaLM), section 4.1; Korthikanti et al. 2022, section 6.
    """
    factor = (PASSES["all"] + RECOMPUTED_FORWARDS[recompute] * PASSES["forward"]) / PASSES["all"]
    if mfu * factor > 1:
        message = "With what is recomputed this is more than the peak."
        raise SpecError([Violation("mfu", mfu, message, f"at most {1 / factor:g}")])
    return mfu * factor


def recompute_flops(
    parameters: float, tokens: float, layers: int, hidden: int, sequence: int, recompute: str, mask: str = "full"
) -> float:
    """F34: FLOPs activation recomputation adds to a training step.

    `full` repeats the forward pass, 2N + 4Lhs per token; `selective` only attention's own products, 4Lhs (2Lhs where
    the causal half is skipped); `none` nothing. Source: Korthikanti et al. 2022, section 5.
    """
    core = attention_flops(tokens, layers, hidden, sequence, mask) / 3
    full = pass_flops(parameters, tokens, "forward") + core
    return {"none": 0.0, "selective": core, "full": full}[recompute]


def amdahl_speedup(serial: float, ranks: int) -> float:
    """F28: speed-up of a fixed problem on n ranks when a share `serial` does not parallelise, 1/(s + (1−s)/n).

    Source: Amdahl 1967. Bubbles and exposed communication are no constant share: they change with n.
    """
    return 1 / (serial + (1 - serial) / ranks)


def amdahl_efficiency(serial: float, ranks: int) -> float:
    """F28: Amdahl's speed-up per rank, 1/(1 + s(n−1))."""
    return 1 / (1 + serial * (ranks - 1))


def amdahl_serial_share(speedup: float, ranks: int) -> float:
    """F28: the serial share that explains a measured speed-up on n ranks, (n/S − 1)/(n − 1) (Karp and Flatt 1990).

    Raises SpecError for a single rank, which tells nothing, and for speed-ups below 1 or above n.
    """
    _check_speedup(speedup, ranks)
    return (ranks / speedup - 1) / (ranks - 1)


def gustafson_speedup(serial: float, ranks: int) -> float:
    """F29: scaled speed-up when the problem grows with the ranks, n − s(n−1). Source: Gustafson 1988."""
    return ranks - serial * (ranks - 1)


def gustafson_serial_share(speedup: float, ranks: int) -> float:
    """F29: the serial share that explains a scaled speed-up, (n − S)/(n − 1). Raises SpecError as in F28."""
    _check_speedup(speedup, ranks)
    return (ranks - speedup) / (ranks - 1)


def _check_speedup(speedup: float, ranks: int) -> None:
    if ranks < 2:
        raise SpecError([Violation("ranks", ranks, "One rank has no speed-up to explain.", "2 or more")])
    if not 1 <= speedup <= ranks:
        raise SpecError([Violation("speedup", speedup, f"{ranks} ranks do not give this.", f"1 to {ranks}")])
