"""`python -m labs.code`: submissions as lines of JSON on standard input, events as lines of JSON on standard output.

Whoever starts it owns both, and learner code has neither. It ends with its input. `--ahead N` keeps N sandboxes ready
with torch loaded, so that the next submission finds them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from pydantic import ValidationError

from labs.code import grading, sandbox
from labs.spec.code import CodeEvent, PhaseEvent, Submission


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.code", description="Judge submissions of code labs.")
    parser.add_argument("--ahead", type=int, default=0, help="how many sandboxes to keep ready")
    parser.add_argument("--own-programs", action="store_true", help="reuse sandboxes: for programs of ours alone")
    asked = parser.parse_args(list(arguments))
    pool = sandbox.Pool(asked.ahead, asked.own_programs)
    pool.fill()
    try:
        for line in sys.stdin:
            _serve(line, pool)
            pool.fill()
    finally:
        pool.end()
    return 0


def _serve(line: str, pool: sandbox.Pool) -> None:
    try:
        submission = Submission.model_validate_json(line)
    except ValidationError as error:
        _emit(PhaseEvent(id="", t=0.0, phase="failed", detail=f"no submission: {error.error_count()} mistakes"))
        return
    try:
        why_not = sandbox.why_not()
        if why_not is not None:
            raise sandbox.NoSandbox(why_not)
        grading.judge(submission, pool, _emit)
    except (sandbox.NoSandbox, LookupError) as error:
        _emit(PhaseEvent(id=submission.id, t=0.0, phase="failed", detail=str(error)))


def _emit(event: CodeEvent) -> None:
    sys.stdout.write(event.model_dump_json() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
