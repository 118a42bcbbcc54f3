"""What a rank tells the world: one event after the other (labs.spec.events), each a JSON object on a line of its own.

Rank 0 alone reports phases and steps; any rank says that it failed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec

from labs.command import RUN_STARTED_AT
from labs.spec.events import Event, Failure, LogEvent, PhaseEvent, RunPhase, Stream, event_line

P = ParamSpec("P")


class Reporter:
    """Stamps the events of one rank with time and rank, and hands them to `write`."""

    def __init__(self, rank: int, write: Callable[[Event], None]) -> None:
        self.rank = rank
        self._write = write
        self.started_at_seconds = float(os.environ.get(RUN_STARTED_AT) or time.time())

    def emit(self, kind: Callable[Concatenate[float, int, P], Event], *args: P.args, **kwargs: P.kwargs) -> None:
        """Report an event of class `kind`, made of now, this rank and the rest of its fields."""
        self._write(kind(round(time.time() - self.started_at_seconds, 6), self.rank, *args, **kwargs))

    def phase(self, phase: RunPhase, doing: str | None = None) -> None:
        """Where the run as a whole stands, and what it is `doing` there: rank 0 speaks for all."""
        if self.rank == 0:
            self.emit(PhaseEvent, phase, doing=doing)

    def failed(self, cause: str, message: str) -> None:
        self.emit(PhaseEvent, "failed", Failure(cause, _valid_text(message)))

    def log(self, stream: Stream, line: str) -> None:
        self.emit(LogEvent, stream, _valid_text(line))


class EventFile:
    """Appends events to `events-<rank>.jsonl`, each with a single write, so that a reader sees whole lines
    and a rank that is killed loses nothing it has reported."""

    def __init__(self, folder: Path, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"events-{rank}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, event: Event) -> None:
        os.write(self._file, event_line(event) + b"\n")


def _valid_text(text: str) -> str:
    """`text` as UTF-8 can write it: a file's name that is no UTF-8 comes with lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()
