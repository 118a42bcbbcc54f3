"""The judge (`python -m labs.code`) as a process of ours: submissions in, events out. It alone starts learner code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from pydantic import ValidationError

from app.core.errors import DomainError
from labs.command import environment
from labs.spec.code import CodeEvent, PhaseEvent, Submission, ends_submission, read_code_event, submission_line


def judge(submission: Submission) -> Iterator[CodeEvent]:
    """The events of one submission, the last its verdict, from a judge of its own. Raises DomainError."""
    command = [sys.executable, "-P", "-m", "labs.code"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as process:
        if process.stdin is None or process.stdout is None:
            raise DomainError("The judge could not be started.")
        process.stdin.write(submission_line(submission))
        process.stdin.close()
        for line in process.stdout:
            event = _read(line)
            yield event
            if ends_submission(event):
                return
    raise DomainError(f"The judge ended with code {process.returncode} and without a verdict.")


def _read(line: bytes) -> CodeEvent:
    try:
        event = read_code_event(line)
    except ValidationError as error:
        raise DomainError(f"The judge wrote what is no event: {line[:80]!r}.") from error
    if isinstance(event, PhaseEvent) and event.phase == "failed":
        raise DomainError(f"Learner code cannot be run here: {event.detail}.")
    return event
