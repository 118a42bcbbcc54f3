"""Waiting on paper and in the simulation: two ways to one number."""

from __future__ import annotations

import pytest

from tests.bench.capacity import erlang_wait_seconds, simulated_wait_seconds, waits_of


def test_one_server_waits_as_the_textbook_has_it() -> None:
    """M/M/1: load over what is left of it, times the service."""
    assert erlang_wait_seconds(1, 0.8, 1.0) == pytest.approx(0.8 / 0.2)


def test_two_servers_wait_as_the_textbook_has_it() -> None:
    """M/M/2: load² / (1 − load²) times the service."""
    assert erlang_wait_seconds(2, 1.2, 1.0) == pytest.approx(0.36 / (1 - 0.36))


def test_the_simulation_finds_the_same() -> None:
    played = simulated_wait_seconds(4, 3.0, lambda draw: draw.expovariate(1.0))
    assert played == pytest.approx(erlang_wait_seconds(4, 3.0, 1.0), rel=0.05)


def test_who_comes_later_waits_for_the_first_that_is_free() -> None:
    assert waits_of(2, [0.0, 1.0, 2.0, 2.5], [5.0, 3.0, 1.0, 1.0]) == [0.0, 0.0, 2.0, 2.5]
