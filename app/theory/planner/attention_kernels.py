"""Fused attention kernels by GPU generation: what share of the 16-bit peak they reach, forward and backward apart.

A kernel is timed by what it computes: the causal half of the scores, two products forward and five backward, which
computes the scores again (Dao et al. 2022, section 3.1). Published rates count the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kernel = Literal["flash-1", "flash-2", "flash-3", "cudnn"]
AttentionKernel = Literal["auto", "flash-1", "flash-2", "flash-3", "cudnn"]
NARROW, WIDE = 64.0, 128.0  # head dimensions that sources print
# Under a causal mask short sequences are slower: rates grow with the length s as s/(s + 400). Read off the causal
# forward rates of FlashAttention-2 and 3 at 512 to 16k tokens (Shah et al. 2024, figure 5: 191 to 335, 292 to 616).
CAUSAL_TOKENS = 400.0


@dataclass(frozen=True)
class KernelShares:
    """Shares of the dense 16-bit peak on long sequences with heads of 128; `narrow` are what is left of them with
    heads of 64, (forward, backward)."""

    forward: float
    backward: float
    narrow: tuple[float, float]
    source: str


_SHAH = (
    "Shah et al. 2024 (FlashAttention-3), figures 5 and 6: H100 SXM, 16k tokens, forward of FlashAttention causal, the "
    "rest without a mask, of 989 TFLOP/s"
)
_DAO = "Dao 2023 (FlashAttention-2), sections 1 and 4.1: A100, up to 73 % forward and 63 % backward"
_DAO_1 = "Dao 2023 (FlashAttention-2), section 1: FlashAttention reaches 30 to 50 % forward and 25 to 35 % backward"
_SAME = "; taken for this generation too, for which no rate is published"
# Under a causal mask both reach a little less forward: 335 and 616 TFLOP/s at 16k tokens, which is 400 tokens short.
_AT_LENGTH = 1 + CAUSAL_TOKENS / 16384
_FLASH_2_HOPPER = (335 * _AT_LENGTH / 989, 322 / 989, (324 / 370, 264 / 291))
_FLASH_2_AMPERE = (0.73, 0.63, (324 / 370, 264 / 291))
_FLASH_1 = (0.40, 0.30, (324 / 370, 264 / 291))
_CUDNN = (595 / 989, 516 / 989, (413 / 595, 395 / 465))

KERNELS: Mapping[tuple[Kernel, str], KernelShares] = {
    ("flash-1", "volta"): KernelShares(*_FLASH_1, _DAO_1 + _SAME),
    ("flash-1", "ampere"): KernelShares(*_FLASH_1, _DAO_1),
    ("flash-1", "ada"): KernelShares(*_FLASH_1, _DAO_1 + _SAME),
    # The same instructions as its successor, and so as much slower than it as on the generation before.
    ("flash-1", "hopper"): KernelShares(
        _FLASH_2_HOPPER[0] * _FLASH_1[0] / _FLASH_2_AMPERE[0],
        _FLASH_2_HOPPER[1] * _FLASH_1[1] / _FLASH_2_AMPERE[1],
        _FLASH_1[2],
        _DAO_1 + ", relative to its successor, whose rate on H100 is that of Shah et al. 2024",
    ),
    ("flash-2", "ampere"): KernelShares(*_FLASH_2_AMPERE, _DAO),
    ("flash-2", "ada"): KernelShares(*_FLASH_2_AMPERE, _DAO + _SAME),
    ("flash-2", "hopper"): KernelShares(*_FLASH_2_HOPPER, _SHAH),
    ("flash-2", "blackwell"): KernelShares(*_FLASH_2_HOPPER, _SHAH + _SAME),
    ("flash-2", "cdna3"): KernelShares(*_FLASH_2_HOPPER, _SHAH + _SAME),
    ("flash-2", "tpu"): KernelShares(*_FLASH_2_HOPPER, _SHAH + _SAME),
    ("flash-3", "hopper"): KernelShares(616 * _AT_LENGTH / 989, 561 / 989, (497 / 648, 422 / 501), _SHAH),
    ("cudnn", "hopper"): KernelShares(*_CUDNN, _SHAH),
    ("cudnn", "blackwell"): KernelShares(*_CUDNN, _SHAH + _SAME),
}


def kernels_on(generation: str) -> tuple[Kernel, ...]:
    """The kernels with a rate on a generation of GPUs."""
    return tuple(kernel for kernel, where in KERNELS if where == generation)


def kernel_of(asked: AttentionKernel, preferred: tuple[Kernel, ...], generation: str) -> Kernel:
    """What `asked` stands for: the framework's first choice that runs on this generation, or the newest that does.

    Raises KeyError for a kernel that does not run there.
    """
    there = kernels_on(generation)
    if asked != "auto":
        if asked not in there:
            raise KeyError(asked)
        return asked
    return next((kernel for kernel in preferred if kernel in there), there[-1])


@dataclass(frozen=True)
class AttentionRates:
    """FLOP/s of a kernel on one GPU on long sequences: (heads of 64, heads of 128)."""

    forward: tuple[float, float]
    backward: tuple[float, float]

    def times(self, factor: float) -> AttentionRates:
        """Every rate `factor` times as high."""
        (a, b), (c, d) = self.forward, self.backward
        return AttentionRates((a * factor, b * factor), (c * factor, d * factor))


def attention_seconds(
    rates: AttentionRates, scores: float, sequence: float, score_dim: int, value_dim: int
) -> tuple[float, float]:
    """(forward, backward) over `scores` query-key pairs that a causal mask leaves of sequences of `sequence` tokens."""
    flops = 2.0 * scores * (score_dim + value_dim)
    shortness = 1.0 + CAUSAL_TOKENS / sequence
    width = (score_dim + value_dim) / 2
    return (
        flops * shortness / _at_width(rates.forward, width),
        2.5 * flops * shortness / _at_width(rates.backward, width),
    )


def _at_width(rates: tuple[float, float], width: float) -> float:
    """Softmax and loads cost the same for every score, products cost its width: 1/rate is linear in 1/width. Wider
    heads than 128 are no faster."""
    narrow, wide = (1.0 / rate for rate in rates)
    each = (narrow - wide) / (1.0 / NARROW - 1.0 / WIDE)
    return 1.0 / (wide + each * (1.0 / min(width, WIDE) - 1.0 / WIDE))
