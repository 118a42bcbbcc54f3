"""The program on number formats: what it finds by trying, held against the formats' definitions."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest
import torch

from app.theory.lab_runs import expected_of_program
from app.theory.number_formats import FORMATS as DEFINED
from labs.programs.formats.arithmetic import (
    FORMATS,
    Format,
    add_again_and_again,
    find_epsilon,
    find_largest,
    find_smallest,
    find_smallest_normal,
)
from labs.programs.formats.scaling import scales_for
from labs.programs.formats.training import share_lost, shares_by_exponent
from labs.spec import FormatsOptions, SpecError, parse_run_spec
from tests.labs.ranks import Run, run_now

CPU = torch.device("cpu")


def named(name: str) -> Format:
    return next(each for each in FORMATS if each.name == name)


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_what_is_found_by_trying_is_what_the_format_is_defined_to_hold(each: Format) -> None:
    defined = DEFINED[each.name]
    assert (each.exponent_bits, each.mantissa_bits) == (defined.exponent_bits, defined.mantissa_bits)
    assert find_largest(each, CPU) == defined.max
    assert find_epsilon(each, CPU) == defined.epsilon
    assert find_smallest_normal(each, CPU) == defined.min_normal
    assert find_smallest(each, CPU) == defined.min_subnormal


@pytest.mark.parametrize(
    ("weight", "update"), [(1.0, 0.001), (16.0, 0.05), (0.01, 1e-6), (0.3, 0.0007), (1.5, 0.004), (8.0, 0.03125)]
)
def test_sums_are_rounded_as_theory_rounds_them(weight: float, update: float) -> None:
    options = FormatsOptions(weight=weight, update=update, updates=400)
    expected = {(p.name, p.x): p.y for p in expected_of_program(options, 1).points if p.figure == "sum"}
    for each in FORMATS:
        found = list(islice(add_again_and_again(each, weight, update, CPU), options.updates))
        for number in options.shown_updates[1:]:
            assert found[number - 1] == expected[each.name, number], each.name


@pytest.mark.parametrize(("gradient", "interval"), [(2.0, 5), (0.9, 3), (65504.0 / 65536, 1), (1000.0, 2), (0.001, 1)])
def test_a_loss_scale_finds_its_place_as_theory_says(gradient: float, interval: int) -> None:
    options = FormatsOptions(gradient=gradient, growth_interval=interval, steps=30)
    expected = [p.y for p in expected_of_program(options, 1).points if p.figure == "loss_scale"]
    found = list(islice(scales_for(gradient, interval, CPU), options.steps))
    assert [scale for scale, _ in found] == expected
    assert all(skipped == (scale * gradient >= 65520) for scale, skipped in found)


def test_known_figures() -> None:
    """C14, F42: fp16 ends at 65,504; a bf16 weight of 1 does not notice 0.001. F43: 2 × 32,768 is too much for fp16."""
    assert expected_of_program(FormatsOptions(), 1).quantities == {
        "fp16_largest": 65504,
        "bf16_epsilon": 2**-7,
        "updates_swallowed": 1000,
        "first_scale": 16384,
    }
    assert expected_of_program(FormatsOptions(update=0.004), 1).quantities["updates_swallowed"] < 1000


def test_gradients_are_counted_by_size_and_by_what_is_lost() -> None:
    gradients = torch.tensor([0.0, 1.0, -1.5, 3.0, 0.25])
    assert shares_by_exponent(gradients) == {-2: 0.25, -1: 0.0, 0: 0.5, 1: 0.25}
    tiny = torch.tensor([0.0, 2.0**-24, 2.0**-25, 2.0**-26, 1.0])
    assert share_lost(tiny, named("fp16"), 1.0) == 0.5  # half of the smallest is rounded to even, which is zero
    assert share_lost(tiny, named("fp16"), 2.0) == 0.25
    assert share_lost(tiny, named("fp16"), 4.0) == 0.0
    assert share_lost(tiny, named("bf16"), 1.0) == 0.0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"weight": 0}, "options.weight"),
        ({"update": 1}, "options.update"),
        ({"steps": 1}, "options.steps"),
        ({"averaged_over": 100_000}, "options.averaged_over"),
        ({"format": "fp16"}, "options.format"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec({"program": "formats", "options": options})
    assert [violation.field for violation in refused.value.violations] == [field]


@pytest.mark.parametrize("corner", [{"weight": 16, "update": 0.05, "updates": 5000}, {"update": 1e-6}])
def test_no_sum_that_can_be_asked_for_overflows(corner: dict[str, Any]) -> None:
    assert expected_of_program(FormatsOptions(**corner), 1).points


@pytest.fixture(scope="module")
def done() -> Run:
    options = {"updates": 100, "steps": 12, "averaged_over": 16384, "growth_interval": 2}
    run = run_now({"program": "formats", "options": options, "device": "cpu"})
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.slow
def test_a_run_measures_what_theory_says_to_the_last_bit(done: Run) -> None:
    assert done.spec.options is not None
    expected = expected_of_program(done.spec.options, 1)
    measured = Counter((e["figure"], e["name"], e["x"], e["y"]) for e in done.of_kind("measurement"))
    wanted = Counter((point.figure, point.name, point.x, point.y) for point in expected.points)
    assert not wanted - measured
    assert {name: done.summary()[name] for name in expected.quantities} == expected.quantities


@pytest.mark.slow
def test_fp16_loses_gradients_and_scaling_brings_them_back(done: Run) -> None:
    curves: dict[str, list[float]] = {}
    lost: dict[tuple[str, float], float] = {}
    for event in done.of_kind("measurement"):
        if event["figure"] == "training":
            curves.setdefault(event["name"], []).append(event["y"])
        elif event["figure"] == "underflow":
            lost[event["name"], event["x"]] = event["y"]
    learned = {name: losses[0] - losses[-1] for name, losses in curves.items()}
    assert learned["bf16"] == pytest.approx(learned["fp32"], rel=0.05)
    assert learned["fp16 with loss scaling"] == pytest.approx(learned["fp32"], rel=0.05)
    assert learned["fp16"] < 0.7 * learned["fp32"]
    assert lost["fp16", 1] > 0.3
    assert lost["fp16", 65536] < 0.05
    assert lost["bf16", 1] == lost["fp32", 1] == 0
