"""The programs that are not a training run, each as torchrun runs it."""

from __future__ import annotations

from typing import Any

import pytest

from labs.command import compact, parse_spec
from labs.spec import PROGRAMS, SpecError, parse_run_spec
from tests.labs.ranks import run_now

SMALL_OPTIONS: dict[str, dict[str, Any]] = {
    "gemm": {"sides": [16, 64], "tokens": 16, "hidden": 64, "slices": [1, 4], "repeats": 1},
    "collectives": {"sizes_bytes": [4, 1000], "repeats": 1},
    "scaling": {
        "widths": [8, 16, 24],
        "layers": 1,
        "token_budgets": [1_000, 4_000, 8_000],
        "sequence": 16,
        "batch": 4,
    },
    "autograd": {"batch": 16, "pieces": 4, "width": 8, "steps": 5},
    "formats": {"updates": 20, "steps": 3},
    "schedule": {"micro_batches": [2, 4], "forward_seconds": 0.005, "repeats": 1},
    "ddp": {
        "width": 16,
        "layers": 3,
        "batch": 4,
        "bucket_bytes": [2048],
        "batches": 2,
        "extra_batches": 1,
        "timeout_seconds": 0.5,
        "repeats": 1,
    },
    "speed": {"layers": 1, "hidden": 32, "sequence": 16, "batch": 2, "batches": [1], "steps": 3},
    "failures": {"failures": 1000, "parameters": 10_000, "steps": 4},
}


def test_a_program_has_options_of_its_own_and_no_model() -> None:
    spec = parse_run_spec({"program": "gemm", "options": {"repeats": 2}})
    assert spec.options is not None
    assert spec.options.program == "gemm"
    assert compact(spec) == '{"program":"gemm","options":{"repeats":2}}'
    assert parse_spec(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ({"program": "gemm", "options": {"sides": [3], "slices": [7]}}, {"options.sides.0", "options.slices.0"}),
        ({"program": "gemm", "options": {"colour": 1}, "training": {"steps": 3}}, {"options.colour", "training.steps"}),
        ({"program": "gemm", "parallel": {"data": 2}, "model": "gpt-small"}, {"parallel.data", "model"}),
        ({"model": "gpt-mini", "options": {"repeats": 2}}, {"options"}),
        ({"program": "gemm", "options": 3}, {"options"}),
        ({"program": [], "model": "gpt-mini"}, {"program"}),
        ({"program": "gemm", "mode": "dry"}, {"mode"}),
    ],
)
def test_what_a_program_cannot_do_is_refused_by_field(data: dict[str, Any], fields: set[str]) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec(data)
    assert {violation.field for violation in refused.value.violations} == fields


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_reports_points_of_its_figures_and_its_quantities(name: str) -> None:
    kind = PROGRAMS[name]
    parallel = {kind.axis: max(2, kind.fewest_ranks)} if kind.axis else {}
    run = run_now({"program": name, "options": SMALL_OPTIONS[name], "parallel": parallel, "device": "cpu"})
    assert run.returncode == 0, run.stderr
    points = [event for event in run.of_kind("measurement") if "figure" in event]
    assert {point["figure"] for point in points} == set(kind.figures)
    assert all(point["unit"] == kind.figures[point["figure"]].y_unit for point in points)
    assert set(kind.quantities) <= set(run.summary())
