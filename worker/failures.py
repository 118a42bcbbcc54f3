"""Why a run failed: the rank that failed first, a named cause and its last lines."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labs.spec.events import Event, Failure, LogEvent, PhaseEvent, StepEvent
from worker import untrusted

LAST_LINES = 20
LOST_ANOTHER_RANK = "lost another rank"

# torchrun's report of each failed rank: "rank : 1 (local_rank: 1)", "exitcode : -9 (pid: 123)"
_REPORT = re.compile(r"^ *rank *: *(\d{1,4})\b[^\n]*\n *exitcode *: *(-?\d{1,4})\b", re.MULTILINE)


def explain(events: Iterable[Event], torchrun_output: str, logs: Path) -> dict[str, Any]:
    """Cause, message, rank, step and last lines of a run that ended badly.

    torchrun blames whichever rank it saw end first, often one that only noticed that another had died. So what the
    ranks said comes first: one with a cause of its own; else one that left no word, by its exit code.
    """
    seen = list(events)
    said = {e.rank: e for e in seen if isinstance(e, PhaseEvent) and e.phase == "failed"}
    own = [event for event in said.values() if event.detail is None or event.detail.cause != LOST_ANOTHER_RANK]
    codes = {int(rank): int(code) for rank, code in _REPORT.findall(torchrun_output)}
    silent = [rank for rank in codes if rank not in said]
    if own:
        rank, cause, text = _by_own_word(min(own, key=lambda event: event.t))
    elif silent:
        rank = min(silent, key=lambda each: codes[each])  # a signal (negative) says more than an exit code
        cause, text = _by_exit_code(rank, codes[rank])
    elif said:
        rank, cause = min(said), LOST_ANOTHER_RANK
        text = f"Rank {rank} lost another rank, which left no word."
    else:
        return {
            "cause": "torchrun failed",
            "message": "torchrun ended before any rank reported.",
            "rank": None,
            "step": None,
            "lines_rank": None,
            "lines": torchrun_output.splitlines()[-LAST_LINES:],
        }
    step = max((event.step for event in seen if isinstance(event, StepEvent)), default=0) + 1
    lines_rank, lines = _lines_of_first([rank, *said], seen, logs)
    return {
        "cause": cause,
        "message": _short(text),
        "rank": rank,
        "step": step,
        "lines": lines,
        "lines_rank": lines_rank,
    }


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
