"""A code lab's submission, the events while it is judged, and its verdict. Torch-free.

`python -m labs.code` reads submissions and writes events, one JSON object a line each; the last of a submission is its
verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

MOST_CODE_BYTES = 64 * 1024
Mode = Literal["run", "submit"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Submission(_Strict):
    """What is to be judged. `run` gives the visible cases on few ranks, `submit` hidden ones on 2, 3 and 4."""

    id: Annotated[str, Field(max_length=64)] = ""
    lab: Annotated[str, Field(max_length=16)]
    code: str
    mode: Mode = "submit"
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = Field(
        default=None, description="of the hidden cases; drawn where none is given, as it is for a learner"
    )
    reference: str | None = Field(default=None, description="a program of ours, for its trace beside one that passed")
    owner: Annotated[str, Field(max_length=64, description="whose it is: no two share a sandbox")] = ""


class Check(_Strict):
    """One thing that was looked at on so many ranks."""

    name: str
    ranks: int
    passed: bool
    expected: str
    seen: str
    meaning: str = ""
    held: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0, description="the share of the cases in which a check held that did not hold in all of them"
    )


class RankState(_Strict):
    """Where a rank was when a run could not go on."""

    rank: int
    state: Literal["waits", "computes", "returned", "failed"]
    operation: str | None = None
    sequence: int | None = None
    line: int | None = None
    seconds: float | None = None


class Autopsy(_Strict):
    """Why a run never ended."""

    kind: str
    says: str
    ranks: tuple[RankState, ...]
    on: int  # so many ranks


class CodeError(_Strict):
    """An error at a line of the learner's file."""

    type: str
    message: str
    line: int | None = None
    column: int | None = None
    text: str | None = None
    rank: int | None = None
    traceback: tuple[str, ...] = ()


class TracedCall(_Strict):
    """A call of one rank on the judge's clock: when it was made, when waited for, when over."""

    rank: int
    operation: str
    sequence: int
    peer: int | None = None
    line: int | None = None
    group: tuple[int, ...] = ()  # the ranks of a collective
    payload_bytes: int
    posted: float
    waited: float | None = None
    done: float | None = None


class Trace(_Strict):
    """The first case of a run on so many ranks."""

    ranks: int
    seconds: float
    calls: tuple[TracedCall, ...]


class Verdict(_Strict):
    """What a submission comes to. `mistake` is a name among the lab's `mistakes`, or one of those all labs share."""

    lab: str
    passed: bool
    score: float
    checks: tuple[Check, ...] = ()
    mistake: str | None = None
    shows: tuple[str, ...] = Field(
        default=(), description="every mistake of the lab that the runs show; `mistake` is one"
    )
    autopsy: Autopsy | None = None
    error: CodeError | None = None
    seed: int | None = None
    mode: Mode = "submit"
    seconds: float = 0.0
    ledger: tuple[tuple[int, int, str, int, int, int], ...] = Field(
        default=(), description="ranks, rank, operation, calls, payload bytes, bytes on the wire"
    )
    trace: Trace | None = None
    beside: Trace | None = Field(default=None, description="of the reference, once the program has passed")


class PhaseEvent(_Strict):
    kind: Literal["phase"] = "phase"
    id: str
    t: float
    phase: Literal["starting", "running", "judged", "failed"]
    detail: str = ""


class CheckEvent(_Strict):
    kind: Literal["check"] = "check"
    id: str
    t: float
    check: Check


class OutputEvent(_Strict):
    """What a rank printed."""

    kind: Literal["output"] = "output"
    id: str
    t: float
    ranks: int
    rank: int
    text: str


class VerdictEvent(_Strict):
    kind: Literal["verdict"] = "verdict"
    id: str
    t: float
    verdict: Verdict


CodeEvent = Annotated[PhaseEvent | CheckEvent | OutputEvent | VerdictEvent, Field(discriminator="kind")]
_EVENT: TypeAdapter[CodeEvent] = TypeAdapter(CodeEvent)
_EVENTS: TypeAdapter[tuple[CodeEvent, ...]] = TypeAdapter(tuple[CodeEvent, ...])


def submission_line(submission: Submission) -> bytes:
    """A submission as the judge reads it."""
    return submission.model_dump_json().encode() + b"\n"


def ends_submission(event: CodeEvent) -> bool:
    """Whether it is the last that the judge says of a submission: its verdict, or that it could not be run."""
    return isinstance(event, VerdictEvent) or (isinstance(event, PhaseEvent) and event.phase == "failed")


def read_code_event(line: str | bytes) -> CodeEvent:
    """An event as it was written. Raises pydantic's ValidationError."""
    return _EVENT.validate_json(line)


def read_code_events(stored: Sequence[object]) -> tuple[CodeEvent, ...]:
    """Events as their dumps were stored."""
    return _EVENTS.validate_python(stored)
