"""`python -m labs.code`: submissions as lines of JSON on standard input, events as lines of JSON on standard output.

Whoever starts it owns both, and learner code has neither. It ends with its input. `--ahead N` keeps N sandboxes ready
with torch loaded, so that the next submission finds them. They start before the judge itself loads torch, the two of
the first run before the rest: the first check is there as soon as this machine can have it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import select
import sys
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from labs.code import sandbox
from labs.spec.code import CodeEvent, PhaseEvent, Submission

FILL_SECONDS = 0.2  # between looks at sandboxes that are still loading torch


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.code", description="Judge submissions of code labs.")
    parser.add_argument("--ahead", type=int, default=0, help="how many sandboxes to keep ready")
    parser.add_argument("--unconfined", action="store_true", help="without sandboxes: your own machine")
    parser.add_argument("--idle-seconds", type=float, help="after how long without a submission to leave")
    asked = parser.parse_args(list(arguments))
    why_not = None if asked.unconfined else sandbox.why_not()
    pool = sandbox.Pool(0 if why_not else asked.ahead, asked.unconfined)
    pool.fill()
    try:
        importlib.import_module("labs.code.grading")  # with torch, while sandboxes load theirs
        for line in _lines(asked.idle_seconds, pool):
            _serve(line, pool, why_not)
            pool.fill()
    finally:
        pool.end()
    return 0


def _lines(idle_seconds: float | None, pool: sandbox.Pool) -> Iterator[bytes]:
    """The lines of standard input, until it ends or has said nothing for so long. The pool is filled meanwhile."""
    rest = b""
    while True:
        if not select.select([0], [], [], idle_seconds if pool.is_full else FILL_SECONDS)[0]:
            if pool.is_full:
                break
            pool.fill()
            continue
        data = os.read(0, 2**16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
    if rest.strip():
        yield rest


def _serve(line: bytes, pool: sandbox.Pool, why_not: str | None) -> None:
    try:
        submission = Submission.model_validate_json(line)
    except ValidationError as error:
        _emit(PhaseEvent(id="", t=0.0, phase="failed", detail=f"no submission: {error.error_count()} mistakes"))
        return
    from labs.code import grading  # noqa: PLC0415 - main loads it when its sandboxes have started

    try:
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
