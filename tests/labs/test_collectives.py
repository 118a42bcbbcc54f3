"""Collectives written out in messages: they end with the right sums, and send what theory says, to the byte."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from app.theory.collectives import ring_all_reduce_bytes
from app.theory.lab_runs import expected_of_program
from labs.collectives.cost import Cost, fit_cost
from labs.collectives.ring import ring_all_gather, ring_reduce_scatter
from labs.collectives.wire import Wire
from labs.programs.collectives import ALL_REDUCES
from labs.spec import CollectivesOptions, SpecError, parse_run_spec
from tests.labs.ranks import run_now

RANKS = range(1, 9)
LENGTHS = (1, 2, 7, 24, 1000)  # values: fewer than ranks, not divisible, divisible by some


@contextmanager
def messages_between_threads() -> Iterator[threading.local]:
    """isend and irecv between threads of this process: what is set in the result says who a thread is."""
    here, boxes, lock = threading.local(), {}, threading.Lock()

    def box(source: int, to: int) -> Queue[Tensor]:
        with lock:
            return boxes.setdefault((source, to), Queue())

    def batch(calls: list[tuple[Any, Tensor, int]]) -> list[Any]:
        for kind, tensor, peer in calls:
            if kind is dist.isend:
                box(here.rank, peer).put(tensor.clone())
        for kind, tensor, peer in calls:
            if kind is dist.irecv:
                tensor.copy_(box(peer, here.rank).get(timeout=20))
        return []

    place = {"get_rank": lambda: here.rank, "get_world_size": lambda: here.ranks}
    with mock.patch.multiple(dist, P2POp=lambda *call: call, batch_isend_irecv=batch, **place):
        yield here


def on_ranks(ranks: int, work: Callable[[Wire], Any]) -> list[Any]:
    with messages_between_threads() as here, ThreadPoolExecutor(ranks) as pool:

        def run(rank: int) -> Any:
            here.rank, here.ranks = rank, ranks
            return work(Wire())

        return [each.result(timeout=60) for each in [pool.submit(run, rank) for rank in range(ranks)]]


def whole_numbers(rank: int, length: int) -> Tensor:
    return (torch.arange(length) * 5 + rank * 3).remainder(11).float()


def total(ranks: int, length: int) -> Tensor:
    return torch.stack([whole_numbers(rank, length) for rank in range(ranks)]).sum(dim=0)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ALL_REDUCES)
def test_every_rank_ends_with_the_sum(name: str, ranks: int) -> None:
    def reduced(wire: Wire) -> list[Tensor]:
        tensors = [whole_numbers(wire.rank, length) for length in LENGTHS]
        for tensor in tensors:
            ALL_REDUCES[name](tensor, wire)
        return tensors

    for tensors in on_ranks(ranks, reduced):
        assert all(torch.equal(each, total(ranks, len(each))) for each in tensors)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("ranks", RANKS)
def test_the_halves_of_a_ring_own_the_chunk_of_their_rank(ranks: int, length: int) -> None:
    def halves(wire: Wire) -> tuple[Tensor, Tensor]:
        tensor = whole_numbers(wire.rank, length)
        ring_reduce_scatter(tensor, wire)
        own = tensor.tensor_split(ranks)[wire.rank].clone()
        whole = torch.zeros(length)
        whole.tensor_split(ranks)[wire.rank].copy_(own)
        ring_all_gather(whole, wire)
        return own, whole

    for rank, (own, whole) in enumerate(on_ranks(ranks, halves)):
        assert torch.equal(own, total(ranks, length).tensor_split(ranks)[rank])
        assert torch.equal(whole, total(ranks, length))


@pytest.mark.parametrize("ranks", RANKS[1:])
def test_theory_knows_what_is_sent_to_the_byte(ranks: int) -> None:
    sizes = [4 * length for length in LENGTHS]
    options = CollectivesOptions(algorithms=tuple(ALL_REDUCES), sizes_bytes=tuple(sizes))
    expected = {(p.figure, p.name, p.x): p.y for p in expected_of_program(options, ranks).points}
    for name, collective in ALL_REDUCES.items():
        for length in LENGTHS:

            def sent(wire: Wire, collective: Any = collective, length: int = length) -> tuple[int, int]:
                collective(torch.ones(length), wire)
                return wire.bytes_sent, wire.messages_sent

            by_rank = on_ranks(ranks, sent)
            assert max(each[0] for each in by_rank) == expected["bytes_sent", name, 4 * length]
            assert max(each[1] for each in by_rank) == expected["messages_sent", name, 4 * length]


def test_theory_is_the_textbook_where_ranks_divide_the_tensor() -> None:
    options = CollectivesOptions(sizes_bytes=(400, 4000))
    expected = expected_of_program(options, 4)
    assert expected.quantities == {
        "ring_bytes_sent": 6000.0,  # 2 · 3/4 · 4000
        "ring_messages_sent": 6,
        "tree_bytes_sent": 8000.0,  # rank 0 has two children
        "tree_messages_sent": 2,
        "naive_bytes_sent": 12_000.0,
        "server_bytes_sent": 12_000.0,
        "largest_error": 0.0,
    }
    assert expected.quantities["ring_bytes_sent"] == ring_all_reduce_bytes(4000, 4)


def test_a_ring_that_cannot_be_cut_evenly_sends_a_little_more() -> None:
    """10 fp32 values over 4 ranks: chunks of 3, 3, 2, 2. The rank that sends most leaves out the two short ones."""
    options = CollectivesOptions(algorithms=("ring",), sizes_bytes=(40, 400))
    (sent,) = [p.y for p in expected_of_program(options, 4).points if p.figure == "bytes_sent" and p.x == 40]
    assert sent == 4 * (10 + 10 - 2 - 2)
    assert sent > ring_all_reduce_bytes(40, 4)


def test_the_fit_finds_the_latency_and_the_bandwidth_of_a_link() -> None:
    sizes = [1e3, 1e4, 1e5, 1e6, 1e7]
    link = Cost(50e-6, 2e9)
    found = fit_cost(sizes, [link.message_seconds(size) for size in sizes])
    assert found.latency_seconds == pytest.approx(50e-6)
    assert found.bytes_per_second == pytest.approx(2e9)


def test_the_fit_makes_no_negative_latency_and_no_negative_bandwidth() -> None:
    faster_than_its_size = fit_cost([1e3, 1e6], [1e-6, 2e-3])
    assert faster_than_its_size.latency_seconds == 0.0
    assert 0 < faster_than_its_size.bytes_per_second < float("inf")
    slower_when_small = fit_cost([1e3, 1e6], [2e-3, 1e-3])
    assert slower_when_small.bytes_per_second == float("inf")
    assert 1e-3 < slower_when_small.latency_seconds < 2e-3


@pytest.mark.parametrize("ranks", RANKS[1:])
def test_from_the_size_it_names_a_ring_is_faster_than_a_tree(ranks: int) -> None:
    link = Cost(5e-6, 50e9)
    threshold = link.ring_wins_from_bytes(ranks)
    assert link.ring_seconds(threshold + 1, ranks) < link.tree_seconds(threshold + 1, ranks)
    if ranks > 3:
        assert link.ring_seconds(threshold, ranks) == pytest.approx(link.tree_seconds(threshold, ranks))
    else:
        assert threshold == 0


@pytest.mark.parametrize(
    ("options", "ranks", "fields"),
    [
        ({"sizes_bytes": [1000, 1002]}, 2, {"options.sizes_bytes.1"}),
        ({"sizes_bytes": [1000, 1002], "dtype": "bf16"}, 2, set()),
        (
            {"sizes_bytes": [1000, 1000], "algorithms": ["ring", "ring"]},
            2,
            {"options.sizes_bytes.1", "options.algorithms.1"},
        ),
        ({"sizes_bytes": [1000]}, 2, {"options.sizes_bytes"}),
        ({"sizes_bytes": [1000, 2**26], "algorithms": ["ring"], "repeats": 1}, 8, {"options.sizes_bytes"}),
        ({"sizes_bytes": [1000, 2**24], "repeats": 100}, 4, {"options.sizes_bytes"}),
        ({}, 1, {"parallel.data"}),
        ({"algorithms": ["star"]}, 2, {"options.algorithms.0"}),
    ],
)
def test_what_a_run_cannot_do_is_refused(options: dict[str, Any], ranks: int, fields: set[str]) -> None:
    data = {"program": "collectives", "options": options, "parallel": {"data": ranks}}
    if not fields:
        assert parse_run_spec(data).options is not None
        return
    with pytest.raises(SpecError) as refused:
        parse_run_spec(data)
    assert {violation.field for violation in refused.value.violations} == fields


EVERYTHING = CollectivesOptions.model_fields["algorithms"].annotation.__args__[0].__args__  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "dtype"), [(2, "fp32"), (3, "bf16"), (4, "fp32")])
def test_between_real_ranks_theory_holds_and_results_are_the_librarys(ranks: int, dtype: str) -> None:
    """10 and 1,002 values: not divisible by 3 and 4; one value: fewer than ranks."""
    sizes = [4, 20, 4008]
    options = {"algorithms": EVERYTHING, "sizes_bytes": sizes, "repeats": 1, "dtype": dtype}
    run = run_now({"program": "collectives", "parallel": {"data": ranks}, "options": options, "device": "cpu"})
    assert run.returncode == 0, run.stderr
    points = {(e["figure"], e["name"], e["x"]): e["y"] for e in run.of_kind("measurement")}
    expected = expected_of_program(run.spec.options, ranks)
    assert len(expected.points) == 2 * 6 * len(sizes)
    for point in expected.points:
        assert points[point.figure, point.name, point.x] == point.y
    assert {name: run.summary()[name] for name in expected.quantities} == expected.quantities
    for algorithm in EVERYTHING:
        assert all(points["seconds", algorithm, size] > 0 for size in sizes)
    for name in ("ring by α and B", "tree by α and B"):
        assert all(points["seconds", name, size] > 0 for size in sizes)
