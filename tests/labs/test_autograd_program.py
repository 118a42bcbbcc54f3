"""The program on autograd: its parts by hand on small tensors, what it refuses, and a run held against theory."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from app.theory.lab_runs import expected_of_program
from labs.programs.autograd.accumulation import accumulate
from labs.programs.autograd.microscope import bytes_freed, tied_contributions
from labs.programs.autograd.network import Task, difference, length, losses, new_network, new_task
from labs.spec import AutogradOptions, SpecError, parse_run_spec
from tests.labs.ranks import Run, run_now

CPU = torch.device("cpu")
DOUBLE = torch.float64


def asked(**options: Any) -> dict[str, Any]:
    return {"program": "autograd", "options": options, "device": "cpu"}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"batch": 64, "pieces": 10}, "options.pieces"),
        ({"batch": 8, "pieces": 8}, "options.pieces"),
        ({"token_counts": [4]}, "options.token_counts"),
        ({"token_counts": [4, 0]}, "options.token_counts.1"),
        ({"sgd_rate": 0}, "options.sgd_rate"),
        ({"passes": 1}, "options.passes"),
        ({"rate": 1}, "options.rate"),
    ],
)
def test_what_it_cannot_do_is_refused_by_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec(asked(**options))
    assert [violation.field for violation in refused.value.violations] == [field]
    assert all(violation.accepted for violation in refused.value.violations)


def test_a_batch_is_cut_into_every_divisor_of_the_pieces() -> None:
    assert AutogradOptions(batch=48, pieces=12).ways_to_cut == (2, 3, 4, 6, 12)


def test_losses_and_their_gradient_are_what_they_say() -> None:
    """½‖h₃ − y‖² (C02): for one layer of it, the gradient by the last weight is (h₃ − y)ᵀ h₂."""
    network, task = new_network(4, 1, CPU, DOUBLE), new_task(3, 4, 1, CPU, DOUBLE)
    each = losses(network, task)
    apart = network(task.x) - task.y
    assert torch.equal(each, 0.5 * (apart**2).sum(dim=1))
    each.sum().backward()
    h2 = torch.nn.Sequential(*list(network)[:4])(task.x)
    torch.testing.assert_close(network.layers[2].weight.grad, apart.T @ h2)


def test_rows_differ_by_step_and_the_teacher_stays() -> None:
    first, second = (new_task(3, 4, 1, CPU, DOUBLE, step) for step in (0, 1))
    assert not torch.equal(first.x, second.x)
    assert torch.equal(new_task(3, 4, 1, CPU, DOUBLE, 1).y, second.y)
    both = Task(torch.cat([first.x, second.x]), torch.cat([first.y, second.y]))
    teacher = new_network(4, 2, CPU, DOUBLE)
    torch.testing.assert_close(teacher(both.x).detach(), both.y)


def test_pieces_add_up_to_the_batch_and_without_the_division_to_too_much() -> None:
    network, task = new_network(8, 1, CPU, DOUBLE), new_task(16, 8, 1, CPU, DOUBLE)
    whole = accumulate(network, task, 1, 1)
    assert difference(accumulate(network, task, 4, 4), whole) < 1e-14
    assert length(accumulate(network, task, 4, 1)) == pytest.approx(4 * length(whole), rel=1e-12)


def test_with_batch_norm_pieces_do_not_add_up() -> None:
    network = new_network(8, 1, CPU, DOUBLE, with_batch_norm=True)
    task = new_task(16, 8, 1, CPU, DOUBLE)
    assert difference(accumulate(network, task, 4, 4), accumulate(network, task, 1, 1)) > 0.01


def test_only_none_frees_the_gradients() -> None:
    network, task = new_network(8, 1, CPU), new_task(16, 8, 1, CPU)
    assert bytes_freed(network, task, set_to_none=False) == 0
    assert bytes_freed(network, task, set_to_none=True) == 3 * 8 * 8 * 4


def test_a_tied_table_gets_the_gradients_of_both_uses() -> None:
    came, whole = tied_contributions(6, CPU)
    assert len(came) == 2
    assert all(float(each.abs().max()) > 0 for each in came)
    assert not torch.equal(came[0], came[1])
    torch.testing.assert_close(came[0] + came[1], whole)


@pytest.fixture(scope="module")
def done() -> Run:
    run = run_now(asked(batch=24, pieces=6, width=12, passes=3, token_counts=[2, 3, 10], steps=40, sgd_rate=1.0))
    assert run.returncode == 0, run.stderr
    return run


def points(run: Run) -> dict[tuple[str, str, float], float]:
    return {(e["figure"], e["name"], e["x"]): e["y"] for e in run.of_kind("measurement")}


@pytest.mark.slow
def test_ratios_and_bytes_are_what_theory_says(done: Run) -> None:
    assert done.spec.options is not None
    expected = expected_of_program(done.spec.options, 1)
    measured = points(done)
    assert {"kept", "undivided", "unequal"} == {point.figure for point in expected.points}
    for point in expected.points:
        assert measured[point.figure, point.name, point.x] == pytest.approx(point.y, rel=1e-12)
    for name, value in expected.quantities.items():
        assert done.summary()[name] == pytest.approx(value, rel=1e-12)
    assert expected.quantities["token_ratio"] == 5


@pytest.mark.slow
def test_formulas_hold_and_pieces_differ_by_rounding_alone(done: Run) -> None:
    measured = points(done)
    formulas = [y for (figure, _, _), y in measured.items() if figure == "formulas"]
    assert len(formulas) == 3 + 2
    assert max(formulas) < 1e-13
    for parts in (2, 3, 6):
        assert measured["accumulated", "fp64", parts] < 1e-13
        assert 1e-9 < measured["accumulated", "fp32", parts] < 1e-4
        assert measured["accumulated", "fp32 with batch norm", parts] > 0.01


@pytest.mark.slow
def test_sgd_does_not_survive_the_forgotten_division_and_adam_does(done: Run) -> None:
    curves: dict[str, list[float]] = {}
    for (figure, name, _), loss in points(done).items():
        if figure == "training":
            curves.setdefault(name, []).append(loss)
    assert curves["SGD"][-1] < 0.3 * curves["SGD"][0]
    assert max(curves["SGD, not divided"]) > 10 * curves["SGD"][0]
    assert curves["SGD, not divided"] == pytest.approx(curves["SGD, 6 times the rate"], rel=0.01)
    assert curves["Adam, not divided"] == pytest.approx(curves["Adam"], rel=0.01)
