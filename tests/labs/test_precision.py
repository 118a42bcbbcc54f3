"""Sixteen bits on real ranks."""

from __future__ import annotations

import pytest

from tests.labs.ranks import spec_of

FP16 = {"precision": "fp16-mixed", "state_layout": "zero-16", "loss_scaling": True}


@pytest.mark.slow
def test_an_overflow_on_one_rank_skips_the_step_on_every_rank(program):
    """Under DDP both see it in the mean; under ZeRO only who has that piece of the gradients, and tells the others."""
    done = program("overflow.py", spec_of({"data": 2}, training=FP16))
    assert done.returncode == 0, done.stderr
    found = done.of_kind("overflow")
    assert [(event["zero"], event["rank"]) for event in sorted(found, key=lambda e: (e["zero"], e["rank"]))] == [
        (zero, rank) for zero in range(4) for rank in range(2)
    ]
    for event in found:
        first, second, third = event["scales"]
        assert (second, third) == (first / 2, first / 2)
        assert event["moved"] == [False, True]
        assert event["finite"]
