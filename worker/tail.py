"""Following the event files of a run's ranks: new lines, checked and capped, in the order of their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from labs.spec.events import Event, LogEvent, PhaseEvent, ResultEvent, read_event
from worker.untrusted import LONGEST_LINE_BYTES, MOST_FILE_BYTES, GrowingLines, shown

MOST_EVENTS = 200_000
MOST_LOG_LINES = 2_000
LONGEST_LOG_LINE = 2_000
MOST_RUN_BYTES = 128 * 1024 * 1024  # of all ranks' lines together
MOST_PAST_THE_LIMIT = 100  # phases and results that still count when there have been too many events


class Follower:
    """Remembers how far each rank's file was read. Only whole lines count; a torn one waits for its end."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self._lines = {rank: GrowingLines(folder, Path(f"events-{rank}.jsonl")) for rank in range(ranks)}
        self._bytes = self._late = 0
        self._said: set[str] = set()
        self.events = 0
        self.log_lines = 0
        self._refused = 0

    def read(self) -> list[Event]:
        """Events written since the last call."""
        found = [event for rank in self._lines for event in self._read_rank(rank)]
        found.sort(key=lambda event: event.t)
        return found

    @property
    def refused(self) -> int:
        """Lines that were no events."""
        return self._refused + sum(lines.too_long for lines in self._lines.values())

    @property
    def is_behind(self) -> bool:
        """Whether there may be more to read at once: one call reads a bounded part of each file."""
        return any(lines.is_behind for lines in self._lines.values())

    def _read_rank(self, rank: int) -> Iterator[Event]:
        lines, last = self._lines[rank], 0.0
        for line in lines.read():
            self._bytes += len(line)
            event = self._checked(line, rank) if self._bytes <= MOST_RUN_BYTES else None
            if event is not None:
                last = event.t
                yield event
        for why in self._cuts(lines):
            if why not in self._said:
                self._said.add(why)
                yield LogEvent(last, rank, "stderr", f"[cut: {why}]")

    def _cuts(self, lines: GrowingLines) -> Iterator[str]:
        """What was left out so far."""
        if lines.too_long:
            yield f"a line of events was longer than {LONGEST_LINE_BYTES:,} bytes"
        if lines.is_cut:
            yield f"a rank's events are read up to {MOST_FILE_BYTES:,} bytes"
        if self._bytes > MOST_RUN_BYTES:
            yield f"a run's events are read up to {MOST_RUN_BYTES:,} bytes"
        if self.log_lines >= MOST_LOG_LINES:
            yield f"a run's log is kept up to {MOST_LOG_LINES:,} lines"
        if self.events > MOST_EVENTS:
            yield f"a run's events are kept up to {MOST_EVENTS:,}"

    def _checked(self, line: bytes, rank: int) -> Event | None:
        """The event of a line, or None: what is no event of ours, or too much of it, is counted and left out."""
        event = _parsed(line)
        if event is None:
            self._refused += 1
            return None
        if event.rank != rank:  # a file speaks for its own rank
            event = replace(event, rank=rank)
        if isinstance(event, LogEvent):
            self.log_lines += 1
            if self.log_lines >= MOST_LOG_LINES:  # the last one says that there were more
                return None
            event = replace(event, line=shown(event.line, LONGEST_LOG_LINE))
        self.events += 1
        if self.events <= MOST_EVENTS:
            return event
        counts_late = isinstance(event, ResultEvent | PhaseEvent)
        self._late += counts_late
        return event if counts_late and self._late <= MOST_PAST_THE_LIMIT else None


def _parsed(line: bytes) -> Event | None:
    if rb"\u0000" in line:  # which ends a string in C: no database keeps it
        return None
    try:
        return read_event(line)
    except ValueError:
        return None
