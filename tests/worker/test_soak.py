"""The soak of `make bench soak`, short: random kills, and each run ends once with a name and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.soak import run_soak


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_short_runs_under_random_kills_end_by_name_and_leave_nothing(tmp_path: Path) -> None:
    soak = run_soak(tmp_path, 6, runs_between=(1, 1), most_waiting=1)
    assert soak.outcomes.total() == 6
    assert soak.kills.total() >= 2
    assert soak.left_over == []
