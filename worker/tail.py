"""Following the event files of a run's ranks: new lines, checked and capped, in the order of their time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from worker.untrusted import LONGEST_LINE_BYTES, MOST_FILE_BYTES, GrowingLines, shown

KINDS = frozenset({"phase", "step", "memory", "communication", "measurement", "span", "log", "result"})
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

    def read(self) -> list[dict[str, Any]]:
        """Events written since the last call."""
        found = [event for rank in self._lines for event in self._read_rank(rank)]
        found.sort(key=lambda event: event["t"])
        return found

    @property
    def refused(self) -> int:
        """Lines that were no events."""
        return self._refused + sum(lines.too_long for lines in self._lines.values())

    @property
    def is_behind(self) -> bool:
        """Whether there may be more to read at once: one call reads a bounded part of each file."""
        return any(lines.is_behind for lines in self._lines.values())

    def _read_rank(self, rank: int) -> Iterator[dict[str, Any]]:
        lines, last = self._lines[rank], 0.0
        for line in lines.read():
            self._bytes += len(line)
            event = self._checked(line, rank) if self._bytes <= MOST_RUN_BYTES else None
            if event is not None:
                last = event["t"]
                yield event
        for why in self._cuts(lines):
            if why not in self._said:
                self._said.add(why)
                yield {"t": last, "kind": "log", "rank": rank, "stream": "stderr", "line": f"[cut: {why}]"}

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

    def _checked(self, line: bytes, rank: int) -> dict[str, Any] | None:
        """The event of a line, or None: what is no event of ours, or too much of it, is counted and left out."""
        event = _parsed(line)
        if event is None or str(event.get("kind")) not in KINDS or not isinstance(event.get("t"), int | float):
            self._refused += 1
            return None
        event["rank"] = rank  # a file speaks for its own rank
        if event["kind"] == "step" and not isinstance(event.get("step"), int):
            self._refused += 1
            return None
        if event["kind"] == "log":
            self.log_lines += 1
            event["line"] = shown(str(event.get("line", "")), LONGEST_LOG_LINE)
            if self.log_lines >= MOST_LOG_LINES:  # the last one says that there were more
                return None
        self.events += 1
        if self.events <= MOST_EVENTS:
            return event
        self._late += event["kind"] in ("result", "phase")
        return event if event["kind"] in ("result", "phase") and self._late <= MOST_PAST_THE_LIMIT else None


def _parsed(line: bytes) -> dict[str, Any] | None:
    if rb"\u0000" in line:  # which ends a string in C: no database keeps it
        return None
    try:
        event = json.loads(line, parse_constant=_refuse)
        if rb"\u" in line:
            json.dumps(event, ensure_ascii=False).encode()  # half a character cannot be written down
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
