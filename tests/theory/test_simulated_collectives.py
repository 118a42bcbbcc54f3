"""Simulated collectives: they do what they are for, conserve bytes, and take what the α-β model says on equal links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf, log2, nan

import pytest

from app.theory.collectives import (
    CollectiveRun,
    Message,
    simulate_all_gather,
    simulate_all_to_all,
    simulate_hierarchical_all_reduce,
    simulate_reduce_scatter,
    simulate_ring_all_reduce,
    simulate_tree_all_reduce,
)
from labs.spec import SpecError


def refused(call: Callable[[], object]) -> set[str]:
    """The fields a call is refused for."""
    with pytest.raises(SpecError) as raised:
        call()
    return {violation.field for violation in raised.value.violations}


ALL_REDUCES: dict[str, Callable[[float, int], CollectiveRun]] = {
    "ring": lambda size, ranks: simulate_ring_all_reduce(size, ranks, 1.0),
    "tree": lambda size, ranks: simulate_tree_all_reduce(size, ranks, 1.0, pieces=3),
    "tree-1": lambda size, ranks: simulate_tree_all_reduce(size, ranks, 1.0, pieces=1),
    "nodes-of-2": lambda size, ranks: simulate_hierarchical_all_reduce(size, 2, ranks // 2, 1.0, 0.1),
    "two-nodes": lambda size, ranks: simulate_hierarchical_all_reduce(size, ranks // 2, 2, 1.0, 0.1),
}


def contributions(run: CollectiveRun, held: dict[tuple[int, int], set[int]]) -> dict[tuple[int, int], set[int]]:
    """Whose values are in which piece on which rank, after every message has added what its sender had by then."""
    moments = [(span.start_seconds, 1, index) for index, span in enumerate(run.spans)]
    moments += [(span.end_seconds, 0, index) for index, span in enumerate(run.spans)]  # arrivals before departures
    on_the_way: dict[tuple[int, int], set[int]] = {}
    for _, departs, index in sorted(moments):
        message = run.messages[index]
        for piece in message.pieces:
            if departs:
                on_the_way[index, piece] = set(held.get((message.source, piece), set()))
            else:
                held.setdefault((message.target, piece), set()).update(on_the_way[index, piece])
    return held


def pieces_of(messages: Sequence[Message]) -> int:
    return max(piece for message in messages for piece in message.pieces) + 1


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8, 9, 16])
@pytest.mark.parametrize("algorithm", list(ALL_REDUCES))
def test_an_all_reduce_brings_every_ranks_part_of_every_piece_to_every_rank(algorithm: str, ranks: int) -> None:
    run = ALL_REDUCES[algorithm](1.0, ranks)
    ranks = len(run.sent_bytes)  # nodes of equal size leave out an odd one
    start = {(rank, piece): {rank} for rank in range(ranks) for piece in range(pieces_of(run.messages))}
    assert contributions(run, start) == {place: set(range(ranks)) for place in start}


def test_a_reduce_scatter_leaves_every_rank_one_sum_and_an_all_gather_spreads_one_piece_each() -> None:
    n = 5
    start = {(rank, piece): {rank} for rank in range(n) for piece in range(n)}
    summed = contributions(simulate_reduce_scatter(1.0, n, 1.0), start)
    complete = [place for place, ranks in summed.items() if len(ranks) == n]
    assert sorted(rank for rank, _ in complete) == sorted(piece for _, piece in complete) == list(range(n))
    gathered = contributions(simulate_all_gather(1.0, n, 1.0), {(rank, rank): {rank} for rank in range(n)})
    assert gathered == {(rank, piece): {piece} for rank in range(n) for piece in range(n)}


def test_an_all_to_all_sends_every_rank_its_part() -> None:
    n = 5
    start = {(source, source * n + target): {source} for source in range(n) for target in range(n)}
    arrived = contributions(simulate_all_to_all(1.0, n, 1.0), start)
    for source in range(n):
        for target in range(n):
            assert arrived[target, source * n + target] == {source}


@pytest.mark.parametrize("ranks", [2, 3, 8, 16])
def test_what_is_sent_is_received(ranks: int) -> None:
    for algorithm, simulated in ALL_REDUCES.items():
        if ranks % 2 and "node" in algorithm:
            continue
        run = simulated(1e9, ranks)
        assert sum(run.sent_bytes) == pytest.approx(sum(run.received_bytes))
        # what n − 1 parts are summed into and brought back over, whatever the algorithm: 2(n − 1)·S in all
        assert sum(run.sent_bytes) == pytest.approx(2 * (ranks - 1) * 1e9)


@pytest.mark.parametrize(
    ("size_bytes", "ranks", "bytes_per_second", "latency_seconds", "milliseconds"),
    # 14 × 5 µs + 1.75 × 100 MB / 300 GB/s, and so on; 300 GB/s is NVLink 3
    [(100e6, 8, 300e9, 5e-6, 0.653), (14e9, 8, 300e9, 0.0, 81.667), (1e9, 8, 300e9, 5e-6, 5.903)],
)
def test_a_ring_takes_what_the_model_says(
    size_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float, milliseconds: float
) -> None:
    run = simulate_ring_all_reduce(size_bytes, ranks, bytes_per_second, latency_seconds)
    assert run.seconds * 1e3 == pytest.approx(milliseconds, abs=5e-4)
    assert run.sent_bytes == pytest.approx([1.75 * size_bytes] * ranks)


def test_rings_and_exchanges_take_their_steps_of_latency_and_of_s_over_n() -> None:
    """F10, F12, F14 with S = n, B = 2, α = 3: every step takes 3 + 1/2."""
    for n in (1, 2, 3, 8, 13):
        each = 3.5
        assert simulate_ring_all_reduce(n, n, 2.0, 3.0).seconds == 2 * (n - 1) * each
        assert simulate_reduce_scatter(n, n, 2.0, 3.0).seconds == (n - 1) * each
        assert simulate_all_gather(n, n, 2.0, 3.0).seconds == (n - 1) * each
        exchanged = simulate_all_to_all(n, n, 2.0, 3.0)
        assert exchanged.seconds == (n - 1) * each
        assert exchanged.sent_bytes == exchanged.received_bytes == (n - 1,) * n


def test_one_slow_hop_slows_the_whole_ring() -> None:
    """Everything crosses the slow hop in 2(n−1) messages of S/n: 6 × 1/0.25 s, whichever hop it is."""
    for slow in range(4):
        bandwidths = [1.0] * 4
        bandwidths[slow] = 0.25
        assert simulate_ring_all_reduce(4.0, 4, bandwidths).seconds == 24


def test_two_trees_come_to_twice_the_tensor_and_to_the_depth_in_latency() -> None:
    """F11: 2⌈log2 n⌉α + 2S/B; and no rank sends more than 2S."""
    for n in (4, 5, 12, 16):
        assert simulate_tree_all_reduce(1.0, n, 1.0, pieces=64).seconds == pytest.approx(2, rel=0.03)
        assert simulate_tree_all_reduce(0.0, n, 1.0, 1.0).seconds == 2 * ceil(log2(n))
        assert max(simulate_tree_all_reduce(1.0, n, 1.0).sent_bytes) == pytest.approx(2)


def test_pieces_are_what_makes_a_tree_fast_and_small_tensors_are_what_makes_it_win() -> None:
    whole, cut = (simulate_tree_all_reduce(1.0, 16, 1.0, pieces=pieces).seconds for pieces in (1, 32))
    assert whole > 2.5 * cut
    for size, tree_wins in ((1e5, True), (1e9, False)):
        tree = simulate_tree_all_reduce(size, 32, 50e9, 5e-6).seconds
        assert (tree < simulate_ring_all_reduce(size, 32, 50e9, 5e-6).seconds) is tree_wins


def test_a_hierarchical_all_reduce_takes_its_three_parts() -> None:
    """7B over 8 × 8 with 12.5 GB/s per node: 2 × 7/8 × 14 GB at 300 GB/s, and 2 × 7/8 × 14/8 GB at 12.5/8 GB/s.

    40.8 ms twice and 1.96 s.
    """
    run = simulate_hierarchical_all_reduce(14e9, 8, 8, 300e9, 12.5e9 / 8)
    assert run.seconds == pytest.approx(0.08167 + 1.96, rel=1e-5)
    across = [message for message in run.messages if message.network.name == "nic"]
    assert sum(message.size_bytes for message in across if message.source < 8) == pytest.approx(24.5e9)


def test_latencies_of_a_hierarchy_add_up() -> None:
    """4 ranks a node, 3 nodes: 3 + 3 steps of 1 s inside, 4 of 10 s across."""
    assert simulate_hierarchical_all_reduce(0.0, 4, 3, 1.0, 1.0, 1.0, 10.0).seconds == 46


def test_a_rank_alone_sends_nothing() -> None:
    for run in (
        simulate_ring_all_reduce(1e9, 1, 1e9, 1.0),
        simulate_tree_all_reduce(1e9, 1, 1e9, 1.0),
        simulate_all_to_all(1e9, 1, 1e9, 1.0),
        simulate_hierarchical_all_reduce(1e9, 1, 1, 1e9, 1e9, 1.0, 1.0),
    ):
        assert (run.seconds, run.sent_bytes, run.messages) == (0.0, (0.0,), ())


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: simulate_ring_all_reduce(-1.0, 4, 1.0), "size_bytes"),
        (lambda: simulate_ring_all_reduce(nan, 4, 1.0), "size_bytes"),
        (lambda: simulate_ring_all_reduce(1.0, 0, 1.0), "ranks"),
        (lambda: simulate_ring_all_reduce(1.0, 4, 0.0), "link_bytes_per_second"),
        (lambda: simulate_ring_all_reduce(1.0, 4, [1.0, 1.0, 1.0]), "link_bytes_per_second"),
        (lambda: simulate_ring_all_reduce(1.0, 4, [1.0, 1.0, inf, 1.0]), "link_bytes_per_second"),
        (lambda: simulate_ring_all_reduce(1.0, 4, 1.0, -1.0), "latency_seconds"),
        (lambda: simulate_ring_all_reduce(1.0, 10_000, 1.0), "ranks"),
        (lambda: simulate_all_gather(1.0, -1, 1.0), "ranks"),
        (lambda: simulate_all_to_all(1.0, 10_000, 1.0), "ranks"),
        (lambda: simulate_tree_all_reduce(1.0, 4, 1.0, pieces=0), "pieces"),
        (lambda: simulate_tree_all_reduce(1.0, 4, 1.0, pieces=10**6), "pieces"),
        (lambda: simulate_hierarchical_all_reduce(1.0, 0, 2, 1.0, 1.0), "ranks_per_node"),
        (lambda: simulate_hierarchical_all_reduce(1.0, 8, 1000, 1.0, 1.0), "nodes"),
        (lambda: simulate_hierarchical_all_reduce(1.0, 8, 2, 1.0, -1.0), "nic_bytes_per_second"),
        (lambda: simulate_ring_all_reduce(1e308, 4, 1e-308), "size_bytes"),
    ],
)
def test_a_collective_out_of_range_is_refused(call: Callable[[], object], field: str) -> None:
    assert refused(call) == {field}
