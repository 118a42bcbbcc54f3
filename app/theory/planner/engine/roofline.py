"""How long one operation takes on one GPU, by the roofline (Williams et al. 2009): the larger of its arithmetic and
what it loads, and then what it stores, which a tile does when it has nothing left to compute.

A matrix product is computed in tiles dealt to the GPU's compute units in rounds; a last round that is not full and a
short inner dimension cost their share. Where the power limit is below what the peak draws, the clock falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from app.theory.hardware import GPUS, Gpu
from app.theory.planner.attention_kernels import KERNELS, AttentionRates, Kernel, kernels_on
from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.constants import FITTED, Constants
from labs.spec import Precision

TILE = 128 * 256  # outputs of the tile large products use (cuBLAS and CUTLASS, 16-bit)


@dataclass(frozen=True)
class Device:
    """One GPU as the model sees it, sustained rather than peak; `peak_flops_per_second` is what MFU divides by.
    `wide_flops_per_second` is for products that stay in 16 bits where others take fewer."""

    peak_flops_per_second: float
    matmul_flops_per_second: float
    wide_flops_per_second: float
    attention: AttentionRates
    memory_bytes_per_second: float
    compute_units: int | None


def device_of(
    gpu: Gpu,
    precision: Precision,
    peak_flops_per_second: float | None = None,
    constants: Constants = FITTED,
    kernel: Kernel | None = None,
) -> Device:
    """`gpu` at work in `precision`; a given peak replaces the data sheet's and keeps its sustained share.

    Attention, by `kernel` or the newest with a rate, and element-wise work stay in 16 bits where matrices are fp8.
    Raises SpecError for a precision the GPU has no peak for.
    """
    peak = peak_flops_per_second or gpu.peak(precision)
    share = sustained_share(gpu.peaks["16-bit"], gpu.power_watts, constants)
    if precision == "fp32":
        share = constants.matmul_efficiency  # far from the power limit
    attention = _attention_rates(
        gpu, kernel or kernels_on(gpu.generation)[-1], min(peak, gpu.peaks["16-bit"]), constants
    )
    memory = gpu.memory_bytes_per_second * constants.memory_efficiency
    wide = peak if precision not in CASTS else min(peak, gpu.peaks["16-bit"])
    return Device(peak, peak * share, wide * share, attention, memory, gpu.compute_units)


@dataclass(frozen=True)
class Sustained:
    """What was measured of a device: FLOP/s of products in `precision` and of attention forward, bytes a second."""

    matmul_flops: float | None
    attention_flops: float | None
    memory_bytes_per_second: float | None
    precision: Precision | None


def measured_device(sustained: Sustained) -> Device:
    """A device of which nothing is known but what was measured: MFU is of the measured rate."""
    flops, memory_rate = sustained.matmul_flops, sustained.memory_bytes_per_second
    assert flops is not None, "the request was checked"
    assert memory_rate is not None, "the request was checked"
    attention = sustained.attention_flops or flops
    rates = AttentionRates((attention, attention), (attention, attention))
    return Device(flops, flops, flops, rates, memory_rate, None)


def calibrated(device: Device, same: Device, sustained: Sustained) -> Device:
    """`device` with its rates as measured: products in proportion, where `same` is the device in the precision that was
    measured; attention by its own rate, or in the same proportion."""
    products = sustained.matmul_flops / same.matmul_flops_per_second if sustained.matmul_flops else 1.0
    ahead = device.attention.forward[1]
    attention = sustained.attention_flops / ahead if sustained.attention_flops else products
    return replace(
        device,
        matmul_flops_per_second=device.matmul_flops_per_second * products,
        wide_flops_per_second=device.wide_flops_per_second * products,
        attention=device.attention.times(attention),
        memory_bytes_per_second=sustained.memory_bytes_per_second or device.memory_bytes_per_second,
    )


def _attention_rates(gpu: Gpu, kernel: Kernel, peak_flops_per_second: float, constants: Constants) -> AttentionRates:
    """Rates were measured on the part with the generation's full power: one held to less follows its clock."""
    shares = KERNELS[kernel, gpu.generation]
    full = max((each.power_watts or 0.0 for each in GPUS.values() if each.peaks == gpu.peaks), default=0.0)
    rates = []
    for share, narrow in ((shares.forward, shares.narrow[0]), (shares.backward, shares.narrow[1])):
        drawn = gpu.peaks["16-bit"] * share * constants.joules_per_flop
        clock = (
            1.0 if gpu.power_watts is None else min(1.0, sqrt(gpu.power_watts / drawn)) / min(1.0, sqrt(full / drawn))
        )
        rate = share * clock * peak_flops_per_second
        rates.append((rate * narrow, rate))
    return AttentionRates(*rates)


def sustained_share(peak_16_bit_flops_per_second: float, power_watts: float | None, constants: Constants) -> float:
    """Share of the dense peak that large products keep up for hours.

    The draw at full clock is the peak's FLOPs times their energy; voltage falls with the clock, so the clock follows
    about the square root of the power there is.
    """
    efficiency = constants.matmul_efficiency
    if power_watts is None:
        return efficiency
    drawn = peak_16_bit_flops_per_second * efficiency * constants.joules_per_flop
    return efficiency * min(1.0, sqrt(power_watts / drawn))


def matmul_seconds(
    device: Device, m: float, n: float, k: float, bytes_each: float, count: float = 1.0, is_wide: bool = False
) -> float:
    """`count` products of [m, k] × [k, n], in 16 bits at least if `is_wide`. The last round of tiles is on average half
    empty."""
    arithmetic = 2.0 * m * n * k * count / (device.wide_flops_per_second if is_wide else device.matmul_flops_per_second)
    if device.compute_units is not None:
        rounds = m * n * count / (TILE * device.compute_units)
        arithmetic *= 1.0 + 0.5 / rounds if rounds > 0.5 else 1.0 / rounds
    stored = bytes_each * count * m * n / device.memory_bytes_per_second
    loaded = bytes_each * count * (m * k + k * n) / device.memory_bytes_per_second
    return max(arithmetic, loaded) + stored


def stream_seconds(device: Device, size_bytes: float) -> float:
    """Element-wise work: the bytes it reads and writes."""
    return size_bytes / device.memory_bytes_per_second
