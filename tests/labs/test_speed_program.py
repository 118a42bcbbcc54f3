"""The program on the speed of a step: FLOPs as they are dispatched against theory's, and what a loader adds."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory.lab_runs import expected_of_program
from labs.programs.speed import flops_of_a_step
from labs.spec import SpecError, SpeedOptions, parse_run_spec


@pytest.mark.parametrize(
    "shape", [{"layers": 1, "hidden": 32, "batch": 1}, {"layers": 2, "hidden": 64, "sequence": 16, "batch": 2}]
)
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_theory_has_every_flop_that_is_dispatched(shape: dict[str, Any], recompute: str) -> None:
    options = SpeedOptions.model_validate({**shape, "recompute": recompute})
    found = expected_of_program(options, 1).quantities
    assert flops_of_a_step(options, "none") == found["model_flops_per_step"]
    assert flops_of_a_step(options, recompute) == found["hardware_flops_per_step"]


def test_only_a_loader_that_does_not_work_ahead_is_known_beforehand() -> None:
    assert expected_of_program(SpeedOptions(loader_seconds=0.2), 1).quantities["waiting_seconds"] == 0.2
    assert "waiting_seconds" not in expected_of_program(SpeedOptions(loader_seconds=0.2, prefetch=True), 1).quantities


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"hidden": 100}, "options.hidden"),
        ({"hidden": 768, "layers": 12, "batch": 64, "sequence": 512}, "options.batch"),
        ({"loader_seconds": 1, "steps": 100}, "options.loader_seconds"),
        ({"batches": [2, 2]}, "options.batches.1"),
    ],
)
def test_what_it_cannot_do_is_refused_by_field(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec({"program": "speed", "options": asked})
    assert [violation.field for violation in refused.value.violations] == [field]
