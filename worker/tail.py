"""Following the event files of a run's ranks: new lines, checked and capped, in the order of their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.core.limits import Limits
from labs.spec.events import Event, LogEvent, PhaseEvent, ResultEvent, read_event
from worker.untrusted import LONGEST_LINE_BYTES, MOST_FILE_BYTES, GrowingLines, shown

LONGEST_LOG_LINE = 2_000
MOST_PAST_THE_LIMIT = 100  # phases and results that still count when there have been too many events


class Follower:
    """Remembers how far each rank's file was read. Only whole lines count; a torn one waits for its end."""

    def __init__(self, folder: Path, ranks: int, limits: Limits = Limits()) -> None:  # noqa: B008 - it is frozen
        self._limits = limits
        self._lines = {rank: GrowingLines(folder, Path(f"events-{rank}.jsonl")) for rank in range(ranks)}
        self._latest = dict.fromkeys(range(ranks), 0.0)  # of each rank's times
        self._bytes = self._late = 0
        self._said: set[str] = set()
        self.events = 0
        self.log_lines = 0
        self._refused = 0

    def read(self) -> list[Event]:
        """Events written since the last call, by time; those of a rank in its own order, whatever its clock did."""
        found: list[tuple[float, Event]] = []
        for rank in self._lines:
            for event in self._read_rank(rank):
                self._latest[rank] = max(self._latest[rank], event.t)
                found.append((self._latest[rank], event))
        found.sort(key=lambda each: each[0])
        return [event for _, event in found]

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
            event = self._checked(line, rank) if self._bytes <= self._limits.run_event_bytes else None
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
        if self._bytes > self._limits.run_event_bytes:
            yield f"a run's events are read up to {self._limits.run_event_bytes:,} bytes"
        if self.log_lines >= self._limits.run_log_lines:
            yield f"a run's log is kept up to {self._limits.run_log_lines:,} lines"
        if self.events > self._limits.run_events:
            yield f"a run's events are kept up to {self._limits.run_events:,}"

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
            if self.log_lines >= self._limits.run_log_lines:  # the last one says that there were more
                return None
            event = replace(event, line=shown(event.line, LONGEST_LOG_LINE))
        self.events += 1
        if self.events <= self._limits.run_events:
            return event
        counts_late = isinstance(event, ResultEvent | PhaseEvent)
        self._late += counts_late
        return event if counts_late and self._late <= MOST_PAST_THE_LIMIT else None


def _parsed(line: bytes) -> Event | None:
    try:
        return read_event(line)
    except ValueError:
        return None
