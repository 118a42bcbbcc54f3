"""Why a run failed: the rank that failed first, a named cause and its last lines."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from pathlib import Path

from app.lab.work import RunFailure, killed_as_asked
from labs.spec import Fault
from labs.spec.events import STARTS_AGAIN, Event, Failure, LogEvent, PhaseEvent, StepEvent
from worker import untrusted

LAST_LINES = 20
LOST_ANOTHER_RANK = "lost another rank"
DISK_FULL = "disk full"

# torchrun's report of each failed rank: "time : 2026-11-21_11:27:16", "host : here", "rank : 1 (local_rank: 1)",
# "exitcode : -9 (pid: 123)"
_REPORT = re.compile(
    r"(?:^ *time *: *(\S{1,40}) *\n(?: *host *:[^\n]*\n)?)?^ *rank *: *(\d{1,4})\b[^\n]*\n *exitcode *: *(-?\d{1,4})\b",
    re.MULTILINE,
)


def explain(
    events: Iterable[Event], torchrun_output: str, logs: Path, exit_code: int = 1, faults: Iterable[Fault] = ()
) -> RunFailure:
    """Cause, message, rank, step and last lines of a run that ended badly.

    torchrun blames whichever rank it saw end first, often one that only noticed that another had died. So what the
    ranks said comes first: one with a cause of its own; else one that left no word, by its exit code. `exit_code` is
    the launch's own: torchrun may have been killed before it could report on anybody. Of `faults`, which the run asked
    for, one that a rank says it came to is its cause.
    """
    seen = list(events)
    said = {e.rank: e for e in _since_last_start(seen) if isinstance(e, PhaseEvent) and e.phase == "failed"}
    own = [event for event in said.values() if event.detail is None or event.detail.cause != LOST_ANOTHER_RANK]
    reported = _reports(torchrun_output)
    codes = {rank: code for _, rank, code in reported}
    silent = [rank for rank in codes if rank not in said]
    if own:
        rank, cause, text = _by_own_word(min(own, key=lambda event: event.t))
    elif silent:
        rank = min((each for each in reported if each[1] in silent), key=_turn_of_death)[1]
        cause, text = _as_asked(rank, faults, seen) or _by_exit_code(rank, codes[rank])
    elif said:
        rank, cause = min(said), LOST_ANOTHER_RANK
        text = f"Rank {rank} lost another rank, which left no word."
    else:
        cause, text = _of_torchrun_alone(seen, exit_code)
        return RunFailure(cause, text, lines=tuple(torchrun_output.splitlines()[-LAST_LINES:]))
    lines_rank, lines = _lines_of_first([rank, *said], seen, logs)
    return RunFailure(cause, _short(text), rank, last_step(seen) + 1, tuple(lines), lines_rank)


def reported_ranks(torchrun_output: str) -> set[int]:
    """The ranks that torchrun says have failed."""
    return {rank for _, rank, _ in _reports(torchrun_output)}


def _reports(torchrun_output: str) -> list[tuple[str, int, int]]:
    """Time, rank and exit code of each rank that torchrun says has failed."""
    return [(time, int(rank), int(code)) for time, rank, code in _REPORT.findall(torchrun_output)]


def _since_last_start(seen: list[Event]) -> list[Event]:
    """Without what led to a restart: the run went on after that."""
    starts = [e.t for e in seen if isinstance(e, PhaseEvent) and (e.doing or "").startswith(STARTS_AGAIN)]
    return [event for event in seen if not starts or event.t >= starts[-1]]


def silence(events: Iterable[Event], rank: int, seconds: float, logs: Path) -> RunFailure:
    """Why a run was ended of which one rank gave no sign of life for `seconds`."""
    seen = list(events)
    step = last_step(seen)
    since = f"since step {step}" if step else "since before the first step"
    text = f"Rank {rank} has been silent {since}: its process gave no sign of life for {seconds:.0f} s."
    lines_rank, lines = _lines_of_first([rank], seen, logs)
    message = f"{text} It was stopped, or it hangs."
    return RunFailure("silent", message, rank, step or None, tuple(lines), lines_rank)


def disk_full(events: Iterable[Event]) -> RunFailure:
    """Why a run was ended, or ended itself, that had no room to write."""
    step = last_step(events)
    return RunFailure(DISK_FULL, f"The disk was full {when(step)}. Make room, and run it again.", step=step or None)


def host_lost(events: Iterable[Event]) -> RunFailure:
    """Why a warm run ended whose host is gone."""
    step = last_step(events)
    text = f"The process that this run was started from was killed {when(step)}, and its ranks with it."
    return RunFailure(
        "host lost", f"{text} Somebody killed it, or the system did when memory ran out.", step=step or None
    )


def _turn_of_death(report: tuple[str, int, int]) -> tuple[bool, str, bool, int]:
    """Who died first: never one with SIGTERM, which torchrun sends to those that are left. Of the same second, a signal
    says more than an exit code."""
    time, rank, code = report
    return code == -signal.SIGTERM, time, code >= 0, rank


def _of_torchrun_alone(seen: list[Event], exit_code: int) -> tuple[str, str]:
    """Cause and message where neither a rank nor torchrun left a word on any rank."""
    step = last_step(seen)
    at = when(step) if seen else "before any rank reported"
    number = -exit_code if exit_code < 0 else exit_code - 128  # the leash says 128 + n after signal n
    if number in (signal.SIGKILL, signal.SIGTERM):
        text = f"torchrun was ended by {signal.Signals(number).name} {at}, and its ranks with it."
        why = " Somebody killed it, or the system did when memory ran out." if number == signal.SIGKILL else ""
        return "torchrun killed", text + why
    return "torchrun failed", f"torchrun ended {at}."


def when(step: int) -> str:
    """In words, of what came after step `step`; 0 is before the first."""
    return f"after step {step}" if step else "before the first step"


def last_step(seen: Iterable[Event]) -> int:
    """The last step that was done; 0 before the first."""
    return max((event.step for event in seen if isinstance(event, StepEvent)), default=0)


def _lines_of_first(ranks: Iterable[int], events: list[Event], logs: Path) -> tuple[int | None, list[str]]:
    """The last lines of the first of `ranks` that wrote any: a killed rank may have written none."""
    for rank in ranks:
        lines = last_lines(events, rank, logs)
        if lines:
            return rank, lines
    return None, []


def _by_own_word(event: PhaseEvent) -> tuple[int, str, str]:
    detail = event.detail or Failure("failed", "It did not say why.")
    return event.rank, detail.cause, f"Rank {event.rank} failed: {detail.cause}. {detail.message}".strip()


def last_lines(events: Iterable[Event], rank: int, logs: Path) -> list[str]:
    """The last lines a rank wrote: its reported log lines, else what its standard error holds."""
    reported = [event.line for event in events if isinstance(event, LogEvent) and event.rank == rank]
    if reported:
        return reported[-LAST_LINES:]
    for stream in ("stderr", "stdout"):
        for path in untrusted.matching(logs, f"*/attempt_*/{rank}/{stream}.log"):
            lines = untrusted.last_lines(logs, path, LAST_LINES)
            if lines:
                return lines
    return []


def _as_asked(rank: int, faults: Iterable[Fault], seen: list[Event]) -> tuple[str, str] | None:
    """Of a rank that killed itself because its run asked for it; None of any other."""
    said = {event.line for event in _since_last_start(seen) if isinstance(event, LogEvent) and event.rank == rank}
    return killed_as_asked(rank, faults, said)


def _by_exit_code(rank: int, code: int) -> tuple[str, str]:
    if code >= 0:
        return f"exit code {code}", f"Rank {rank} ended with exit code {code} without saying why."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}", f"Rank {rank} was ended by something that is no signal: {code}."
    if name == "SIGKILL":
        why = "Somebody killed it, or the system did when memory ran out."
        return "killed", f"Rank {rank} was killed ({name}). {why}"
    return f"signal {name}", f"Rank {rank} was ended by {name}."


def _short(text: str, longest: int = 500) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
