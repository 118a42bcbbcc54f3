"""Overlap in chunks and on shared multiprocessors, against hand figures and against playing it through."""

from __future__ import annotations

import pytest

from app.theory import hiding
from labs.spec import SpecError
from tests.theory.worked import MS, Example, worked

EXAMPLES: list[Example] = [
    ("chunked_overlap", {"compute_seconds": 0.008, "communication_seconds": 0.004, "chunks": 1}, MS, "12.0"),
    ("chunked_overlap", {"compute_seconds": 0.008, "communication_seconds": 0.004, "chunks": 8}, MS, "8.5"),
    (
        "chunked_overlap",
        {"compute_seconds": 0.008, "communication_seconds": 0.004, "chunks": 8, "chunk_seconds": 0.0002},
        MS,
        "10.1",
    ),
    # 8 ms at 112 of 132, and what is missing afterwards: 16 + 8 × 20/132
    ("overlapped", {"compute_seconds": 0.016, "communication_seconds": 0.008, "reserved_units": 20}, MS, "17.21"),
    ("overlapped", {"compute_seconds": 0.004, "communication_seconds": 0.008, "reserved_units": 20}, MS, "8.00"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_hiding_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


@pytest.mark.parametrize(("compute", "transfer"), [(8.0, 4.0), (4.0, 8.0), (5.0, 5.0)])
@pytest.mark.parametrize("chunks", [1, 2, 7])
def test_chunks_played_through_take_as_long(compute: float, transfer: float, chunks: int) -> None:
    arrived = ended = 0.0
    for _ in range(chunks):
        arrived += transfer / chunks
        ended = max(ended, arrived) + compute / chunks
    assert hiding.chunked_overlap_seconds(compute, transfer, chunks) == pytest.approx(ended)


@pytest.mark.parametrize(("compute", "transfer", "reserved"), [(16.0, 8.0, 20), (2.0, 8.0, 66), (8.0, 8.0, 132)])
def test_work_done_in_slices_takes_as_long(compute: float, transfer: float, reserved: int) -> None:
    slice_, time, left = 1e-3, 0.0, compute
    while left > 1e-9 or time < transfer - 1e-9:
        left -= slice_ * ((132 - reserved) / 132 if time < transfer - 1e-9 else 1)
        time += slice_
    assert hiding.overlapped_seconds(compute, transfer, reserved) == pytest.approx(time, abs=3e-3)


def test_no_more_multiprocessors_communicate_than_there_are() -> None:
    with pytest.raises(SpecError, match="more than units"):
        hiding.overlapped_seconds(1.0, 1.0, 133)
