"""What a run's title says of it: who predicted nothing reads how it stands to theory, who lost it reads why."""

from __future__ import annotations

from typing import Any

import pytest

from app.lab.findings import headings, meters_of
from app.lab.models import Run
from app.lab.run_page import compared
from app.lab.view import RunView
from labs.spec import parse_run_spec

SPEC = parse_run_spec({"model": "gpt-mini", "training": {"steps": 2, "sequence": 32}, "parallel": {"data": 2}})


def titles(**more: Any) -> tuple[str, str]:
    run = Run(**{"id": 1, "status": "finished", "spec": SPEC.model_dump(mode="json"), "theory": {}, **more})
    return headings(run, meters_of(run, SPEC, None, RunView(), compared(run, None)[0]))


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ({"model_state_bytes": 100e6, "payload_bytes_per_step": 50.1e6}, "Its bytes are as theory has them"),
        ({"model_state_bytes": 100e6, "payload_bytes_per_step": 60e6}, "Payload per rank and step: 20 % more than"),
        ({"model_state_bytes": 80e6, "payload_bytes_per_step": 50e6}, "Model state per rank: 20 % less than"),
        ({"step_seconds": 0.2}, "DDP on 2 ranks"),  # theory expects no duration
    ],
)
def test_without_a_prediction_the_title_sets_measurement_beside_theory(measured: dict[str, float], said: str) -> None:
    theory = {"model_state_bytes": 100e6, "payload_bytes_per_step": 50e6}
    title, reason = titles(result=measured, theory=theory)
    assert title.startswith(said)
    assert reason == ""


def test_the_title_of_a_lost_run_is_what_happened_and_its_reason_follows() -> None:
    failure = {"cause": "killed", "message": "Rank 1 was killed (SIGKILL). Somebody killed it.", "rank": 1}
    assert titles(status="failed", failure=failure) == ("Rank 1 was killed (SIGKILL)", "Somebody killed it.")
