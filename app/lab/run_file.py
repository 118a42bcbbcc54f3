"""A run as one file that another install opens: JSON lines, a head, the events, a foot with their digest.

It is text, so nothing in it has a name, leads elsewhere or unfolds, and it is read a line at a time. A stranger made
it: every line is checked as what a rank reports is, and the digest says only that the file arrived whole.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from app.core.errors import DomainError, Violation
from app.core.limits import Limits
from labs.spec import RunSpec, SpecError, of_any_size, parse_run_spec
from labs.spec.events import NUL, Event, LogEvent, event_line, read_event

ENDING = ".rzrun"
ACCEPTED = f"a file ({ENDING}) that RankZero wrote of a run"
HEAD_BYTES = 1_000_000
_VERSION = 1  # of the format, as `Head` has it
LINE_BYTES = 128 * 1024  # twice what is read of a rank's own lines
MOST_EVENTS = Limits().run_events + 1_000
MOST_FILE_BYTES = Limits().run_event_bytes + HEAD_BYTES  # 135 MB
LONGEST_LOG_LINE = 2_000  # characters
MOST_LINES = 200  # that a failure quotes

_STEP = 1_000  # events between two words about how far it is

Progress = Callable[[int, int], None]


class _Part(BaseModel):
    """Unknown fields are another release's, and left out."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


class RecordedFailure(_Part):
    """Why the run failed, as `app.lab.records.RunFailure` has it."""

    cause: Annotated[str, Field(max_length=200)]
    message: Annotated[str, Field(max_length=LONGEST_LOG_LINE)]
    rank: int | None = None
    step: int | None = None
    lines: Annotated[list[Annotated[str, Field(max_length=LONGEST_LOG_LINE)]], Field(max_length=MOST_LINES)] = []
    lines_rank: int | None = None


class RecordedRun(_Part):
    """A run as the file tells it. Neither its learner nor what was predicted is in it: they are nobody else's."""

    id: Annotated[int, Field(ge=1, lt=2**31)]
    spec: dict[str, JsonValue]
    command: Annotated[str, Field(max_length=20_000)] = ""
    status: Literal["finished", "failed", "cancelled", "expired"]
    phase: Annotated[str, Field(max_length=200)] = ""
    device: Annotated[str, Field(max_length=200)] | None = None
    launch: Annotated[str, Field(max_length=20)] | None = None
    steps_done: Annotated[int, Field(ge=0, lt=2**31)] = 0
    created_at: Annotated[AwareDatetime, Field(strict=False)]
    started_at: Annotated[AwareDatetime, Field(strict=False)] | None = None
    ended_at: Annotated[AwareDatetime, Field(strict=False)]
    name: Annotated[str, Field(max_length=80)] = ""
    note: Annotated[str, Field(max_length=2_000)] = ""
    result: dict[str, JsonValue] | None = None
    failure: RecordedFailure | None = None


class Head(_Part):
    """The first line: which format, of which release, and the run."""

    rankzero_run: Literal[1]
    release: Annotated[str, Field(max_length=60)]
    exported_at: Annotated[AwareDatetime, Field(strict=False)]
    run: RecordedRun


class _Foot(_Part):
    """The last line: the SHA-256 of all bytes before it, and how many events they are."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    events: Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class ReadRun:
    """A file that was read and found right. `events` are lines, to be made objects only as they are stored."""

    head: Head
    spec: RunSpec
    events: tuple[bytes, ...]
    digest: str


def is_run_file(name: str) -> bool:
    """Whether a file of this name is said to be a run."""
    return name.lower().endswith(ENDING)


def write_file(head: Head, events: Iterable[Event]) -> Iterator[bytes]:
    """The file, piece by piece."""
    digest, count = hashlib.sha256(), 0
    first = head.model_dump_json(exclude_none=True).encode() + b"\n"
    digest.update(first)
    yield first
    for event in events:
        line = event_line(event) + b"\n"
        digest.update(line)
        count += 1
        yield line
    yield json.dumps({"sha256": digest.hexdigest(), "events": count}).encode() + b"\n"


def read_file(file: BinaryIO, progress: Progress = lambda _done, _total: None) -> ReadRun:
    """The run in `file`. Raises DomainError with what is wrong, and where."""
    size = file.seek(0, 2)
    file.seek(0)
    if size > MOST_FILE_BYTES:
        raise _refused(f"{size:,} bytes", "It is too large.", f"up to {MOST_FILE_BYTES:,} bytes")
    digest = hashlib.sha256()
    first = file.readline(HEAD_BYTES + 1)
    head = _head(first)
    spec = _spec(head.run.spec)
    digest.update(first)
    events: list[bytes] = []
    while line := file.readline(LINE_BYTES + 1):
        number = len(events) + 2
        if line.startswith(b'{"sha256"'):
            _check_foot(line, digest.hexdigest(), len(events), number)
            if file.read(1):
                raise _refused(f"line {number + 1}", "Something follows its last line.", ACCEPTED)
            return ReadRun(head, spec, tuple(events), digest.hexdigest())
        if len(line) <= LINE_BYTES and not line.endswith(b"\n"):
            raise _refused(f"line {number}", "It is cut off in the middle of a line.", "a whole file")
        digest.update(line)
        events.append(_event(line, number, spec.parallel.world_size))
        if len(events) > MOST_EVENTS:
            raise _refused(f"line {number}", "It has too many events.", f"up to {MOST_EVENTS:,}")
        if len(events) % _STEP == 0:
            progress(file.tell(), size)
    raise _refused(f"line {len(events) + 2}", "It ends before its last line: a part of it is missing.", "a whole file")


def measured(result: Mapping[str, object] | None, names: Iterable[str]) -> dict[str, float]:
    """Of a result that somebody told, the numbers of these names."""
    told = result or {}
    found = {name: told.get(name) for name in names}
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _head(line: bytes) -> Head:
    if len(line) > HEAD_BYTES:
        raise _refused("line 1", "Its first line is too long to be the head of a run.", ACCEPTED)
    if NUL in line:
        raise _refused("line 1", "It has a character that no database keeps.", ACCEPTED)
    if not line.strip():
        raise _refused("line 1", "It is empty.", ACCEPTED)
    try:
        written = json.loads(line)
    except (ValueError, RecursionError):
        raise _refused("line 1", "It is no run: its first line is no JSON.", ACCEPTED) from None
    version = written.get("rankzero_run") if isinstance(written, dict) else None
    if isinstance(version, int) and version > _VERSION:
        message = f"It was written by a newer RankZero, whose files of runs have version {version}."
        raise _refused("line 1", message, f"version {_VERSION}; a newer RankZero here opens it")
    try:
        return Head.model_validate_json(line)
    except ValidationError as error:
        wrong = [
            Violation(f"file.{'.'.join(map(str, each['loc'])) or 'head'}", "…", f"{each['msg']}.", ACCEPTED)
            for each in error.errors(include_url=False, include_input=False)[:10]
        ]
        raise DomainError("The run was not opened.", wrong) from None


def _spec(data: Mapping[str, JsonValue]) -> RunSpec:
    try:
        return parse_run_spec(dict(data), sizes=of_any_size)  # of whatever carried it out
    except SpecError as error:
        wrong = [Violation(f"file.run.spec.{v.field}", v.value, v.message, v.accepted) for v in error.violations]
        raise DomainError("The run was not opened: this release has no such run.", wrong) from None


def _event(line: bytes, number: int, ranks: int) -> bytes:
    """The line again, as our own ranks would have written it."""
    where = f"line {number}"
    if len(line) > LINE_BYTES:
        raise _refused(where, "The line is too long.", f"up to {LINE_BYTES:,} bytes")
    try:
        event = read_event(line)
    except ValueError:
        raise _refused(where, "The line is no event of a run.", "lines as RankZero wrote them") from None
    if not 0 <= event.rank < ranks:
        raise _refused(where, f"There is no rank {event.rank}.", f"0 to {ranks - 1}")
    if isinstance(event, LogEvent) and len(event.line) > LONGEST_LOG_LINE:
        raise _refused(where, "A line of the log is too long.", f"up to {LONGEST_LOG_LINE:,} characters")
    return event_line(event)


def _check_foot(line: bytes, digest: str, events: int, number: int) -> None:
    try:
        foot = _Foot.model_validate_json(line)
    except ValidationError:
        raise _refused(f"line {number}", "Its last line is damaged.", "a whole file") from None
    if (foot.sha256, foot.events) != (digest, events):
        raise _refused(
            f"line {number}", "Its digest is another: the file was damaged or changed.", "the file as it was"
        )


def _refused(where: str, message: str, accepted: str) -> DomainError:
    return DomainError("The run was not opened.", [Violation("file", where, message, accepted)])
