"""Pipeline schedules: the orders themselves, what every order owes, what it holds, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from app.theory.pipeline import MAX_PASSES, SCHEDULES, Order, Pass, chunk_of, order, peak_in_flight
from labs.spec import SpecError

SPLIT = {"zero-bubble", "zbv"}  # every backward is two passes
CHUNKS = {"gpipe": (1,), "1f1b": (1,), "interleaved": (2, 3, 4), "zero-bubble": (1, 2, 3), "looped-bfs": (1, 2, 3)}
IN_ROUNDS = {"interleaved", "zero-bubble"}


def written(passes: Order) -> list[str]:
    return [" ".join(map(str, rank)) for rank in passes]


# As torch.distributed.pipelining 2.13 orders them: chunk, kind, micro-batch.
ORDERS = [
    ("gpipe", 2, 3, 1, ["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"]),
    (
        "1f1b",
        3,
        4,
        1,
        [
            "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3",
            "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3",
            "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3",
        ],
    ),
    (
        "interleaved",
        2,
        4,
        2,
        [
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3",
        ],
    ),
    (
        "zero-bubble",
        3,
        4,
        1,
        [
            "0F0 0F1 0F2 0B0 0W0 0F3 0B1 0W1 0B2 0W2 0B3 0W3",
            "1F0 1F1 1B0 1F2 1B1 1W0 1F3 1B2 1W1 1B3 1W2 1W3",
            "2F0 2B0 2F1 2B1 2F2 2B2 2W0 2F3 2B3 2W1 2W2 2W3",
        ],
    ),
    (
        "zbv",
        2,
        3,
        2,
        [
            "0F0 0F1 0F2 3F0 3B0 3W0 3F1 3B1 3W1 0B0 0W0 3F2 3B2 3W2 0B1 0W1 0B2 0W2",
            "1F0 2F0 1F1 2F1 2B0 2W0 1F2 1B0 1W0 2F2 2B1 2W1 1B1 2B2 1B2 1W1 2W2 1W2",
        ],
    ),
    ("zbv", 2, 1, 2, ["0F0 3F0 3B0 3W0 0B0 0W0", "1F0 2F0 2B0 2W0 1B0 1W0"]),
    ("looped-bfs", 2, 2, 2, ["0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0", "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"]),
    (
        "dualpipev",
        2,
        4,
        2,
        [
            "0F0 0F1 0F2 3F0 3B0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0B2 0W2 0B3 0W3",
            "1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2B3 1B3 2W3 1W3",
        ],
    ),
]


@pytest.mark.parametrize(("schedule", "stages", "micro_batches", "chunks", "expected"), ORDERS)
def test_an_order_is_the_one_pytorch_runs(
    schedule: str, stages: int, micro_batches: int, chunks: int, expected: list[str]
) -> None:
    assert written(order(schedule, stages, micro_batches, chunks)) == expected


def test_every_schedule_has_an_order_written_out() -> None:
    assert {schedule for schedule, *_ in ORDERS} == set(SCHEDULES)


def combinations() -> Iterator[tuple[str, int, int, int]]:
    """Twenty of every schedule's combinations, the same every time."""
    source = random.Random(11)
    for schedule in SCHEDULES:
        for _ in range(20):
            stages, chunks = source.randint(1, 9), source.choice(CHUNKS.get(schedule, (2,)))
            micro_batches = source.randint(1, 30)
            if schedule in IN_ROUNDS and chunks > 1:
                micro_batches = stages * source.randint(1, 5)
            if schedule == "dualpipev":
                micro_batches = source.randint(2 * stages, 2 * stages + 12)
            yield schedule, stages, micro_batches, chunks


def test_every_micro_batch_passes_every_chunk_once_forward_and_once_back() -> None:
    for schedule, stages, micro_batches, chunks in combinations():
        passes = [each for rank in order(schedule, stages, micro_batches, chunks) for each in rank]
        assert len(passes) == len(set(passes))
        everything = {(chunk, each) for chunk in range(stages * chunks) for each in range(micro_batches)}
        found = {kind: {(each.chunk, each.micro_batch) for each in passes if each.kind == kind} for kind in "FBW"}
        assert found["F"] == found["B"] == everything
        if schedule in SPLIT:
            assert found["W"] == everything
        elif schedule != "dualpipev":
            assert not found["W"]


def test_a_rank_runs_forward_before_backward_before_weight_gradient() -> None:
    for combination in combinations():
        for rank in order(*combination):
            place = {each: index for index, each in enumerate(rank)}
            for each in rank:
                if each.kind != "F":
                    assert place[Pass("F", each.chunk, each.micro_batch)] < place[each]
                if each.kind == "W":
                    assert place[Pass("B", each.chunk, each.micro_batch)] < place[each]


def test_a_rank_runs_the_chunks_it_holds_and_ranks_share_all_of_them() -> None:
    for schedule, stages, micro_batches, chunks in combinations():
        held = [chunk_of(schedule, rank, stages, chunks) for rank in range(stages)]
        assert sorted(chunk for each in held for chunk in each) == list(range(stages * chunks))
        for rank, passes in enumerate(order(schedule, stages, micro_batches, chunks)):
            assert {each.chunk for each in passes} == set(held[rank])


def test_chunks_go_round_the_ranks_or_lie_in_a_v() -> None:
    assert [chunk_of("interleaved", rank, 4, 3) for rank in range(4)] == [(0, 4, 8), (1, 5, 9), (2, 6, 10), (3, 7, 11)]
    assert [chunk_of("zbv", rank, 4, 2) for rank in range(4)] == [(0, 7), (1, 6), (2, 5), (3, 4)]
    assert chunk_of("1f1b", 2, 4, 1) == chunk_of("1f1b", 2, 4) == (2,)


def test_gpipe_holds_all_micro_batches_and_1f1b_as_many_as_there_are_ranks_from_it_on() -> None:
    for stages in (1, 2, 4, 8):
        for micro_batches in (1, 3, 8, 32):
            assert peak_in_flight(order("gpipe", stages, micro_batches)) == (micro_batches,) * stages
            expected = tuple(min(micro_batches, stages - rank) for rank in range(stages))
            assert peak_in_flight(order("1f1b", stages, micro_batches)) == expected


@pytest.mark.parametrize(
    ("stages", "chunks", "factor"),
    # Korthikanti et al. 2022, section 4.2.3: 1 + (p − 1)/(pv)
    [(8, 2, 1 + 7 / 16), (4, 2, 1 + 3 / 8), (4, 4, 1 + 3 / 16)],
)
def test_interleaving_holds_more_than_1f1b_on_the_first_rank(stages: int, chunks: int, factor: float) -> None:
    first, *_ = peak_in_flight(order("interleaved", stages, 4 * stages, chunks))
    assert first / chunks == pytest.approx(stages * factor)  # a chunk is 1/v of what a rank holds under 1F1B


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_zero_bubble_schedules_hold_what_the_first_rank_of_1f1b_does(stages: int) -> None:
    """ZB-H1: p micro-batches on every rank; ZB-V: 2p of half the size (Qi et al. 2023, sections 2 and 6)."""
    assert peak_in_flight(order("zero-bubble", stages, 4 * stages)) == (stages,) * stages
    assert peak_in_flight(order("zbv", stages, 4 * stages, 2)) == (2 * stages,) * stages


def test_looping_breadth_first_holds_everything() -> None:
    assert peak_in_flight(order("looped-bfs", 4, 8, 3)) == (24, 24, 24, 24)


def test_what_a_weight_gradient_does_not_need_goes_with_the_input_gradient() -> None:
    """The last of three ranks: F B F B F stands at 1 + 2 × what waits for a weight gradient."""
    passes = order("zero-bubble", 3, 6)
    assert peak_in_flight(passes, weight_share=0.5)[2] == 2
    assert peak_in_flight(passes, weight_share=0.0)[2] == 1
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(SpecError):
            peak_in_flight(passes, share)


@pytest.mark.parametrize(
    ("asked", "field", "accepted"),
    [
        (("pipedream", 4, 8, 1), "schedule", "gpipe, 1f1b, interleaved, zero-bubble, looped-bfs, zbv, dualpipev"),
        (("1f1b", 0, 8, 1), "stages", "1 or more"),
        (("1f1b", 4, 0, 1), "micro_batches", "1 or more"),
        (("1f1b", 4, 8, 2), "virtual_stages", "1"),
        (("gpipe", 4, 8, 0), "virtual_stages", "1"),
        (("interleaved", 4, 8, 1), "virtual_stages", "2 or more"),
        (("looped-bfs", 4, 8, -1), "virtual_stages", "1 or more"),
        (("zbv", 4, 8, 3), "virtual_stages", "2"),
        (("interleaved", 4, 6, 2), "micro_batches", "a multiple of 4, such as 4 or 8"),
        (("zero-bubble", 4, 6, 2), "micro_batches", "a multiple of 4, such as 4 or 8"),
        (("dualpipev", 4, 7, 2), "micro_batches", "8 or more"),
    ],
)
def test_a_combination_a_schedule_does_not_take_is_refused(
    asked: tuple[str, int, int, int], field: str, accepted: str
) -> None:
    with pytest.raises(SpecError) as raised:
        order(*asked)
    (violation,) = raised.value.violations
    assert (violation.field, violation.accepted) == (field, accepted)


@pytest.mark.parametrize(
    ("asked", "field"),
    [(("1f1b", 1, MAX_PASSES // 3 + 1), "micro_batches"), (("looped-bfs", 10**6, 1, 10**6), "stages")],
)
def test_more_passes_than_a_page_can_wait_for_are_refused(asked: tuple[str, int, int], field: str) -> None:
    with pytest.raises(SpecError) as raised:
        order(*asked)
    assert [violation.field for violation in raised.value.violations] == [field]


@pytest.mark.parametrize("rank", [-1, 4])
def test_a_rank_that_is_not_there_holds_no_chunk(rank: int) -> None:
    with pytest.raises(SpecError, match="0 to 3"):
        chunk_of("interleaved", rank, 4, 2)


def test_everything_wrong_with_a_placement_is_said_at_once() -> None:
    with pytest.raises(SpecError) as raised:
        chunk_of("zbv", 0, 0, 1)
    assert {violation.field for violation in raised.value.violations} == {"stages", "virtual_stages"}
