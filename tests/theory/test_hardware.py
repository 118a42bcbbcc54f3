"""Accelerators and links against data sheets, and against each other."""

from __future__ import annotations

from math import isfinite
from typing import Any

import pytest

from app.theory.hardware import GPUS, LINKS
from labs.spec import SpecError

# Dense TFLOP/s as the data sheets give them (half of what is printed with sparsity): 16-bit, fp8, TF32, fp32, and
# NVFP4; MXFP8 is as fast as fp8.
SHEETS: dict[str, tuple[float | None, ...]] = {
    "v100-32gb": (125, None, None, 15.7),
    "a100-80gb": (312, None, 156, 19.5),  # 624 with sparsity
    "h100-80gb": (989, 1979, 494.7, 67),  # 1,979 and 3,958 with sparsity
    "h100-pcie-80gb": (756, 1513, 378, 51),  # 1,513, 3,026 and 756 with sparsity
    "h200-141gb": (989, 1979, 494.7, 67),
    "b200-180gb": (2250, 4500, 1125, 75, 9000),  # 4.5 and 9 PFLOP/s with sparsity
    "gb200-186gb": (2500, 5000, 1250, 80, 10000),
    "b300-270gb": (2250, 4500, 1125, 75, 13500),  # of eight: 36 and 72 PFLOP/s with sparsity, 108 of NVFP4 without
    "gb300-279gb": (2500, 5000, 1250, 80, 15000),  # of 72: 360 and 720 PFLOP/s with sparsity, 1,080 of NVFP4 without
    "mi300x-192gb": (1307.4, 2614.9, 653.7, 163.4),
    "tpu-v5p": (459, 459, None, None),
    "tpu-v5e": (197, None, None, None),
    "tpu-v6e": (918, None, None, None),
    "rtx-4090": (165.2, 330.3, 82.6, 82.6),
}


@pytest.mark.parametrize("name", list(SHEETS))
def test_peaks_are_dense_and_those_of_the_data_sheet(name: str) -> None:
    bf16, fp8, tf32, fp32, *fp4 = SHEETS[name]
    given = {"16-bit": bf16, "fp8": fp8, "tf32": tf32, "fp32": fp32}
    if fp4:
        given |= {"nvfp4": fp4[0], "mxfp8": fp8}
    found = {form: peak / 1e12 for form, peak in GPUS[name].peaks.items()}
    assert found == pytest.approx({form: value for form, value in given.items() if value is not None})


@pytest.mark.parametrize(
    ("precision", "tflops"),
    [("bf16-mixed", 989), ("bf16", 989), ("fp16-mixed", 989), ("fp32", 67), ("fp8-mixed", 1979)],
)
def test_a_precision_has_the_peak_of_what_it_multiplies_in(precision: Any, tflops: float) -> None:
    """fp32 runs beside the tensor cores: 67, not TF32's 495."""
    assert GPUS["h100-80gb"].peak(precision) == pytest.approx(tflops * 1e12)


def test_what_a_gpu_lacks_is_refused_with_those_that_have_it() -> None:
    with pytest.raises(SpecError) as raised:
        GPUS["a100-80gb"].peak("fp8-mixed")
    (violation,) = raised.value.violations
    assert (violation.field, violation.value) == ("precision", "fp8-mixed")
    assert "h100-80gb" in violation.message
    assert "v100" not in violation.message
    assert violation.accepted == "bf16-mixed, bf16, fp16-mixed, fp32"
    with pytest.raises(SpecError, match="mi300x-192gb"):
        GPUS["tpu-v5p"].peak("fp32")


def test_a_precision_there_is_not_is_refused() -> None:
    unknown: Any = "int4"
    with pytest.raises(SpecError, match="fp8-mixed"):
        GPUS["h100-80gb"].peak(unknown)


@pytest.mark.parametrize(
    ("name", "both_directions"),
    # GB/s as NVIDIA prints them: both directions together
    [("v100-16gb", 300), ("a100-40gb", 600), ("h100-80gb", 900), ("h200-141gb", 900), ("b200-180gb", 1800)],
)
def test_nvlink_is_that_of_one_direction(name: str, both_directions: float) -> None:
    gpu = GPUS[name]
    assert gpu.nvlink_bytes_per_second == gpu.scale_up_bytes_per_second == both_directions / 2 * 1e9
    generation = gpu.scale_up.split()[-1]
    assert LINKS[f"nvlink-{generation}"].bytes_per_second == gpu.scale_up_bytes_per_second


@pytest.mark.parametrize(
    ("name", "gigabits"),
    [
        ("infiniband-hdr", 200),
        ("infiniband-ndr", 400),
        ("infiniband-xdr", 800),
        ("ethernet-25g", 25),
        ("ethernet-100g", 100),
        ("ethernet-400g", 400),
    ],
)
def test_a_network_link_is_an_eighth_of_its_bits(name: str, gigabits: float) -> None:
    assert LINKS[name].bytes_per_second == gigabits / 8 * 1e9


def test_pcie_doubles_each_generation() -> None:
    # 16 lanes of 8, 16 and 32 GT/s, a bit each: 16, 32 and 64 GB/s before encoding
    assert [LINKS[f"pcie-{n}-x16"].bytes_per_second / 1e9 for n in (3, 4, 5)] == [16, 32, 64]


@pytest.mark.parametrize("name", list(GPUS))
def test_a_record_makes_physical_sense(name: str) -> None:
    gpu = GPUS[name]
    assert gpu.name == name
    assert gpu.source
    # chips hold powers of two: 80 "GB" are nearly 80 GiB, of which the driver keeps some
    assert 0.97 * gpu.marketing_bytes < gpu.capacity_bytes <= gpu.marketing_bytes * 2**30 / 1e9
    assert gpu.nic_bytes_per_second < gpu.scale_up_bytes_per_second < gpu.memory_bytes_per_second
    assert gpu.peaks["16-bit"] == gpu.bf16_flops_per_second >= 2 * gpu.peaks.get("tf32", 0) * 0.999
    assert gpu.peaks.get("fp8", gpu.bf16_flops_per_second) >= gpu.bf16_flops_per_second
    assert gpu.power_watts is None or 250 <= gpu.power_watts <= 1400


@pytest.mark.parametrize("name", list(LINKS))
def test_a_link_says_where_it_is_from_and_what_is_typical(name: str) -> None:
    link = LINKS[name]
    assert link.name == name
    assert 1e-6 <= link.typical_latency_seconds <= 1e-4
    assert isfinite(link.bytes_per_second)
    assert "typical" in link.source


def test_the_scale_up_link_joins_a_node_a_rack_or_a_pod() -> None:
    assert {name: GPUS[name].scale_up_gpus for name in ("h100-80gb", "gb300-279gb", "tpu-v6e")} == {
        "h100-80gb": 8,
        "gb300-279gb": 72,
        "tpu-v6e": 256,
    }


def test_the_lower_power_h100_is_the_same_chip_with_slower_memory() -> None:
    low, high = GPUS["h100-96gb"], GPUS["h100-80gb"]
    assert low.peaks == high.peaks
    assert (low.power_watts, low.memory_bytes_per_second) == (500, 2.4e12)
    assert low.marketing_bytes > high.marketing_bytes
