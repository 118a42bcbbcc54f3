"""How a failed run ended, rank by rank."""

from __future__ import annotations

import re

from app.core.templating import environment
from app.lab.ending import ending_of
from app.lab.records import RunFailure
from app.lab.terms import terms_of
from app.lab.view import RunView
from app.theory.lab_runs import expected_of_program
from labs.spec import parse_run_spec
from labs.spec.events import LogEvent

SPEC = parse_run_spec({"model": "gpt-mini", "training": {"steps": 12}, "parallel": {"data": 2}})
RESET = "Connection reset by peer"


def test_the_rank_to_blame_speaks_first_and_every_lane_says_how_far_it_came() -> None:
    failure = RunFailure("killed", "Rank 1 was killed (SIGKILL).", 1, 5, ("fault on purpose",), 1)
    lines = [
        (0.2, 0, "warm"),
        (1.0, 1, "fault on purpose"),
        (1.02, 0, f"{RESET} \U0001f340"),
        (1.03, 0, "  ^^^^"),
    ]
    log = tuple(LogEvent(at, rank, "stderr", line) for at, rank, line in lines)
    ending = ending_of(SPEC, RunView(steps_done=4, log=log), failure)
    assert ending is not None
    assert [(each.rank, each.done, each.failed_at, each.says) for each in ending.lanes] == [
        (0, "33.33", "", "ended with it"),
        (1, "33.33", "37.50", "killed, step 5"),
    ]
    assert [(each.rank, each.line, each.after) for each in ending.words] == [
        (1, "fault on purpose", "first"),
        (0, RESET, "20 ms later"),
    ]
    assert ending_of(SPEC, RunView(), RunFailure("failed", "torchrun")) is None, "no rank is to blame"


def test_a_rank_that_no_other_outlives_still_says_its_last() -> None:
    failure = RunFailure("killed", "Rank 1 was killed (SIGKILL).", 1, 5, ("fault on purpose",), 1)
    view = RunView(steps_done=4, log=(LogEvent(0.2, 0, "stderr", "warm"), LogEvent(1.0, 1, "stderr", "on purpose")))
    ending = ending_of(SPEC, view, failure)
    assert ending is not None
    assert [(each.rank, each.line) for each in ending.words] == [(1, "on purpose")]
    page = environment().get_template("lab/parts/failure.html").render(failure=failure, ending=ending, view=view)
    assert re.search(r'class="log wrap said-last".*on purpose', page, re.DOTALL)
    assert "Of rank 0 there is no word after it." in " ".join(page.split())


def test_what_a_collective_sends_adds_up_from_what_it_sends_in() -> None:
    options = {"program": "collectives", "sizes_bytes": [1024, 4012], "algorithms": ["ring", "tree", "naive"]}
    spec = parse_run_spec({"program": "collectives", "options": options, "parallel": {"data": 4}})
    assert spec.options is not None
    known = expected_of_program(spec.options, 4).quantities
    for name, count in {
        "ring_bytes_sent": 2,
        "ring_messages_sent": 2,
        "tree_bytes_sent": 2,
        "naive_bytes_sent": 0,
    }.items():
        terms = terms_of(name, spec, known, {}, {}, {})
        assert len(terms) == count
        assert not terms or sum(term.theory for term in terms) == known[name]
