"""Accelerators and links as data: dense peaks, memory as sold and as the driver reports it, bandwidths per direction.

Where a vendor prints only a peak with sparsity, half of it stands here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.units import factor_of
from labs.spec import Precision, SpecError, Violation

Format = Literal["nvfp4", "mxfp8", "fp8", "16-bit", "tf32", "fp32"]
TFLOPS, GB, GIB = factor_of("TFLOP/s"), factor_of("GB"), factor_of("GiB")

# What a training precision multiplies its matrices in. fp32 is the peak without tensor cores: TF32 is another format.
_FORMATS: Mapping[str, Format] = {
    "bf16-mixed": "16-bit",
    "bf16": "16-bit",
    "fp16-mixed": "16-bit",
    "fp32": "fp32",
    "fp8-mixed": "fp8",
    "mxfp8-mixed": "mxfp8",
    "nvfp4-mixed": "nvfp4",
}


@dataclass(frozen=True)
class Gpu:
    """One accelerator. FLOP/s are dense; link bandwidths are per GPU and direction, in bytes per second.

    `peaks` has the formats the vendor prints a figure for; "fp32" is without tensor cores. `marketing_bytes` is the
    decimal size on the box; `capacity_bytes` is what the driver reports to the framework
    (`torch.cuda.get_device_properties().total_memory`), in GiB a little less than the chips have. `scale_up` names the
    link inside the node or pod and `scale_up_bytes_per_second` is all of it together; it joins
    `scale_up_gpus`. The network card of a GPU is no
    part of it: `nic_bytes_per_second` is what is typically put beside one. `power_watts` is the limit as sold.
    """

    name: str
    title: str
    maker: str
    peaks: Mapping[Format, float] = field(hash=False)
    marketing_bytes: float
    capacity_bytes: float
    memory_bytes_per_second: float
    scale_up: str
    scale_up_bytes_per_second: float
    nic_bytes_per_second: float
    power_watts: float | None  # None where the vendor prints none
    compute_units: int | None  # streaming multiprocessors or the like: what tiles are dealt to
    source: str
    generation: str  # of the architecture: which kernels run on it, and how well
    scale_up_gpus: int = 8  # of a node as sold, a rack or a pod

    def peak(self, precision: Precision) -> float:
        """Dense FLOP/s of matrix products in `precision`; fp32 without tensor cores (TF32 is in `peaks`).

        Raises SpecError for what this GPU has no figure for, naming those that have.
        """
        form = _FORMATS.get(precision)
        if form is None:
            message = f"{precision!r} is no precision known here."
            raise SpecError([Violation("precision", precision, message, ", ".join(_FORMATS))])
        if form not in self.peaks:
            having = ", ".join(gpu.name for gpu in GPUS.values() if form in gpu.peaks)
            message = f"{self.title} has no published peak in {form}; these have: {having}."
            accepted = ", ".join(name for name, needed in _FORMATS.items() if needed in self.peaks)
            raise SpecError([Violation("precision", precision, message, accepted)])
        return self.peaks[form]

    @property
    def bf16_flops_per_second(self) -> float:
        """The dense 16-bit peak: bf16, or fp16 on what has no bf16 (V100)."""
        return self.peaks["16-bit"]

    @property
    def nvlink_bytes_per_second(self) -> float:
        """The scale-up link under the name most of these GPUs give it."""
        return self.scale_up_bytes_per_second


@dataclass(frozen=True)
class Interconnect:
    """A link by name: bytes per second in one direction, and the typical cost of one message.

    The bandwidth is the vendor's; the latency is an order of magnitude as a collective library sees it, software
    included, and differs between systems by a factor of a few.
    """

    name: str
    title: str
    bytes_per_second: float
    typical_latency_seconds: float
    source: str


def _gpu(
    name: str,
    title: str,
    maker: str,
    peaks: Mapping[Format, float],
    memory: tuple[float, float, float],
    scale_up: tuple[str, float],
    nic_gb: float,
    watts: float | None,
    units: int | None,
    source: str,
) -> Gpu:
    """`peaks` in TFLOP/s; `memory` as GB sold, GiB reported and GB/s; links in GB/s per direction."""
    gb, gib, speed = memory
    flops = {form: tflops * TFLOPS for form, tflops in peaks.items()}
    link, link_gb = scale_up
    return Gpu(
        name,
        title,
        maker,
        flops,
        gb * GB,
        gib * GIB,
        speed * GB,
        link,
        link_gb * GB,
        nic_gb * GB,
        watts,
        units,
        source,
        _GENERATIONS[name.partition("-")[0]],
        _DOMAINS.get(name, 8),
    )


_GENERATIONS: Mapping[str, str] = {
    "v100": "volta",
    "a100": "ampere",
    "rtx": "ada",
    "h100": "hopper",
    "h200": "hopper",
    "h800": "hopper",
    "b200": "blackwell",
    "gb200": "blackwell",
    "b300": "blackwell",
    "gb300": "blackwell",
    "mi300x": "cdna3",
    "tpu": "tpu",
}
# GPUs that the scale-up link joins, where it leaves the usual node of eight: a rack, or a slice of a pod.
_DOMAINS: Mapping[str, int] = {"gb200-186gb": 72, "gb300-279gb": 72, "tpu-v5e": 256, "tpu-v6e": 256, "tpu-v5p": 64}
_V100: Mapping[Format, float] = {"16-bit": 125, "fp32": 15.7}
_A100: Mapping[Format, float] = {"16-bit": 312, "tf32": 156, "fp32": 19.5}
_H100: Mapping[Format, float] = {"fp8": 1979, "16-bit": 989, "tf32": 494.7, "fp32": 67}
_H100_PCIE: Mapping[Format, float] = {"fp8": 1513, "16-bit": 756, "tf32": 378, "fp32": 51}
_B200: Mapping[Format, float] = {"nvfp4": 9000, "mxfp8": 4500, "fp8": 4500, "16-bit": 2250, "tf32": 1125, "fp32": 75}
_GB200: Mapping[Format, float] = {"nvfp4": 10000, "mxfp8": 5000, "fp8": 5000, "16-bit": 2500, "tf32": 1250, "fp32": 80}
_B300: Mapping[Format, float] = {"nvfp4": 13500, "mxfp8": 4500, "fp8": 4500, "16-bit": 2250, "tf32": 1125, "fp32": 75}
_GB300: Mapping[Format, float] = {"nvfp4": 15000, "mxfp8": 5000, "fp8": 5000, "16-bit": 2500, "tf32": 1250, "fp32": 80}
_MI300X: Mapping[Format, float] = {"fp8": 2614.9, "16-bit": 1307.4, "tf32": 653.7, "fp32": 163.4}
_V5P: Mapping[Format, float] = {"fp8": 459, "16-bit": 459}
_V5E: Mapping[Format, float] = {"16-bit": 197}
_V6E: Mapping[Format, float] = {"16-bit": 918}
_RTX_4090: Mapping[Format, float] = {"fp8": 330.3, "16-bit": 165.2, "tf32": 82.6, "fp32": 82.6}

_V100_SHEET = "NVIDIA V100 data sheet; 16-bit peak is fp16, it has no bf16; two GPUs or more share a network card"
_A100_SHEET = "NVIDIA A100 data sheet, dense"
_H100_SHEET = "NVIDIA H100 data sheet, dense"
_H100_96_SOURCE = (
    "Published torchtitan results (Liang et al. 2024): HBM2e of about 2.4 TB/s, capped at 500 W; the peaks are those "
    "of the 700 W part, against which its MFU is counted and which it cannot hold"
)
_H800_SOURCE = (
    "NVIDIA H100 data sheet but for NVLink, which is held to 400 GB/s both ways (DeepSeek-AI 2024 measures 160 GB/s)"
)
_H100_PCIE_SHEET = (
    "NVIDIA H100 data sheet, PCIe, dense; NVLink bridges of 300 GB/s join pairs only; 200 Gb/s network card assumed"
)
_H200_SHEET = "NVIDIA H200 data sheet, dense"
_B200_SHEET = "NVIDIA Blackwell data sheet, HGX B200, dense"
_GB200_SHEET = "NVIDIA Blackwell data sheet, GB200 NVL72, per GPU, dense; its NVLink joins a rack of 72"
_B300_SHEET = "NVIDIA HGX B300 page, an eighth of the board, dense; a ConnectX-8 port of 800 Gb/s beside each GPU"
_GB300_SHEET = (
    "NVIDIA GB300 NVL72 page, a 72nd of the rack, dense; its NVLink joins the rack, and a ConnectX-8 port of 800 Gb/s "
    "is beside each GPU"
)
_RTX_SHEET = "NVIDIA Ada architecture white paper, fp32 accumulation; no NVLink; 25 Gb/s network card assumed"
_MI300X_SHEET = "AMD Instinct MI300X data sheet, dense; seven links of 64 GB/s, one to each other GPU of a node"
_V5P_PAGE = (
    "Google Cloud TPU v5p page, which prints fp8 as no faster than bf16 and neither fp32 nor power; the six links of a "
    "3D torus together, two of them along each axis"
)

_V5E_PAGE = (
    "Google Cloud TPU v5e page, which prints int8 but neither fp8, fp32 nor power; the four links of a 2D torus of up "
    "to 256 chips together, and a 256th of the 6.4 Tb/s between pods"
)
_V6E_PAGE = (
    "Google Cloud TPU v6e page, which prints int8 but neither fp8, fp32 nor power; the four links of a 2D torus of up "
    "to 256 chips together, and a chip's share of its host's four cards of 200 Gb/s"
)

GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        _gpu(
            "v100-16gb",
            "V100 SXM, 16 GB",
            "NVIDIA",
            _V100,
            (16, 15.7, 900),
            ("NVLink 2", 150),
            12.5,
            300,
            80,
            _V100_SHEET,
        ),
        _gpu(
            "v100-32gb",
            "V100 SXM, 32 GB",
            "NVIDIA",
            _V100,
            (32, 31.7, 900),
            ("NVLink 2", 150),
            12.5,
            300,
            80,
            _V100_SHEET,
        ),
        _gpu(
            "a100-40gb",
            "A100 SXM, 40 GB",
            "NVIDIA",
            _A100,
            (40, 39.4, 1555),
            ("NVLink 3", 300),
            25,
            400,
            108,
            _A100_SHEET,
        ),
        _gpu(
            "a100-80gb",
            "A100 SXM, 80 GB",
            "NVIDIA",
            _A100,
            (80, 79.1, 2039),
            ("NVLink 3", 300),
            25,
            400,
            108,
            _A100_SHEET,
        ),
        _gpu(
            "h100-80gb",
            "H100 SXM, 80 GB",
            "NVIDIA",
            _H100,
            (80, 79.1, 3350),
            ("NVLink 4", 450),
            50,
            700,
            132,
            _H100_SHEET,
        ),
        _gpu(
            "h100-96gb",
            "H100 SXM, 96 GB HBM2e, 500 W",
            "NVIDIA",
            _H100,
            (96, 95.0, 2400),
            ("NVLink 4", 450),
            50,
            500,
            132,
            _H100_96_SOURCE,
        ),
        _gpu(
            "h800-80gb",
            "H800 SXM, 80 GB",
            "NVIDIA",
            _H100,
            (80, 79.1, 3350),
            ("NVLink 4", 200),
            50,
            700,
            132,
            _H800_SOURCE,
        ),
        _gpu(
            "h100-pcie-80gb",
            "H100 PCIe, 80 GB",
            "NVIDIA",
            _H100_PCIE,
            (80, 79.1, 2000),
            ("PCIe 5 x16", 64),
            25,
            350,
            114,
            _H100_PCIE_SHEET,
        ),
        _gpu(
            "h200-141gb",
            "H200 SXM, 141 GB",
            "NVIDIA",
            _H100,
            (141, 139.8, 4800),
            ("NVLink 4", 450),
            50,
            700,
            132,
            _H200_SHEET,
        ),
        _gpu(
            "b200-180gb",
            "B200 SXM, 180 GB",
            "NVIDIA",
            _B200,
            (180, 178.4, 7700),
            ("NVLink 5", 900),
            50,
            1000,
            148,
            _B200_SHEET,
        ),
        _gpu(
            "gb200-186gb",
            "GB200, 186 GB",
            "NVIDIA",
            _GB200,
            (186, 184.3, 8000),
            ("NVLink 5", 900),
            50,
            1200,
            148,
            _GB200_SHEET,
        ),
        _gpu(
            "b300-270gb",
            "B300 SXM, 270 GB",
            "NVIDIA",
            _B300,
            (270, 268.6, 7700),
            ("NVLink 5", 900),
            100,
            1100,
            160,
            _B300_SHEET,
        ),
        _gpu(
            "gb300-279gb",
            "GB300, 279 GB",
            "NVIDIA",
            _GB300,
            (279, 277.5, 8000),
            ("NVLink 5", 900),
            100,
            1400,
            160,
            _GB300_SHEET,
        ),
        _gpu(
            "rtx-4090",
            "GeForce RTX 4090, 24 GB",
            "NVIDIA",
            _RTX_4090,
            (24, 23.6, 1008),
            ("PCIe 4 x16", 32),
            3.125,
            450,
            128,
            _RTX_SHEET,
        ),
        _gpu(
            "mi300x-192gb",
            "Instinct MI300X, 192 GB",
            "AMD",
            _MI300X,
            (192, 191.9, 5300),
            ("Infinity Fabric", 448),
            50,
            750,
            304,
            _MI300X_SHEET,
        ),
        _gpu(
            "tpu-v5e",
            "TPU v5e, 16 GB",
            "Google",
            _V5E,
            (16, 16.0, 819),
            ("ICI", 200),
            25 / 8,
            None,
            None,
            _V5E_PAGE,
        ),
        _gpu(
            "tpu-v6e",
            "TPU v6e (Trillium), 32 GB",
            "Google",
            _V6E,
            (32, 32.0, 1638),
            ("ICI", 400),
            12.5,
            None,
            None,
            _V6E_PAGE,
        ),
        _gpu(
            "tpu-v5p",
            "TPU v5p, 95 GB",
            "Google",
            _V5P,
            (95, 95.0, 2765),
            ("ICI", 600),
            6.25,
            None,
            None,
            _V5P_PAGE,
        ),
    )
}

_NVLINK = "NVIDIA data sheets print both directions together, twice this; latency typical"
_PCIE = "PCI-SIG raw rate of 16 lanes; 75 to 85 % of it is reached; latency typical"
_INFINIBAND = "NVIDIA InfiniBand data sheets, one port; latency typical"
_SOCKETS = "IEEE 802.3 line rate; latency typical of TCP sockets"

LINKS: Mapping[str, Interconnect] = {
    link.name: link
    for link in (
        Interconnect("nvlink-2", "NVLink 2 (V100)", 150 * GB, 2e-6, _NVLINK),
        Interconnect("nvlink-3", "NVLink 3 (A100)", 300 * GB, 2e-6, _NVLINK),
        Interconnect("nvlink-4", "NVLink 4 (H100, H200)", 450 * GB, 2e-6, _NVLINK),
        Interconnect("nvlink-5", "NVLink 5 (B200)", 900 * GB, 2e-6, _NVLINK),
        Interconnect("pcie-3-x16", "PCIe 3, 16 lanes", 16 * GB, 3e-6, _PCIE),
        Interconnect("pcie-4-x16", "PCIe 4, 16 lanes", 32 * GB, 3e-6, _PCIE),
        Interconnect("pcie-5-x16", "PCIe 5, 16 lanes", 64 * GB, 3e-6, _PCIE),
        Interconnect("infiniband-hdr", "InfiniBand HDR, 200 Gb/s", 25 * GB, 5e-6, _INFINIBAND),
        Interconnect("infiniband-ndr", "InfiniBand NDR, 400 Gb/s", 50 * GB, 5e-6, _INFINIBAND),
        Interconnect("infiniband-xdr", "InfiniBand XDR, 800 Gb/s", 100 * GB, 5e-6, _INFINIBAND),
        Interconnect("ethernet-25g", "Ethernet, 25 Gb/s", 3.125 * GB, 30e-6, _SOCKETS),
        Interconnect("ethernet-100g", "Ethernet, 100 Gb/s", 12.5 * GB, 30e-6, _SOCKETS),
        Interconnect(
            "ethernet-400g",
            "Ethernet with RDMA (RoCE), 400 Gb/s",
            50 * GB,
            5e-6,
            "IEEE 802.3 line rate; latency typical of RDMA",
        ),
    )
}


def gpu_called(name: str, memory_bytes: float) -> Gpu | None:
    """The GPU that a driver calls so, as "NVIDIA H100 80GB HBM3" or "Tesla V100-SXM2-32GB"; None where it is not here.

    Of several of one kind the one whose memory is nearest to what the driver reports.
    """
    words = frozenset(re.split(r"[^a-z0-9]+", name.lower()))
    alike = [gpu for gpu in GPUS.values() if words >= _kind(gpu)]
    return max(alike, key=lambda gpu: (len(_kind(gpu)), -abs(gpu.capacity_bytes - memory_bytes)), default=None)


def _kind(gpu: Gpu) -> frozenset[str]:
    """The words of its name without its memory, as h100 and pcie."""
    return frozenset(word for word in gpu.name.split("-") if not word.endswith("gb"))


def peak_called(name: str, memory_bytes: float, precision: Precision) -> float:
    """Dense FLOP/s in `precision` of the GPU that a driver calls so: of one that is not here, and of an instance of one
    that is cut up, no more than the slowest has that is."""
    gpu = gpu_called(name, memory_bytes)
    if gpu is None:
        return min(each.peaks["fp32"] for each in GPUS.values() if "fp32" in each.peaks)
    form = _FORMATS.get(precision, "fp32")
    return gpu.peaks.get(form, gpu.bf16_flops_per_second)
