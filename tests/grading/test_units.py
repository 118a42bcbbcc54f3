"""One table of units: what is written is read back as what it was, and seconds are written in one way."""

from __future__ import annotations

import pytest

from app.grading.quantities import read_quantity
from app.units import BASE_UNITS, DIMENSIONS, LADDERS, SCALES, factor_of, scaled, seconds_text, step_for, value_text


@pytest.mark.parametrize("unit", [unit for unit in SCALES if unit not in ("", "×")])
def test_what_is_written_in_a_unit_is_read_back(unit: str) -> None:
    dimension, factor = SCALES[unit]
    found = read_quantity(scaled(3 * factor, unit), dimension)
    assert found.value == pytest.approx(3 * factor)


def test_every_dimension_has_a_base_unit_and_units_to_write_in() -> None:
    assert set(BASE_UNITS) == set(LADDERS) == set(DIMENSIONS)
    for dimension, unit in BASE_UNITS.items():
        assert factor_of(unit) == 1
        assert read_quantity(f"7 {unit}", dimension).value == 7
        steps = [step.least for step in LADDERS[dimension]]
        assert steps == sorted(steps, reverse=True)


@pytest.mark.parametrize(
    ("label", "factor"),
    [
        ("GB/s", 1e9),
        ("Gb/s", 1.25e8),
        ("TFLOP/s", 1e12),
        ("billion tokens", 1e9),
        ("trillion", 1e12),
        ("tokens/s", 1.0),
        ("years", 365.25 * 86400),
        ("MiB", 2.0**20),
        ("", 1.0),
    ],
)
def test_a_label_is_a_unit_a_magnitude_or_a_rate(label: str, factor: float) -> None:
    assert factor_of(label) == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2e-7, "0.2 µs"),
        (0.0032, "3.2 ms"),
        (90, "90 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "120 min"),
        (7200, "2 h"),
        (36 * 3600, "36 h"),
        (2 * 86400, "2 days"),
    ],
)
def test_seconds_are_written_in_one_way(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
    assert value_text(seconds, "seconds").split()[1] == text.split()[1] == step_for(seconds, "seconds").unit
