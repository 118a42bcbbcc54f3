"""What figures are stepped through with: collectives round by round, a ZeRO step move by move, an MLP product by
product."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.theory.collectives import (
    half_ring_bytes,
    own_pieces,
    own_values,
    ring_all_reduce_bytes,
    rounds,
    simulate_all_gather,
    simulate_naive_all_reduce,
    simulate_reduce_scatter,
    simulate_ring_all_reduce,
)
from app.theory.state import zero_state_bytes
from app.theory.tensor_step import FIRST, INPUT, SECOND, product, relu, tensor_step
from app.theory.zero_step import Unit, equal_layers, zero_step

RANKS = range(2, 9)
WEIGHTS = 7e9
UNITS = (Unit("root", 1e9), *equal_layers(6e9, 4))


@pytest.mark.parametrize("ranks", RANKS)
def test_reductions_end_with_what_they_are_for(ranks: int) -> None:
    everybody = frozenset(range(ranks))
    for run in (simulate_ring_all_reduce(1.0, ranks, 1.0), simulate_naive_all_reduce(1.0, ranks, 1.0)):
        last = list(rounds(run, own_values(ranks, ranks)))[-1]
        assert all(piece == everybody for held in last.held for piece in held)
        assert last.sent_bytes == pytest.approx(run.sent_bytes)
    scattered = list(rounds(simulate_reduce_scatter(1.0, ranks, 1.0), own_values(ranks, ranks)))
    assert len(scattered) == ranks - 1
    assert [sum(piece == everybody for piece in held) for held in scattered[-1].held] == [1] * ranks
    gathered = list(rounds(simulate_all_gather(1.0, ranks, 1.0), own_pieces(ranks)))[-1]
    assert all(piece == {index} for held in gathered.held for index, piece in enumerate(held))
    assert gathered.sent_bytes == pytest.approx([half_ring_bytes(1.0, ranks)] * ranks)


def test_the_naive_way_sends_all_of_it_to_all_others() -> None:
    assert simulate_naive_all_reduce(10.0, 4, 1.0).sent_bytes == (30.0, 30.0, 30.0, 30.0)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("stage", range(4))
def test_a_zero_step_holds_and_sends_what_the_closed_forms_say(stage: int, ranks: int) -> None:
    states = zero_step(UNITS, ranks, stage)
    begin, end = states[0], states[-1]
    for part in ("parameters", "optimizer"):
        assert begin.held_bytes(UNITS)[part] == pytest.approx(zero_state_bytes(WEIGHTS, ranks, stage, part=part))
    all_reduce = ring_all_reduce_bytes(2 * WEIGHTS, ranks)
    assert end.sent_bytes == pytest.approx(all_reduce * (1.5 if stage == 3 else 1.0))
    update = next(each for each in states if each.move == "update")
    assert update.held_bytes(UNITS)["gradients"] == pytest.approx(
        zero_state_bytes(WEIGHTS, ranks, stage, part="gradients")
    )
    assert (end.parameters, sum(end.gradients)) == (begin.parameters, 0.0)
    assert all(early.sent_bytes <= late.sent_bytes for early, late in pairwise(states))
    most = max(sum(each.held_bytes(UNITS).values()) for each in states)
    assert most == pytest.approx(16 * WEIGHTS) if stage == 0 else most < 16 * WEIGHTS


@pytest.mark.parametrize("ranks", [2, 4])
def test_columns_then_rows_come_to_the_whole_product(ranks: int) -> None:
    whole = product(relu(product(INPUT, FIRST)), SECOND)
    *_, partial, done = tensor_step(ranks)
    assert done.held == (whole,) * ranks
    assert all(each != whole for each in partial.held)
    assert done.sent == pytest.approx(ring_all_reduce_bytes(1.0, ranks))
    assert partial.sent == 0.0
