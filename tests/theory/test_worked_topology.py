"""Formulas of topology against published networks and figures worked out by hand."""

from __future__ import annotations

import pytest

from app.theory import topology
from app.theory.collectives import ring_all_reduce_bytes
from tests.theory.worked import GB, MS, OPENING, Example, worked

EXAMPLES: list[Example] = [
    # 64 ports: 64²/2 and 64³/4
    ("fat_tree_ports", {"radix": 64, "levels": 1}, 1, "64"),
    ("fat_tree_ports", {"radix": 64, "levels": 2}, 1, "2048"),
    ("fat_tree_ports", OPENING, 1, "65536"),
    # seven ports down for one up; a seventh that crosses just fits
    ("tapered_bandwidth", {"bytes_per_second": 50e9, "oversubscription": 7}, GB, "7.14"),
    ("tapered_bandwidth", OPENING, GB, "14.29"),
    ("tapered_bandwidth", {"bytes_per_second": 50e9, "oversubscription": 7, "crossing": 0.125}, GB, "50.00"),
    ("in_switch_all_reduce_bytes", OPENING, GB, "14"),
    # 15/16 of 14 GB over the 200 GB/s of one axis; over all three a third of that
    ("torus_gather", OPENING, MS, "65.6"),
    ("torus_gather", {"size_bytes": 14e9, "ranks": 64, "bytes_per_second": 6e11, "axes_used": 3}, MS, "22.97"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_topology_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def test_eight_planes_of_a_two_level_tree_hold_16384() -> None:
    """DeepSeek-AI 2025 (Insights into DeepSeek-V3), section 5.1: 64 ports, a plane for each GPU of a node."""
    assert 8 * topology.fat_tree_ports(64, 2) == 16384


def test_a_switch_that_adds_never_sends_more_than_a_ring_and_half_at_best() -> None:
    for ranks in (2, 8, 72, 4096):
        ratio = ring_all_reduce_bytes(1.0, ranks) / topology.in_switch_all_reduce_bytes(1.0)
        assert 1 <= ratio < 2
