"""Having submissions of code labs judged: claim one, hand it to the judge's process, write down what it says.

The judge (`python -m labs.code`) is a process of its own without our settings or credentials, and only it starts what a
learner wrote. It is started for the first submission and kept, with its sandboxes, as long as there is something to do.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import structlog
from pydantic import ValidationError

from app.codelabs import work
from app.codelabs.work import Claim
from app.core.db import database_time
from labs.command import environment
from labs.spec.code import (
    CodeEvent,
    PhaseEvent,
    Submission,
    VerdictEvent,
    ends_submission,
    read_code_event,
    submission_line,
)
from worker.context import Context

log = structlog.get_logger()

RANKS = 4  # sandboxes that are kept ready
LONGEST_SECONDS = 120.0  # of a submission, with everything: each of its runs has a deadline of its own
POLL_SECONDS = 0.05
_LONGEST_LINE_BYTES = 8 * 2**20


class JudgeGone(Exception):
    """The judge ended, or said what is no event."""


class Judge:
    """The judge's process, started when it is needed."""

    def __init__(self, unconfined: bool, idle_seconds: float) -> None:
        self._options = ["--ahead", str(RANKS), "--idle-seconds", f"{idle_seconds:g}"]
        self._options += ["--unconfined"] if unconfined else []
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._starting = threading.Lock()  # one thread warms it up while another hands it a submission

    @property
    def is_there(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Have it load torch, if it is not there. Returns at once."""
        with self._starting:
            if self.is_there:
                return
            self.end()
            command = [sys.executable, "-P", "-m", "labs.code", *self._options]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), start_new_session=True
            )
            self._rest = b""

    def events(self, submission: Submission) -> Iterator[CodeEvent | None]:
        """What it says of a submission, None where it has said nothing for a moment. Raises JudgeGone."""
        has_spoken = False
        for is_last in (False, True):
            try:
                for event in self._read(self._ask(submission), submission.id):
                    has_spoken = has_spoken or event is not None
                    yield event
            except JudgeGone:
                if is_last or has_spoken:
                    raise
                continue  # it left just now, for want of something to do
            return

    def _ask(self, submission: Submission) -> int:
        """Hand it over; where it will answer."""
        self.start()
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise JudgeGone
        try:
            process.stdin.write(submission_line(submission))
            process.stdin.flush()
        except OSError:
            raise JudgeGone from None
        return process.stdout.fileno()

    def _read(self, output: int, identity: str) -> Iterator[CodeEvent | None]:
        """Up to its end. What it still says of an earlier submission, which somebody stopped listening to (the database
        was away, say), is passed over: it would be taken for this one's verdict."""
        while True:
            while b"\n" in self._rest:
                line, _, self._rest = self._rest.partition(b"\n")
                try:
                    event = read_code_event(line)
                except ValidationError:
                    raise JudgeGone from None
                if event.id not in (identity, ""):  # without an id: what it was handed is no submission
                    continue
                yield event
                if ends_submission(event):
                    return
            if not select.select([output], [], [], POLL_SECONDS)[0]:
                yield None
                continue
            data = os.read(output, 65536)
            if not data or len(self._rest) > _LONGEST_LINE_BYTES:
                raise JudgeGone
            self._rest += data

    def end(self) -> None:
        """End it; its sandboxes end with it."""
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process.kill()
        self._process.wait()
        self._process = None


_judges: dict[int, Judge] = {}
_lock = threading.Lock()


def judge_of(context: Context) -> Judge:
    """This process's judge."""
    with _lock:
        chosen = context.settings
        return _judges.setdefault(id(context), Judge(chosen.code_labs == "unconfined", chosen.warm_idle_seconds))


def warm_up(context: Context) -> None:
    """Have the judge and its sandboxes there when a submission comes. Returns at once."""
    if context.settings.code_labs != "off" and context.settings.warm:
        judge_of(context).start()


def let_go(context: Context) -> None:
    """End the judge, with all that it has started."""
    judge = _judges.pop(id(context), None)
    if judge is not None:
        judge.end()


def take_next(context: Context) -> bool:
    """Claim and have judged one submission; False when none waits."""
    with context.database.write() as session:
        claim = work.claim_next(session, context.name, database_time(session))
    if claim is None:
        return False
    log.info("submission is judged", submission=claim.id, lab=claim.submission.lab)
    try:
        _carry_out(context, claim)
    except work.LeaseLost:
        log.warning("submission was taken away", submission=claim.id)
        judge_of(context).end()
    return True


def _carry_out(context: Context, claim: Claim) -> None:
    if context.settings.code_labs == "off":
        _end(context, claim, "failed", "Running learners' code is switched off here (RANKZERO_CODE_LABS=off).")
        return
    judge, pending, until, beaten = judge_of(context), list[CodeEvent](), time.monotonic() + LONGEST_SECONDS, 0.0
    try:
        for event in judge.events(_with_reference(context, claim.submission)):
            if isinstance(event, PhaseEvent) and event.phase == "failed":
                _end(context, claim, "failed", _why(event.detail))
                return
            pending += [event] if event is not None else []
            if pending and (event is None or isinstance(event, VerdictEvent)):  # what came at once is written at once
                with context.database.write() as session:
                    work.append(session, claim, pending, database_time(session))
                pending = []
            if isinstance(event, VerdictEvent):
                with context.database.write() as session:
                    work.end_judged(session, claim, event.verdict, database_time(session))
                return
            if time.monotonic() - beaten > 1.0:
                beaten = time.monotonic()
                with context.database.write() as session:
                    if work.beat(session, claim, database_time(session)):
                        judge.end()
                        work.end_without(session, claim, "cancelled", "", database_time(session))
                        return
            if context.stopping.is_set() or time.monotonic() > until:
                judge.end()
                why = "The worker was stopped." if context.stopping.is_set() else "It took longer than it may."
                _end(context, claim, "failed", f"{why} Submit it again.")
                return
    except JudgeGone:
        judge.end()
        _end(context, claim, "failed", "The judge ended without a verdict. Submit it again.")


def _with_reference(context: Context, submission: Submission) -> Submission:
    """With the lab's own program, whose trace is shown beside one that passes."""
    path = context.settings.cards / "labs" / submission.lab / "reference.py"
    with contextlib.suppress(OSError, ValueError):
        if submission.mode == "submit":
            return submission.model_copy(update={"reference": path.read_text("utf-8")})
    return submission


def _why(detail: str) -> str:
    return (
        f"Learners' code cannot be run here: {detail}. On a machine of your own RANKZERO_CODE_LABS=unconfined runs it "
        "without a sandbox."
    )


def _end(context: Context, claim: Claim, status: str, detail: str) -> None:
    with context.database.write() as session:
        work.end_without(session, claim, status, detail, database_time(session))
