"""What interviews hand out of runs with a planted fault: recorded again, a run reads as the same fault."""

from __future__ import annotations

import pytest

from app.content.recordings import Recording, diagnose, number_that_parts
from tests.support.record_faults import RUNS, _spec, record


@pytest.mark.slow
def test_a_run_recorded_again_shows_the_same_fault() -> None:
    found = Recording.model_validate(record("again", _spec(2, 6), {"kind": "stuck-loader", "rank": 1, "step": 4}))
    assert diagnose(found.ranks) == ("stuck-loader", 1)
    waits = found.ranks[0].waits_in
    assert waits is not None
    assert (waits.number, waits.operation, waits.called_from[-1]) == (
        number_that_parts(found.ranks),
        "all_reduce",
        "backward",
    )
    assert found.ranks[1].collectives[-1].number == waits.number - 1, "one short of the others"
    assert found.ranks[1].stands_in[-1] == "next_batch"
    assert "time" in found.ranks[0].said.lower()


def test_each_run_that_is_recorded_is_kept() -> None:
    from tests.support.shipped import shipped

    interviews = shipped().interviews.values()
    used = {each for one in interviews for name in one.recordings.values() for each in one.parameters[name]}
    assert used == set(RUNS)
