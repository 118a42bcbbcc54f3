"""What a run's title says of it: who predicted nothing reads how it stands to theory, who lost it reads why."""

from __future__ import annotations

from typing import Any

import pytest

from app.lab.findings import headings, meters_of
from app.lab.models import Run
from app.lab.predict import theory_record
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


def test_who_says_less_than_one_part_alone_is_told_which() -> None:
    theory = theory_record(SPEC)
    held = {name: theory[name] for name in ("model_state_bytes", "model_state")}
    said = {"model_state_bytes": {"text": "9 kB", "value": 9e3, "within": None}}
    title, reason = titles(theory=theory, result=held, prediction=said)
    assert title == "Your 9 kB is less than the weights alone"
    assert "times as much" in reason


def test_within_the_range_that_was_given_the_title_says_so() -> None:
    theory = theory_record(SPEC)
    held = {name: theory[name] for name in ("model_state_bytes", "model_state")}
    value = held["model_state_bytes"] / 1.18
    said = {"model_state_bytes": {"text": "3 MB", "value": value, "within": 1.5}}
    assert titles(theory=theory, result=held, prediction=said)[0] == (
        "Model state per rank: within your range, 1.18 times too low"
    )


def test_a_number_that_is_another_quantitys_is_named_as_that() -> None:
    """FSDP hands 38.59 MB to its collectives, of which a ring of two sends half."""
    measured = {"payload_bytes_per_step": 38.59e6, "wire_bytes_per_step": 19.29e6}
    for value, reason in (
        (19.5e6, "Your 19.5 MB is another quantity: “Sent per rank and step, around rings” is 19.29 MB."),
        (25e6, ""),
    ):
        said = {"payload_bytes_per_step": {"text": f"{value / 1e6:g} MB", "value": value, "within": None}}
        assert titles(result=measured, theory=measured, prediction=said)[1] == reason
