"""The verdict on a submission: runs on 2, 3 and 4 ranks, checked one by one, and the mistake named."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import torch

from labs.code.by_case import held_by_case
from labs.code.checks import wire_bytes
from labs.code.grader import Case, Draw, Grader, Judged
from labs.code.graders import graders
from labs.code.inside.frames import clean
from labs.code.rank import Job
from labs.code.record import STRANGE, RankError, Record
from labs.code.running import Outcome, Running
from labs.code.sandbox import Pool, Sandbox
from labs.spec.code import (
    MOST_CODE_BYTES,
    Autopsy,
    Check,
    CheckEvent,
    CodeError,
    CodeEvent,
    OutputEvent,
    PhaseEvent,
    Submission,
    Trace,
    TracedCall,
    Verdict,
    VerdictEvent,
)

MOST_TRACED = 600  # calls of a trace
MOST_SHOWN = 1000  # characters of what a check says
VISIBLE_SEED = 1
SEED_BITS = 52  # a number that JavaScript can hold
FINISHES = "finishes"
# What a hang, or another end, is called where no sign of the lab's own shows.
_SHARED_MISTAKES = {
    "exception": "crash",
    "exception on one rank": "crash",
    "wrong order": "wrong-order",
    "missing call": "missing-call",
    "wrong dtype": "wrong-dtype",
    "wrong shape": "wrong-shape",
    "wrong root": "wrong-root",
    "wrong reduction": "wrong-reduction",
    "still computing": "endless-loop",
    "everyone sends first": "everyone-sends-first",
    "everyone receives first": "everyone-receives-first",
    "messages that do not meet": "messages-do-not-meet",
    "missing message": "missing-message",
}
SHARED_MISTAKES = (*dict.fromkeys(_SHARED_MISTAKES.values()), "syntax-error", "wrong-signature", "forged", "unreadable")


@dataclass
class _Judging:
    """A submission while it is judged."""

    submission: Submission
    grader: Grader
    emit: Callable[[CodeEvent], None]
    started: float
    deadline_seconds: float

    def now(self) -> float:
        return round(time.monotonic() - self.started, 3)

    def phase(self, phase: str, detail: str = "") -> None:
        event = PhaseEvent(id=self.submission.id, t=self.now(), phase=phase, detail=detail)
        self.emit(event)

    def said(self, ranks: int, rank: int, text: str) -> None:
        self.emit(OutputEvent(id=self.submission.id, t=self.now(), ranks=ranks, rank=rank, text=text))

    def check(self, check: Check) -> None:
        self.emit(CheckEvent(id=self.submission.id, t=self.now(), check=check))


def judge(
    submission: Submission, pool: Pool, emit: Callable[[CodeEvent], None], deadline_seconds: float | None = None
) -> Verdict:
    """Judge a submission with sandboxes of `pool`, telling of each thing as it happens.

    Raises NoSandbox, LookupError.
    """
    grader = graders().get(submission.lab)
    if grader is None:
        raise LookupError(f"there is no lab {submission.lab}; there are {', '.join(graders())}")
    judging = _Judging(submission, grader, emit, time.monotonic(), deadline_seconds or grader.deadline_seconds)
    judging.phase("starting")
    with _one_thread():
        verdict = _refuse(submission) or _judge(judging, pool)
    judging.phase("judged")
    emit(VerdictEvent(id=submission.id, t=judging.now(), verdict=verdict))
    return verdict


@contextmanager
def _one_thread() -> Iterator[None]:
    """What a grader computes is small: torch's threads would cost thirty times what they do, waiting for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _refuse(submission: Submission) -> Verdict | None:
    """A file that cannot be one is not run at all."""
    size = len(submission.code.encode(errors="surrogatepass"))
    message = None
    if size > MOST_CODE_BYTES:
        message = f"The file has {size:,} bytes; {MOST_CODE_BYTES:,} are the most."
    elif "\0" in submission.code:
        line = submission.code[: submission.code.index("\0")].count("\n") + 1
        message = f"Line {line} has a NUL character; a Python file has none."
    if message is None:
        return None
    error = CodeError(type="Unreadable", message=message)
    return Verdict(lab=submission.lab, passed=False, score=0.0, mistake="unreadable", error=error, mode=submission.mode)


def _judge(judging: _Judging, pool: Pool) -> Verdict:
    grader, submission = judging.grader, judging.submission
    seed = _seed(submission)
    ranks = grader.ranks if submission.mode == "submit" else grader.visible_ranks
    sandboxes = pool.take(max(ranks), submission.owner)
    runs: list[Judged] = []
    try:
        for count in ranks:
            judging.phase("running", f"{count} ranks")
            runs.append(_run(judging, sandboxes, count, seed))
            if _is_hopeless(runs[-1]):
                break
        verdict = _verdict(judging, runs, seed, len(ranks))
        return _beside_reference(judging, sandboxes, verdict)
    finally:
        pool.give_back(sandboxes)


def _beside_reference(judging: _Judging, sandboxes: Sequence[Sandbox], verdict: Verdict) -> Verdict:
    """With the trace of the reference on the same inputs, where the program has passed."""
    reference = judging.submission.reference
    if not verdict.passed or reference is None or verdict.seed is None or verdict.trace is None:
        return verdict
    grader, ranks = judging.grader, verdict.trace.ranks
    cases = grader.cases(ranks, Draw(verdict.seed, ranks))
    outcome = Running(_job(judging, reference, ranks, cases, verdict.seed), sandboxes).follow()
    return verdict.model_copy(update={"beside": _trace(outcome.record)})


def _seed(submission: Submission) -> int:
    if submission.mode == "run":
        return VISIBLE_SEED
    return secrets.randbits(SEED_BITS) if submission.seed is None else submission.seed


def _run(judging: _Judging, sandboxes: Sequence[Sandbox], ranks: int, seed: int) -> Judged:
    grader = judging.grader
    cases = grader.cases(ranks, Draw(seed, ranks))
    job = _job(judging, judging.submission.code, ranks, cases, seed)
    outcome = Running(job, sandboxes, partial(judging.said, ranks)).follow()
    checks: list[Check] = []
    for check in _checks(grader, ranks, cases, outcome):
        judging.check(check)
        checks.append(check)
    judged = Judged(ranks, cases, outcome, checks)
    if outcome.forged is not None or _is_hopeless(judged) or judging.submission.mode == "run":
        return judged

    def alone(case: Case) -> Record:
        return Running(_job(judging, judging.submission.code, ranks, [case], seed), sandboxes).follow().record

    return replace(judged, checks=held_by_case(grader, cases, checks, outcome.record, alone))


def _job(judging: _Judging, source: str, ranks: int, cases: Sequence[Case], seed: int) -> Job:
    return Job(
        task=judging.grader.task,
        source=source,
        ranks=ranks,
        cases=[case.inputs for case in cases],
        gates=[case.gates for case in cases],
        seed=seed % 2**31 if judging.submission.mode == "run" else secrets.randbits(31),
        deadline_seconds=judging.deadline_seconds,
        with_optimizers=judging.grader.with_optimizers,
    )


def _checks(grader: Grader, ranks: int, cases: Sequence[Case], outcome: Outcome) -> Iterator[Check]:
    finishes = _finishes(ranks, outcome)
    yield finishes
    if not finishes.passed:
        for name in grader.checks_named:
            yield Check(name=name, ranks=ranks, passed=False, expected="", seen="not looked at: the run did not end")
        return
    looked_at = iter(grader.check(ranks, cases, outcome.record))
    for name in grader.checks_named:
        yield _checked(looked_at, name, ranks)


def _checked(looked_at: Iterator[Check], name: str, ranks: int) -> Check:
    """The next check. What a program hands over may be anything: where it cannot even be looked at, it is wrong."""
    try:
        check = next(looked_at)
    except (*STRANGE, StopIteration) as error:
        seen = f"what was handed over cannot be looked at ({type(error).__name__})"
        return Check(name=name, ranks=ranks, passed=False, expected="results that can be compared", seen=seen)
    shown = {field: clean(getattr(check, field), MOST_SHOWN) for field in ("expected", "seen", "meaning")}
    return check.model_copy(update=shown)


def _finishes(ranks: int, outcome: Outcome) -> Check:
    seen, meaning = "every rank returned", ""
    if outcome.forged is not None:
        seen = f"a rank sent what none of ours sends: {outcome.forged}"
        meaning = "The program spoke past torch.distributed. What is judged is what arrives, so this comes to nothing."
    elif outcome.autopsy is not None:
        seen = outcome.autopsy.says
        meaning = _meaning(outcome.autopsy)
    elif outcome.record.errors:
        rank, error = min(outcome.record.errors.items())
        where = f" at your line {error.line}" if error.line else ""
        seen = f"rank {rank}: {error.type}{where}: {error.message}"
    passed = outcome.record.finished
    return Check(name=FINISHES, ranks=ranks, passed=passed, expected="every rank returns", seen=seen, meaning=meaning)


def _meaning(autopsy: Autopsy) -> str:
    if autopsy.kind.startswith("exception"):
        return "The error is the cause; whoever waits, waits for a rank that is gone."
    if autopsy.kind == "still computing":
        return "The line is where the rank was when its time was over."
    return "A run that cannot go on is ended at once; the line is where the rank waits."


def _is_hopeless(run: Judged) -> bool:
    """Whether more ranks would say nothing new: the file cannot be used, or used up all of its time."""
    return run.hang == "still computing" or any(error.refused for error in run.record.errors.values())


def _verdict(judging: _Judging, runs: Sequence[Judged], seed: int, planned: int) -> Verdict:
    grader = judging.grader
    checks = tuple(check for run in runs for check in run.checks)
    total = planned * (1 + len(grader.checks_named))
    passed = len(checks) == total and all(each.passed for each in checks)
    broken = next((run for run in runs if not run.record.finished), None)
    return Verdict(
        lab=grader.lab,
        passed=passed,
        score=round(sum(each.passed for each in checks) / total, 4),
        checks=checks,
        mistake=None if passed else _mistake(grader, runs),
        shows=() if passed else tuple(_shown(grader, runs)),
        autopsy=broken.outcome.autopsy if broken else None,
        error=_error(broken.record) if broken else None,
        seed=seed,
        mode=judging.submission.mode,
        seconds=judging.now(),
        ledger=tuple(row for run in runs for row in _ledger(run)),
        trace=_trace((broken or runs[-1]).record),
    )


def _mistake(grader: Grader, runs: Sequence[Judged]) -> str | None:
    for run in runs:
        if run.outcome.forged is not None:
            return "forged"
        for error in run.record.errors.values():
            if error.refused:
                return "syntax-error" if error.column is not None else "wrong-signature"
    try:
        named = grader.mistake(runs)
    except STRANGE:  # results that nobody would make by mistake
        named = None
    if named is not None:
        return named
    for run in runs:
        if run.hang is not None:
            return _SHARED_MISTAKES[run.hang]
        if run.record.errors:
            return "crash"
    return None


def _shown(grader: Grader, runs: Sequence[Judged]) -> Iterator[str]:
    """Every mistake of the lab that the runs show, each once."""
    shown = []
    for sign in grader.signs:
        with suppress(*STRANGE):
            if sign.shows(runs):
                shown.append(sign.mistake)
    yield from dict.fromkeys(shown)


def _error(record: Record) -> CodeError | None:
    if not record.errors:
        return None
    rank, error = min(record.errors.items())
    return _as_error(rank, error)


def _as_error(rank: int, error: RankError) -> CodeError:
    return CodeError(
        type=error.type,
        message=error.message,
        line=error.line,
        column=error.column,
        text=error.text,
        rank=rank,
        traceback=error.traceback,
    )


def _trace(record: Record) -> Trace:
    """The first case, from its first call on."""
    calls = [call for call in record.calls if call.case == 0][:MOST_TRACED]
    first = min((call.posted_at for call in calls), default=0.0)
    last = max((call.done_at or call.waited_at or call.posted_at for call in calls), default=0.0)

    def since(at: float | None) -> float | None:
        return None if at is None else round(at - first, 6)

    traced = (
        TracedCall(
            rank=call.rank,
            operation=call.operation,
            sequence=call.sequence,
            peer=call.peer,
            line=call.line,
            group=call.group,
            payload_bytes=call.payload_bytes,
            posted=round(call.posted_at - first, 6),
            waited=since(call.waited_at),
            done=since(call.done_at),
        )
        for call in calls
    )
    return Trace(ranks=record.ranks, seconds=round(last - first, 6), calls=tuple(traced))


def _ledger(run: Judged) -> Iterator[tuple[int, int, str, int, int, int]]:
    found: dict[tuple[int, str], list[int]] = {}
    for call in run.record.calls:
        row = found.setdefault((call.rank, call.operation), [0, 0, 0])
        for place, value in enumerate((1, call.payload_bytes, wire_bytes(call))):
            row[place] += value
    for (rank, operation), row in sorted(found.items()):
        yield (run.ranks, rank, operation, row[0], row[1], row[2])
