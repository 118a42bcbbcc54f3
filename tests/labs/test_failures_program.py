"""The game of failures against the formulas, and a real sharded checkpoint."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest
import torch

from app.theory.lab_runs import expected_of_program
from app.theory.reliability import checkpoint_interval_seconds, goodput
from labs.programs.checkpoints import Timeline
from labs.programs.failures import best_interval, play
from labs.spec import FailuresOptions, SpecError, parse_run_spec
from tests.labs.ranks import Run, run_now


def gaps_of(mtbf_seconds: float, count: int = 200_000) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.empty(count, dtype=torch.float64).exponential_(1 / mtbf_seconds, generator=generator)


def test_a_job_by_hand() -> None:
    """Gaps of 100 and 8 s, τ = 20, δ = 5, R = 10. The first: 10 s of restart, three whole rounds in 90 s, 15 s lost.
    The second ends within the restart."""
    shares = play(torch.tensor([100.0, 8.0], dtype=torch.float64), interval=20, checkpoint=5, restart=10)
    assert shares.useful == pytest.approx(60 / 108)
    assert shares.checkpoints == pytest.approx(15 / 108)
    assert shares.repeated == pytest.approx(15 / 108)
    assert shares.restarts == pytest.approx(18 / 108)


@pytest.mark.parametrize(
    ("mtbf", "interval", "checkpoint", "restart"),
    [
        (11_135.0, 1156.0, 60.0, 600.0),
        (1000.0, 100.0, 5.0, 0.0),
        (1000.0, 2000.0, 300.0, 500.0),  # where the first-order formula says nothing
    ],
)
def test_the_game_comes_out_as_daly_says(mtbf: float, interval: float, checkpoint: float, restart: float) -> None:
    shares = play(gaps_of(mtbf), interval, checkpoint, restart)
    assert shares.useful + shares.checkpoints + shares.repeated + shares.restarts == pytest.approx(1)
    assert shares.useful == pytest.approx(goodput(interval, checkpoint, mtbf, restart), abs=4 * shares.error)
    assert 0 < shares.error < 0.003


def test_the_error_is_how_far_games_differ() -> None:
    games = [play(part, 1156.0, 60.0, 600.0) for part in gaps_of(11_135.0).chunk(100)]
    spread = torch.tensor([game.useful for game in games]).std().item()
    assert games[0].error == pytest.approx(spread, rel=0.3)


def test_theory_of_all_losses_holds_in_the_game() -> None:
    options = FailuresOptions()
    gaps = gaps_of(options.mtbf_seconds)
    expected = {(p.figure, p.name, p.x): p.y for p in expected_of_program(options, 1).points}
    for interval in options.intervals_seconds:
        shares = play(gaps, interval, options.checkpoint_seconds, options.restart_seconds)
        found = {
            ("goodput", "goodput"): shares.useful,
            ("lost", "checkpoints"): shares.checkpoints,
            ("lost", "repeated work"): shares.repeated,
            ("lost", "restarts"): shares.restarts,
        }
        for (figure, name), share in found.items():
            assert share == pytest.approx(expected[figure, name, interval], abs=0.005)


def test_the_first_order_is_left_out_where_it_says_nothing() -> None:
    options = FailuresOptions(gpu_hours_per_failure=1000.0, gpus=1000, intervals_seconds=(30, 60, 600, 9000))
    names = [p.x for p in expected_of_program(options, 1).points if p.name == "first order"]
    assert names == [600]  # δ is 60, and 9,000 s of work between checkpoints would lose more than all


def test_the_best_interval_is_found_between_those_played() -> None:
    intervals = [300.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0]
    played = [goodput(each, 60.0, 11_135.0, 600.0) for each in intervals]
    best, share = best_interval(intervals, played)
    assert best == pytest.approx(checkpoint_interval_seconds(60.0, 11_135.0, "daly-higher-order"), rel=0.03)
    assert share == pytest.approx(goodput(best, 60.0, 11_135.0, 600.0), abs=1e-4)
    assert best_interval(intervals[3:], played[3:]) == (1200.0, played[3])  # the best is at an end
    assert best_interval(intervals[:3], played[:3]) == (900.0, played[2])


def test_what_a_checkpoint_cost_is_counted_from_its_first_step_to_its_last() -> None:
    timeline = Timeline(
        [1.0, 1.2, 1.0, 5.0, 2.0, 1.0], checkpoint_step=4, done_step=5, blocked_seconds=4.0, written_after_seconds=7.0
    )
    assert timeline.lost_seconds == pytest.approx(5.0)


def test_every_parameter_is_in_one_shard() -> None:
    """10 over 4 ranks, as FSDP cuts: 3, 3, 3, 1."""
    points = expected_of_program(FailuresOptions(parameters=1001), 4).points
    sizes = [point.y for point in points if point.figure == "bytes_by_rank"]
    assert sizes == [14 * 251, 14 * 251, 14 * 251, 14 * 248]


@pytest.mark.parametrize(
    ("options", "ranks", "fields"),
    [
        ({}, 5, {"parallel.data"}),
        ({"intervals_seconds": [60, 120]}, 1, {"options.intervals_seconds"}),
        ({"intervals_seconds": [60, 120, 60]}, 1, {"options.intervals_seconds.2"}),
        ({"gpus": 1_000_000, "gpu_hours_per_failure": 10}, 1, {"options.gpu_hours_per_failure"}),
        ({"parameters": 10**9, "restart_seconds": -1}, 1, {"options.parameters", "options.restart_seconds"}),
    ],
)
def test_what_a_run_cannot_do_is_refused(options: dict[str, Any], ranks: int, fields: set[str]) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec({"program": "failures", "options": options, "parallel": {"data": ranks}})
    assert {violation.field for violation in refused.value.violations} == fields


@pytest.fixture(scope="module")
def three_ranks(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("checkpoints")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        options = {"failures": 20_000, "parameters": 1_000_000, "steps": 8}
        run = run_now({"program": "failures", "options": options, "parallel": {"data": 3}, "device": "cpu"})
    assert run.returncode == 0, run.stderr
    assert not list(Path(folder).glob("rankzero-checkpoint-*"))
    return run


@pytest.mark.slow
def test_a_real_checkpoint_is_as_large_as_theory_says(three_ranks: Run) -> None:
    expected = [p for p in expected_of_program(three_ranks.spec.options, 3).points if p.figure == "bytes_by_rank"]
    written = {e["x"]: e["y"] for e in three_ranks.of_kind("measurement") if e.get("figure") == "bytes_by_rank"}
    assert len(written) == len(expected) == 3
    for point in expected:
        assert written[point.x] == pytest.approx(point.y, rel=0.01)  # beside the values there is a little about them
        assert written[point.x] >= point.y


@pytest.mark.slow
def test_a_synchronous_save_stops_training_for_as_long_as_it_takes(three_ranks: Run) -> None:
    summary = three_ranks.summary()
    steps = [e["y"] for e in three_ranks.of_kind("measurement") if e.get("name") == "synchronous"]
    with_checkpoint = steps[4]  # the first of the second half
    assert with_checkpoint > statistics.median(steps)
    assert 0 < summary["write_seconds"] <= with_checkpoint
    assert summary["sync_stall_seconds"] == pytest.approx(with_checkpoint - statistics.median(steps[:4]))
    assert summary["async_blocked_seconds"] > 0


@pytest.mark.slow
def test_every_rank_plays_failures_of_its_own_and_all_come_to_one_result(three_ranks: Run) -> None:
    """60,000 failures know goodput to about 0.15 per cent, of a flat optimum of which neighbours differ by less."""
    summaries = [three_ranks.summary(rank) for rank in range(3)]
    assert summaries[0] == summaries[1] == summaries[2]
    expected = expected_of_program(three_ranks.spec.options, 3).quantities
    assert summaries[0]["goodput"] == pytest.approx(expected["goodput"], abs=0.006)
    assert summaries[0]["best_interval_seconds"] == pytest.approx(expected["best_interval_seconds"], rel=0.15)
    assert any("60,000 failures" in event["line"] for event in three_ranks.of_kind("log"))
