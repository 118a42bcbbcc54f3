"""The program on data parallelism by hand: its buckets and its link on paper, what it refuses, and theory of both."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory.lab_runs import expected_of_program
from labs.programs.ddp import _play
from labs.spec import DdpOptions, SpecError, parse_run_spec

LAYER = 4 * 64 * 64


def options(**changed: Any) -> DdpOptions:
    return DdpOptions.model_validate({"width": 64, "layers": 5, "batch": 12, **changed})


@pytest.mark.parametrize(
    ("bucket_bytes", "layers"),
    [
        (LAYER, (1, 1, 1, 1, 1)),
        (LAYER + 1, (2, 2, 1)),
        (2 * LAYER, (2, 2, 1)),
        (5 * LAYER, (5,)),
        (9 * LAYER, (5,)),
        (1024, (1, 1, 1, 1, 1)),
    ],
)
def test_a_bucket_closes_as_soon_as_it_has_reached_its_size(bucket_bytes: int, layers: tuple[int, ...]) -> None:
    assert options().layers_in_buckets(bucket_bytes) == layers


def test_theory_counts_buckets_bytes_steps_and_the_links_time() -> None:
    """Two of five layers, two, one; 2·3/4 of 81,920 bytes at 1 MB/s."""
    asked = options(bucket_bytes=[2 * LAYER], links_bytes_per_second=[1e6], batches=3, extra_batches=2)
    found = expected_of_program(asked, 4).quantities
    assert found["buckets"] == 3
    assert found["payload_bytes"] == 5 * LAYER
    assert found["summed_ratio"] == 4
    assert (found["steps_without_join"], found["steps_with_join"]) == (3, 5)
    assert found["link_seconds"] == pytest.approx(1.5 * 5 * LAYER / 1e6)
    assert found["tail_seconds"] == pytest.approx(1.5 * LAYER / 1e6)


def test_a_bucket_waits_for_its_gradients_and_for_the_link() -> None:
    """Gradients of 10 bytes at 1, 2, 3, 4 s; a byte takes 0.3 s; buckets of 20 bytes."""
    arrivals = [(1.0, 10), (2.0, 10), (3.0, 10), (4.0, 10)]
    assert _play(arrivals, 20, 0.3) == [(2.0, 8.0), (8.0, 14.0)]
    assert _play(arrivals, 20, 0.01) == [(2.0, 2.2), (4.0, 4.2)]
    assert _play(arrivals, 1000, 0.01) == [(4.0, 4.4)]


@pytest.mark.parametrize(
    ("asked", "ranks", "field"),
    [
        ({"batch": 13}, 2, "options.batch"),
        ({"bucket_bytes": [2048, 2048]}, 2, "options.bucket_bytes.1"),
        ({"width": 2048, "layers": 64, "batch": 2}, 2, "options.width"),
        ({"timeout_seconds": 60}, 2, "options.timeout_seconds"),
        ({}, 1, "parallel.data"),
    ],
)
def test_what_it_cannot_do_is_refused_by_field(asked: dict[str, Any], ranks: int, field: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec({"program": "ddp", "parallel": {"data": ranks}, "options": asked})
    assert field in [violation.field for violation in refused.value.violations]
