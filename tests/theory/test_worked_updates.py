"""Matrix optimizers and seldom averages against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from app.theory import local_updates, matrix_updates
from tests.theory.worked import GB, OPENING, PERCENT, Example, worked

EXAMPLES: list[Example] = [
    # 5 × (4 × 8,192² × 28,672 + 2 × 8,192³) = 5 × (7.697e12 + 1.0995e12)
    ("newton_schulz_flops", OPENING, 1e12, "43.98"),
    ("newton_schulz_flops", {"rows": 28672, "columns": 8192}, 1e12, "43.98"),
    ("newton_schulz_flops", {"rows": 2, "columns": 3, "iterations": 1}, 1, "64"),
    # square: T·m/B = 5 × 16,384 / 16e6; a batch a sixteenth as large, sixteen times the share
    ("newton_schulz_share", OPENING, PERCENT, "0.512"),
    ("newton_schulz_share", {"rows": 16384, "columns": 16384, "tokens": 1e6}, PERCENT, "8.192"),
    # 43.98e12 over 6 × 8,192 × 28,672 × 4e6 = 5.637e15
    ("newton_schulz_share", {"rows": 8192, "columns": 28672, "tokens": 4e6}, PERCENT, "0.780"),
    ("width_scaled_rate", OPENING, 1e-4, "3.125"),
    # two sites: each sends 4 × 10e9 bytes in 1,000 s; every step, 500 times that; 4 bits each, an eighth
    ("outer_bandwidth", OPENING, GB, "0.04"),
    ("outer_bandwidth", {"parameters": 10e9, "sites": 2, "inner_steps": 1, "step_seconds": 2}, GB, "20"),
    (
        "outer_bandwidth",
        {"parameters": 10e9, "sites": 2, "inner_steps": 500, "step_seconds": 2, "bytes_each": 0.5},
        GB,
        "0.005",
    ),
    # 40 GB over 1.25 GB/s is 32 s after 1,000 s of work: 32/1,032
    ("outer_idle", OPENING, PERCENT, "3.10"),
    (
        "outer_idle",
        {"parameters": 10e9, "sites": 2, "inner_steps": 1, "step_seconds": 2, "bytes_per_second": 1.25e9},
        PERCENT,
        "94.1",
    ),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_updates_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def test_five_iterations_make_singular_values_nearly_equal() -> None:
    """The iteration whose products are counted does what the text says: Muon's quintic polynomial."""
    generator = np.random.default_rng(1)
    update = generator.normal(size=(32, 64))
    update /= np.linalg.norm(update)
    before = np.linalg.svd(update, compute_uv=False)
    for _ in range(matrix_updates.NEWTON_SCHULZ_ITERATIONS):
        product = update @ update.T
        update = 3.4445 * update + (-4.7750 * product + 2.0315 * product @ product) @ update
    after = np.linalg.svd(update, compute_uv=False)
    assert before.max() / before.min() > 4
    assert 0.6 < after.min() < after.max() < 1.3


def test_waiting_and_traffic_tell_the_same_story() -> None:
    for inner in (1, 50, 500):
        needed = local_updates.outer_bandwidth(8e9, 4, inner, 3.0)
        # a link as fast as the mean traffic takes as long for the exchange as the steps took
        assert local_updates.outer_idle_fraction(8e9, 4, inner, 3.0, needed) == pytest.approx(0.5)
