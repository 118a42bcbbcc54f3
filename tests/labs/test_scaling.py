"""Scaling laws in small: the fits, the text, the FLOPs, and that more of everything lowers the loss."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from app.theory.lab_runs import expected_of_program
from labs.data import load_source_code
from labs.model import build_model, count_parameters
from labs.probes.throughput import model_flops_per_token
from labs.programs.fits import fit_parabola, fit_power_law, interpolate
from labs.programs.scaling import Text, Trained, _common_flops, flops_of_a_step
from labs.spec import ScalingOptions, SpecError, parse_run_spec
from tests.labs.ranks import run_now


def test_a_power_law_is_found_again_and_known_exactly() -> None:
    x = [1e3, 3e3, 1e4, 1e5]
    law = fit_power_law(x, [7.5 * each**-0.25 for each in x])
    assert (law.scale, law.exponent) == (pytest.approx(7.5), pytest.approx(-0.25))
    assert law.error == pytest.approx(0.0, abs=1e-7)
    assert law(1e6) == pytest.approx(7.5 * 1e6**-0.25)


def test_the_error_of_an_exponent_is_the_one_of_the_books() -> None:
    """log2 x = 0, 1, 2 and log2 y = 0, 0, 1: slope 1/2, residuals 1/6, −1/3, 1/6, so √(1/6 / 1 / 2) = 0.2887."""
    law = fit_power_law([1, 2, 4], [1, 1, 2])
    assert law.exponent == pytest.approx(0.5)
    assert law.error == pytest.approx(math.sqrt(1 / 12))
    assert math.isnan(fit_power_law([1, 2], [1, 3]).error)


def test_a_parabola_is_found_again_with_its_lowest_point() -> None:
    sizes = [1e3, 4e3, 1e4, 7e4]
    parabola = fit_parabola(sizes, [2.0 + 0.3 * math.log(size / 5e3) ** 2 for size in sizes])
    assert parabola.lowest_within(1e3, 7e4) == pytest.approx(5e3)
    assert parabola(5e3) == pytest.approx(2.0)
    assert parabola.lowest_within(6e3, 7e4) is None  # not among what was measured
    falls_all_the_way = fit_parabola(sizes, [math.log(size / 1e6) ** 2 for size in sizes])
    assert falls_all_the_way.lowest_within(1e3, 7e4) is None
    has_only_a_highest_point = fit_parabola(sizes, [2.0, 3.0, 3.0, 2.0])
    assert has_only_a_highest_point.lowest_within(1e3, 7e4) is None


def test_between_points_a_power_law_holds() -> None:
    assert interpolate([1, 100, 200], [10, 1000, 5], 10) == pytest.approx(100)
    assert interpolate([1, 100, 200], [10, 1000, 5], 200) == pytest.approx(5)
    with pytest.raises(ValueError, match="201 is not between"):
        interpolate([1, 100, 200], [10, 1000, 5], 201)


def test_equal_compute_is_sought_where_three_models_have_some() -> None:
    models = [[Trained(1, 1, flops * size, 1.0) for flops in (1.0, 8.0)] for size in (1, 2, 4, 100)]
    assert _common_flops(models) == [pytest.approx(math.sqrt(4 * 8))]


def test_no_passage_is_held_out_and_trained_on() -> None:
    options = ScalingOptions(sequence=256)
    text = Text.cut(options, seed=3)
    assert text.passages.shape[1] == text.held_out.shape[1] == 257
    shown = {bytes(passage.tolist()) for passage in text.passages}
    held_out = {bytes(passage.tolist()) for passage in text.held_out}
    assert len(shown & held_out) <= 2  # tables of spaces and zeros, which the text has more than once
    assert len(text.passages) * 256 >= 2_000_000  # the largest budget there can be, without repetition


def test_the_text_is_the_same_each_time() -> None:
    assert torch.equal(load_source_code(), load_source_code())
    options = ScalingOptions()
    assert torch.equal(Text.cut(options, 1).passages, Text.cut(options, 1).passages)
    assert not torch.equal(Text.cut(options, 1).passages, Text.cut(options, 2).passages)


@pytest.mark.parametrize("width", [8, 24, 64])
def test_counted_flops_are_those_of_the_formula(width: int) -> None:
    options = ScalingOptions(widths=(width, 16, 32), batch=2, layers=3)
    counted = flops_of_a_step(options, width)
    assert counted == model_flops_per_token(options.model(width), options.sequence) * options.tokens_per_step


def test_theory_has_the_flops_to_a_few_per_cent_and_the_parameters_exactly() -> None:
    options = ScalingOptions(batch=2)
    expected = {(point.name, point.x): point.y for point in expected_of_program(options, 1).points}
    assert len(expected) == len(options.widths) * len(options.token_budgets)
    for width in options.widths:
        model = build_model(options.model(width), options.sequence, seed=1)
        parameters = count_parameters(model) - model.positions.weight.numel()
        each = flops_of_a_step(options, width)
        for steps in map(options.steps, options.token_budgets):
            flops = expected[f"{parameters:,} parameters", steps * options.tokens_per_step]
            assert flops == pytest.approx(steps * each, rel=0.025)


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"widths": [8, 16, 20]}, {"options.widths.2"}),
        ({"widths": [8, 16]}, {"options.widths"}),
        ({"widths": [8, 16, 16]}, {"options.widths.2"}),
        ({"widths": [8, 16, 256]}, {"options.widths.2"}),
        ({"token_budgets": [1000, 2100, 4200], "batch": 32}, {"options.token_budgets.0"}),
        ({"token_budgets": [1000, 2000, 2000], "batch": 4}, {"options.token_budgets.2"}),
        (
            {"widths": [8, 16, 24], "token_budgets": [2_000_000, 1_900_000, 1_800_000], "batch": 4},
            {"options.token_budgets"},
        ),
        ({"widths": [96, 112, 128], "layers": 6, "batch": 64}, {"options.widths"}),
    ],
)
def test_what_a_run_cannot_do_is_refused(options: dict[str, Any], fields: set[str]) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec({"program": "scaling", "options": options})
    assert {violation.field for violation in refused.value.violations} == fields


@pytest.mark.slow
def test_trained_for_real_more_tokens_and_more_parameters_help() -> None:
    options = {"widths": [8, 16, 32], "layers": 1, "token_budgets": [4_000, 16_000, 64_000], "sequence": 32, "batch": 8}
    run = run_now({"program": "scaling", "options": options, "device": "cpu"})
    assert run.returncode == 0, run.stderr
    points = [(e["figure"], e["name"], e["x"], e["y"]) for e in run.of_kind("measurement")]
    by_tokens = {(name, x): y for figure, name, x, y in points if figure == "loss_by_tokens" and name != "power law"}
    assert len(by_tokens) == 9
    models, budgets = ({key[place] for key in by_tokens} for place in (0, 1))
    for model in models:
        losses = [by_tokens[model, budget] for budget in sorted(budgets)]
        assert losses == sorted(losses, reverse=True)
    small, _, large = sorted(models, key=lambda name: int(name.split()[0].replace(",", "")))
    assert by_tokens[large, max(budgets)] < by_tokens[small, max(budgets)] < math.log(256)
    measured = {(name, x): y for figure, name, x, y in points if figure == "flops"}
    expected = expected_of_program(run.spec.options, 1)
    assert {(point.name, point.x) for point in expected.points} == set(measured)
    summary = run.summary()
    assert summary["training_flops"] == pytest.approx(expected.quantities["training_flops"], rel=0.03)
    assert summary["token_exponent"] > 0
    assert summary["parameter_exponent"] > 0
