"""Files that are no solution: each gets a reply that names the line, and nothing is lost."""

from __future__ import annotations

import pytest

from labs.code.grading import judge
from labs.code.sandbox import Pool
from labs.spec.code import MOST_CODE_BYTES, Submission, Verdict
from tests.support.code_labs import needs_sandboxes
from tests.support.shipped import shipped

pytestmark = needs_sandboxes


def judged(code: str, pool: Pool) -> Verdict:
    longest = 2.0 if "while True" in code else 60.0
    return judge(Submission(lab="CL01", code=code), pool, lambda _: None, deadline_seconds=longest)


@pytest.mark.parametrize(
    ("code", "mistake", "error"),
    [
        ("def ring_all_reduce(x,\n    rank n):\n    pass\n", "syntax-error", ("SyntaxError", 2)),
        ("x = 1\n  y = 2\n", "syntax-error", ("IndentationError", 2)),
        ("def f():\n\tif 1:\n        pass\n", "syntax-error", ("TabError", 3)),
        ("def other(x):\n    pass\n", "wrong-signature", ("Refused", None)),
        ("ring_all_reduce = 3\n", "wrong-signature", ("Refused", None)),
        ("def ring_all_reduce(x):\n    pass\n", "wrong-signature", ("TypeError", None)),
        ("", "wrong-signature", ("Refused", None)),
        ("import torch\nimport apex\n", "crash", ("ModuleNotFoundError", 2)),
        ("def ring_all_reduce(x, rank, n, send, recv):\n    return y\n", "crash", ("NameError", 2)),
        ("def ring_all_reduce(x, rank, n, send, recv):\n    return {1, 2}\n", "crash", ("TypeError", None)),
        ("raise KeyboardInterrupt\n", "crash", ("KeyboardInterrupt", 1)),
        ("while True:\n    pass\n", "endless-loop", None),
        ("(" * 5000 + ")" * 5000, "syntax-error", ("SyntaxError", 1)),
        ("x = 1\n" * MOST_CODE_BYTES, "unreadable", ("Unreadable", None)),
        ("x = 1\0\n", "unreadable", ("Unreadable", None)),
    ],
)
def test_a_file_that_is_no_solution_is_refused_at_its_line(
    code: str, mistake: str, error: tuple[str, int | None] | None, code_pool: Pool
) -> None:
    verdict = judged(code, code_pool)
    assert not verdict.passed
    assert verdict.mistake == mistake
    assert (verdict.error and (verdict.error.type, verdict.error.line)) == error
    if error is None:
        assert verdict.autopsy is not None
        assert "line" in verdict.autopsy.says


def test_what_ends_one_case_leaves_the_others_their_share(code_pool: Pool) -> None:
    reference, short = shipped().labs["CL01"].reference, "):\n    if len(x) < n:\n        "  # one case of each run is
    verdict = judged(reference.replace("):\n", f"{short}raise IndexError(len(x))\n", 1), code_pool)
    assert verdict.mistake == "crash"
    held = {(each.name, each.ranks): each.held for each in verdict.checks}
    assert {(ranks, held["sum", ranks]) for ranks in (2, 3, 4)} == {(2, 0.6667), (3, 0.75), (4, 0.75)}
    assert {held["messages", 3], held["finishes", 3]} == {0.75, 0.0}
    assert "by themselves, 2 of 3 cases hold" in next(each.seen for each in verdict.checks if each.name == "sum")
    wrong = judged(reference.replace("):\n", f"{short}return x\n", 1), code_pool)
    assert {each.held for each in wrong.checks if each.name == "sum"} == {0.6667, 0.75}, "no less than where it crashed"


def test_a_syntax_error_has_a_place_for_the_caret(code_pool: Pool) -> None:
    error = judged("def ring_all_reduce(x):\n    return x +\n", code_pool).error
    assert error is not None
    assert (error.line, error.text, error.message) == (2, "    return x +", "invalid syntax")
    assert error.column is not None
    assert 13 <= error.column <= 15
