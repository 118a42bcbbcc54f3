"""Twenty-five planted hangs: each is found in seconds and named with the rank, the call and the learner's line."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from labs.code.grader import Draw
from labs.code.graders.average_grads import GRADER
from labs.code.rank import Job
from labs.code.running import Outcome, Running
from labs.code.sandbox import Pool, Sandbox
from tests.labs.code.hangs import HANGS, Hang
from tests.support.code_labs import needs_sandboxes
from tests.support.pace import slack_seconds

RANKS = 3
ENDLESS_SECONDS, LONGEST_SECONDS = 2.0, 60.0  # of what never ends by itself, and of the rest on a busy machine

pytestmark = needs_sandboxes


@pytest.fixture
def sandboxes(code_pool: Pool) -> Iterator[list[Sandbox]]:
    taken = code_pool.take(RANKS, "")
    for each in taken:
        assert each.is_ready(120)
    yield taken
    code_pool.give_back(taken)


def hung(hang: Hang, sandboxes: list[Sandbox]) -> Outcome:
    cases = GRADER.cases(RANKS, Draw(1, RANKS))[:1]
    longest = ENDLESS_SECONDS if hang.kind == "still computing" else LONGEST_SECONDS
    job = Job(GRADER.task, hang.code, RANKS, [case.inputs for case in cases], deadline_seconds=longest)
    return Running(job, sandboxes).follow()


@pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.name)
def test_a_hang_is_named(hang: Hang, sandboxes: list[Sandbox]) -> None:
    started = time.monotonic()
    outcome = hung(hang, sandboxes)
    assert time.monotonic() - started < 60 + slack_seconds(), "ten seconds where nothing else runs"
    assert outcome.autopsy is not None
    assert (outcome.autopsy.kind, re.search(hang.says, outcome.autopsy.says) is not None) == (hang.kind, True), (
        outcome.autopsy.says
    )
