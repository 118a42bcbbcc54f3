"""Formulas of kernels against figures worked out by hand, and waves against dealing tiles out one by one."""

from __future__ import annotations

import pytest

from app.theory import kernels
from tests.theory.worked import MS, OPENING, PERCENT, Example, worked

EXAMPLES: list[Example] = [
    ("ridge_intensity", OPENING, 1, "295.2"),  # 989 / 3.35
    ("gemm_intensity", OPENING, 1, "124.1"),  # 1 / (1/8192 + 1/128 + 1/8192)
    ("gemm_intensity", {"m": 8192, "n": 8192, "k": 8192}, 1, "2730.7"),  # 8,192 / 3
    ("wave_efficiency", OPENING, PERCENT, "97.0"),  # 1,024 tiles of 8 × 132
    ("wave_efficiency", {"m": 4096, "n": 1024}, PERCENT, "97.0"),  # 128 of 132
    ("wave_efficiency", {"m": 17024, "n": 256}, PERCENT, "50.4"),  # 133 of 264
    ("launch_bound", OPENING, MS, "7.5"),
    ("launch_bound", {"kernels": 100, "launch_seconds": 5e-6, "gpu_seconds": 0.004}, MS, "4.0"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_kernels_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


@pytest.mark.parametrize(("m", "n", "units"), [(100, 700, 3), (4096, 1792, 132), (1, 1, 108), (2048, 4096, 144)])
def test_waves_are_those_of_tiles_dealt_out(m: int, n: int, units: int) -> None:
    tiles = [(row, column) for row in range(0, m, 128) for column in range(0, n, 256)]
    waves = [tiles[start : start + units] for start in range(0, len(tiles), units)]
    assert kernels.wave_efficiency(m, n, units=units) == pytest.approx(len(tiles) / (len(waves) * units))


def test_with_few_rows_the_intensity_is_nearly_the_rows() -> None:
    assert kernels.gemm_intensity(1, 8192, 8192) == pytest.approx(1, rel=1e-3)
