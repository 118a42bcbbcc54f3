"""Simulated tasks and pipelines against closed forms, and against small cases worked out by hand beside each."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, nan
from typing import Any

import pytest

from app.theory.pipeline import SCHEDULES, ChunkSeconds, Order, Pass, PipelineRun, order, simulate_pipeline
from app.theory.simulator import Span, Task, simulate
from labs.spec import SpecError

EQUAL = ChunkSeconds(1.0, 1.0, 1.0)  # so that t_b = 2 t_f, and T_F = T_B = T_W where the backward is split
CPU, GPU = ("cpu",), ("gpu", 0)


def times(spans: Sequence[Span]) -> list[tuple[float, float]]:
    return [(span.start_seconds, span.end_seconds) for span in spans]


def refused(call: Callable[[], object]) -> dict[str, str]:
    """What is wrong with a call: messages by field."""
    with pytest.raises(SpecError) as raised:
        call()
    return {violation.field: violation.message for violation in raised.value.violations}


def play(schedule: str, stages: int, micro_batches: int, chunks: int = 1, **more: Any) -> PipelineRun:
    passes = order(schedule, stages, micro_batches, chunks)
    return simulate_pipeline(passes, more.pop("seconds", [EQUAL] * (stages * chunks)), **more)


# --- tasks


def test_a_task_waits_for_its_resource_and_for_what_it_needs() -> None:
    spans = simulate(
        [
            Task("load", CPU, 3.0),
            Task("copy", GPU, 1.0, after=("load",)),
            Task("next load", CPU, 2.0),
            Task("kernel", GPU, 5.0),
            Task("store", CPU, 1.0, after=("kernel", "next load")),
        ]
    )
    # the CPU loads 0–3 and 3–5; the GPU copies from 3, computes 4–9; storing waits for both
    assert times(spans) == [(0, 3), (3, 4), (3, 5), (4, 9), (9, 10)]
    assert [span.name for span in spans] == ["load", "copy", "next load", "kernel", "store"]
    assert spans[1].resource == GPU


def test_the_first_in_a_queue_holds_up_the_rest() -> None:
    spans = simulate([Task("late", GPU, 1.0, after=("input",)), Task("early", GPU, 1.0), Task("input", CPU, 4.0)])
    assert times(spans) == [(4, 5), (5, 6), (0, 4)]


def test_latency_delays_who_waits_but_not_the_resource() -> None:
    spans = simulate(
        [
            Task("first", CPU, 1.0, latency_seconds=10.0),
            Task("second", CPU, 1.0, latency_seconds=10.0),
            Task("reader", GPU, 1.0, after=("first",)),
        ]
    )
    assert times(spans) == [(0, 11), (1, 12), (11, 12)]


def test_tasks_that_wait_for_each_other_are_named() -> None:
    found = refused(lambda: simulate([Task("egg", CPU, 1.0, after=("hen",)), Task("hen", GPU, 1.0, after=("egg",))]))
    assert found == {"tasks": "Deadlock: egg is held up by hen is held up by egg."}
    assert "self is held up by self" in refused(lambda: simulate([Task("self", CPU, 1.0, after=("self",))]))["tasks"]


def test_of_a_long_circle_only_some_are_written_out() -> None:
    tasks = [Task(str(number), (number,), 1.0, after=(str((number + 1) % 50),)) for number in range(50)]
    (message,) = refused(lambda: simulate(tasks)).values()
    assert message.startswith("Deadlock: 0 is held up by 1 is")
    assert message.endswith("… is held up by 0.")
    assert len(message) < 300


def test_a_deadlock_may_come_from_the_queues_and_hides_no_innocent_task() -> None:
    """Two senders that each post their receive first: neither send is ever reached."""
    tasks = [
        Task("receive 0", ("rank", 0), 1.0, after=("send 1",)),
        Task("send 0", ("rank", 0), 1.0),
        Task("receive 1", ("rank", 1), 1.0, after=("send 0",)),
        Task("send 1", ("rank", 1), 1.0),
        Task("bystander", CPU, 1.0, after=("receive 0",)),
    ]
    for arrangement in (tasks, [tasks[4], *tasks[:4]]):
        message = refused(lambda given=arrangement: simulate(given))["tasks"]
        assert {"receive 0", "receive 1"} <= set(message.removesuffix(".").partition(": ")[2].split(" is held up by "))
        assert "bystander" not in message


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([Task("a", CPU, 1.0), Task("a", GPU, 1.0)], "a is there twice."),
        ([Task("a", CPU, 1.0, after=("b",))], "a waits for b, which is not there."),
        ([Task("a", CPU, -1.0)], "a takes less than no time."),
        ([Task("a", CPU, nan)], "a takes less than no time."),
        ([Task("a", CPU, 1.0, latency_seconds=-1.0)], "a takes less than no time."),
        ([Task("a", CPU, inf)], "Together these tasks take for ever."),
        ([Task("a", CPU, 1e308), Task("b", CPU, 1e308)], "Together these tasks take for ever."),
    ],
)
def test_tasks_that_make_no_sense_are_refused(tasks: list[Task], message: str) -> None:
    assert refused(lambda: simulate(tasks)) == {"tasks": message}


def test_no_tasks_take_no_time() -> None:
    assert simulate([]) == ()


# --- pipelines

GRID = [(p, m) for p in (1, 2, 3, 4, 8) for m in (1, 2, 4, 5, 8, 16)]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_of_gpipe_and_1f1b(schedule: str) -> None:
    """F22: of m + p − 1 slots of t_f + t_b, p − 1 are idle (Huang et al. 2019, section 2.3)."""
    for p, m in GRID:
        run = play(schedule, p, m)
        assert run.step_seconds == (m + p - 1) * 3
        assert run.idle_fraction == pytest.approx((p - 1) / (m + p - 1))
        assert run.busy_seconds == (3 * m,) * p


def test_interleaving_divides_the_bubble_by_the_chunks() -> None:
    """F23 (Narayanan et al. 2021, section 2.2.2): 9.86 % and 5.19 % for p = 8, m = 32, v = 2 and 4."""
    for p, rounds, v in [(1, 3, 2), (2, 1, 2), (2, 4, 3), (4, 1, 2), (4, 4, 4), (8, 2, 3), (8, 4, 2), (8, 4, 4)]:
        run = play("interleaved", p, rounds * p, v)
        assert run.idle_fraction == pytest.approx((p - 1) / (v * rounds * p + p - 1))
    assert round(100 * play("interleaved", 8, 32, 2).idle_fraction, 2) == 9.86
    assert round(100 * play("interleaved", 8, 32, 4).idle_fraction, 2) == 5.19


def test_zb_h1_leaves_a_third_of_the_bubble() -> None:
    """F24 (Qi et al. 2023, table 2): overhead (p−1)/(3m), 7.29 % for p = 8, m = 32."""
    for p, m in [(2, 2), (2, 7), (4, 4), (4, 9), (8, 8), (8, 32)]:
        run = play("zero-bubble", p, m)
        assert run.step_seconds / run.busy_seconds[0] - 1 == pytest.approx((p - 1) / (3 * m))
    run = play("zero-bubble", 8, 32)
    assert round(100 * (run.step_seconds / 96 - 1), 2) == 7.29


def test_zb_h1_with_unequal_passes() -> None:
    """Qi et al. 2023, table 2: the bubble is (p−1)(T_F + T_B − T_W) for W no longer than F and B."""
    for seconds in (ChunkSeconds(2.0, 3.0, 1.0), ChunkSeconds(2.0, 2.0, 1.5)):
        run = play("zero-bubble", 4, 12, seconds=[seconds] * 4)
        work = 12 * (seconds.forward_seconds + seconds.input_gradient_seconds + seconds.weight_gradient_seconds)
        left = seconds.forward_seconds + seconds.input_gradient_seconds - seconds.weight_gradient_seconds
        assert run.step_seconds == pytest.approx(work + 3 * left)


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_a_rank_of_zb_v_never_waits_once_it_has_begun(stages: int) -> None:
    """Only the start is staggered: rank i begins i chunks late and then works 6m chunks long (section 6)."""
    run = play("zbv", stages, 4 * stages, 2)
    for rank, spans in enumerate(run.spans):
        assert spans[0].start_seconds == rank
        assert spans[-1].end_seconds == rank + 24 * stages


def test_chunks_that_run_breadth_first_fill_and_drain_once() -> None:
    """v·m forwards in a row on every rank: (p−1)/(v·m + p − 1) for m of at least p (Lamy-Poirier 2022)."""
    assert play("looped-bfs", 4, 8, 2).idle_fraction == pytest.approx(3 / 19)


def test_one_stage_is_never_idle() -> None:
    for schedule in SCHEDULES:
        chunks = 1 if schedule in ("gpipe", "1f1b") else 2
        assert play(schedule, 1, 4, chunks).idle_fraction == 0


def test_a_slow_stage_sets_the_pace() -> None:
    """p = m = 2, the second stage twice as slow: rank 1 works from 1 to 13 without a pause, rank 0 waits for it."""
    run = play("1f1b", 2, 2, seconds=[EQUAL, ChunkSeconds(2.0, 2.0, 2.0)])
    assert times(run.spans[0]) == [(0, 1), (1, 2), (7, 9), (13, 15)]
    assert times(run.spans[1]) == [(1, 3), (3, 7), (7, 9), (9, 13)]
    assert run.step_seconds == 15
    assert run.busy_seconds == (6, 12)
    assert run.idle_fraction == pytest.approx(1 - 18 / 30)


def test_with_many_micro_batches_a_straggler_costs_what_it_is_slower() -> None:
    """Rank 2 of 4 takes 4.5 s instead of 3 s a micro-batch.

    It begins at 2, runs two forwards until 5, waits for its first backward until 6.5 (rank 3 has had its input from
    3.5 and takes 3) and is then busy to its last; that goes back over two ranks: 2 + 1.5 + 450 + 4.
    """
    assert play("1f1b", 4, 100).step_seconds == 309
    assert play("1f1b", 4, 100, slow_down=[1, 1, 1.5, 1]).step_seconds == 457.5


def test_a_straggler_by_hand() -> None:
    """p = m = 2, rank 0 half as slow again: F 0–1.5, 1.5–3, then B 4.5–7.5 and 7.5–10.5."""
    run = play("1f1b", 2, 2, slow_down=[1.5, 1.0])
    assert times(run.spans[0]) == [(0, 1.5), (1.5, 3), (4.5, 7.5), (7.5, 10.5)]
    assert times(run.spans[1]) == [(1.5, 2.5), (2.5, 4.5), (4.5, 5.5), (5.5, 7.5)]


def test_a_slow_chunk_slows_both_ranks_of_an_interleaved_pipeline_less_than_a_slow_stage() -> None:
    """The same 50 % more work in one chunk of four, or in the whole of one of two stages."""
    half = ChunkSeconds(0.5, 0.5, 0.5)
    chunk = play("interleaved", 2, 8, 2, seconds=[half, half, half, ChunkSeconds(0.75, 0.75, 0.75)])
    stage = play("interleaved", 2, 8, 2, seconds=[half] * 4, slow_down=[1.0, 1.5])
    assert play("interleaved", 2, 8, 2, seconds=[half] * 4).step_seconds < chunk.step_seconds < stage.step_seconds


def test_transfers_hide_behind_compute_but_for_the_way_there_and_back() -> None:
    """GPipe, p = m = 2, 0.5 s a transfer. Rank 1: F 1.5–2.5, 2.5–3.5, B 3.5–5.5, 5.5–7.5; rank 0: B 6–8, 8–10."""
    run = play("gpipe", 2, 2, transfer_seconds=0.5)
    assert times(run.spans[1]) == [(1.5, 2.5), (2.5, 3.5), (3.5, 5.5), (5.5, 7.5)]
    assert times(run.spans[0])[2:] == [(6, 8), (8, 10)]
    assert {span.resource: times([span]) for span in run.transfers if span.name.endswith("F1→1")} == {
        ("link", 0, 1): [(2, 2.5)]
    }
    for p, m in [(2, 8), (4, 8), (8, 4)]:
        assert play("gpipe", p, m, transfer_seconds=0.25).step_seconds == (m + p - 1) * 3 + 2 * (p - 1) * 0.25


def test_1f1b_waits_for_a_way_there_and_back_every_p_micro_batches() -> None:
    """Having sent p forwards, a rank sends no more before a backward has come: 2 × 0.25 s for every two of p = 2.

    Rank 1: F B F B 1.25–7.25, F B F B 7.75–13.75, and so on; rank 0's last backward is 0.25 + 2 behind: 3(m + 1) + m/4.
    """
    run = play("1f1b", 2, 4, transfer_seconds=0.25)
    assert [start for start, _ in times(run.spans[1])] == [1.25, 2.25, 4.25, 5.25, 7.75, 8.75, 10.75, 11.75]
    for m, step_seconds in [(2, 9.5), (4, 16), (20, 68)]:
        assert play("1f1b", 2, m, transfer_seconds=0.25).step_seconds == step_seconds


def test_a_link_carries_one_transfer_at_a_time_and_may_be_slow_alone() -> None:
    """Two stages, forwards of 1 s, transfers of 3 s one way: they arrive at 4, 7 and 10."""
    run = play("gpipe", 2, 3, transfer_seconds={(0, 1): 3.0})
    assert [start for start, _ in times(run.spans[1])] == [4, 7, 10, 11, 13, 15]
    assert run.step_seconds == 19  # the last backward of rank 1 ends at 17 and comes back at once
    assert {span.resource for span in run.transfers} == {("link", 0, 1)}


def test_chunks_of_one_rank_pass_on_without_a_transfer() -> None:
    """The point of the V: chunk 1 and 2 of ZB-V on two ranks are both on rank 1."""
    run = play("zbv", 2, 3, 2, transfer_seconds=1.0)
    assert {span.name for span in run.transfers if "1F" in span.name or "2B" in span.name} == set()
    assert {span.resource for span in run.transfers} == {("link", 0, 1), ("link", 1, 0)}


def test_the_step_ends_with_the_last_tail() -> None:
    """Rank 1 is through at 7 of 9 s, so a tail of 1 s there costs nothing and one of 4 s costs what is left over."""
    assert play("1f1b", 2, 2).spans[1][-1].end_seconds == 7
    assert play("1f1b", 2, 2, tail_seconds=[0.0, 1.0]).step_seconds == 9
    run = play("1f1b", 2, 2, tail_seconds=[0.5, 4.0])
    assert run.step_seconds == 11
    assert times(run.tails) == [(9, 9.5), (7, 11)]
    assert run.idle_fraction == pytest.approx(1 - 12 / 22)


def test_every_pass_runs_after_what_it_needs_and_alone_on_its_rank() -> None:
    source = random.Random(5)
    for schedule in SCHEDULES:
        for _ in range(6):
            stages, chunks = source.randint(1, 6), 1 if schedule in ("gpipe", "1f1b") else 2
            every = [ChunkSeconds(*(source.uniform(0, 3) for _ in range(3))) for _ in range(stages * chunks)]
            passes = order(schedule, stages, 2 * stages, chunks)
            run = simulate_pipeline(passes, every, source.choice([0.0, 0.3]), [source.uniform(1, 2) for _ in passes])
            check_dependencies(passes, run)
            assert 0 <= run.idle_fraction < 1


def check_dependencies(passes: Order, run: PipelineRun) -> None:
    spans = {each: span for rank, row in enumerate(run.spans) for each, span in zip(passes[rank], row, strict=True)}
    for row in run.spans:
        for earlier, later in pairwise(row):
            assert earlier.end_seconds <= later.start_seconds
    for each, span in spans.items():
        needed = {
            "F": [Pass("F", each.chunk - 1, each.micro_batch)],
            "B": [Pass("F", each.chunk, each.micro_batch), Pass("B", each.chunk + 1, each.micro_batch)],
            "W": [Pass("B", each.chunk, each.micro_batch)],
        }[each.kind]
        for other in needed:
            if other in spans:
                assert spans[other].end_seconds <= span.start_seconds


def test_an_order_that_cannot_finish_names_the_passes() -> None:
    """Rank 0 wants the backward of 0 before it has sent the forward of 1, rank 1 the other way round."""
    first = (Pass("F", 0, 0), Pass("B", 0, 0), Pass("F", 0, 1), Pass("B", 0, 1))
    second = (Pass("F", 1, 0), Pass("F", 1, 1), Pass("B", 1, 0), Pass("B", 1, 1))
    message = refused(lambda: simulate_pipeline((first, second), [EQUAL] * 2))["order"]
    assert message.startswith("Deadlock")
    assert "0B0" in message
    assert "1F1" in message


@pytest.mark.parametrize(
    ("passes", "chunks", "field", "message"),
    [
        (((Pass("B", 0, 0),),), 1, "order", "0B0 waits for 0F0, which is not there."),
        (((Pass("F", 0, 0), Pass("F", 0, 0)),), 1, "order", "0F0 is there twice."),
        (((Pass("F", 0, 0),), (Pass("F", 0, 1),)), 1, "order", "Chunk 0 is on ranks 0 and 1."),
        (((Pass("F", 0, 0),),), 2, "seconds", "These are times of 2 chunks; the order has chunks [0]."),
        (((Pass("F", 1, 0),),), 1, "seconds", "These are times of 1 chunks; the order has chunks [1]."),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(passes: Order, chunks: int, field: str, message: str) -> None:
    assert refused(lambda: simulate_pipeline(passes, [EQUAL] * chunks)) == {field: message}


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"transfer_seconds": -1.0}, "transfer_seconds"),
        ({"transfer_seconds": {(0, 1): inf}}, "transfer_seconds"),
        ({"slow_down": [1.0]}, "slow_down"),
        ({"slow_down": [1.0, 0.0]}, "slow_down"),
        ({"tail_seconds": [0.0, nan]}, "tail_seconds"),
        ({"tail_seconds": [1.0] * 3}, "tail_seconds"),
        ({"seconds": [EQUAL, ChunkSeconds(1.0, -1.0, 1.0)]}, "seconds.input_gradient_seconds"),
    ],
)
def test_times_out_of_range_are_refused(more: dict[str, Any], field: str) -> None:
    assert set(refused(lambda: play("1f1b", 2, 2, **more))) == {field}
