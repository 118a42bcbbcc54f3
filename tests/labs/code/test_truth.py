"""Grader truth: what is right passes, whatever its style, and what is wrong is caught by its name.

A ninth of the programs in each run of the tests, another the next day; all of them with RANKZERO_ALL_ROWS, and in
`make bench`.
"""

from __future__ import annotations

import pytest

from labs.code.graders import graders
from labs.code.grading import SHARED_MISTAKES
from labs.code.sandbox import Pool
from tests.labs.code.truth import Program, programs, verdict_of
from tests.support.code_labs import needs_sandboxes
from tests.support.shipped import shipped
from tests.support.todays import todays

PARTS = 9
LABS = shipped().labs
PROGRAMS = [program for lab in LABS.values() for program in programs(lab)]

pytestmark = needs_sandboxes


@pytest.mark.parametrize("program", todays(PROGRAMS, PARTS), ids=lambda each: f"{each.lab} {each.name}")
def test_a_program_is_judged_as_what_it_is(program: Program, code_pool: Pool) -> None:
    verdict = verdict_of(program, code_pool)
    failed = [check for check in verdict.checks if not check.passed]
    assert program.holds(verdict), (verdict.mistake, failed, verdict.autopsy, verdict.error)
    assert all(check.seen and (check.expected or check.passed or "not looked at" in check.seen) for check in failed)


def test_what_graders_name_has_words() -> None:
    assert set(LABS) == set(graders())
    for identity, grader in graders().items():
        head = LABS[identity].head
        assert tuple(check.id for check in head.checks) == grader.checks_named, identity
        assert {sign.mistake for sign in grader.signs} <= {*head.mistakes, *SHARED_MISTAKES}, identity
        assert {each.says for each in LABS[identity].wrong} <= {*head.mistakes, *SHARED_MISTAKES}, identity
