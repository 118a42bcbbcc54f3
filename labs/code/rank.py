"""What the ranks of a run are to do, and a rank as the judge sees it."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labs.code.inside.frames import FrameReader
from labs.code.memory import Pages

FORKED, SEALED, LOADED = range(3)  # stages of a rank: before, while and after it loads the learner's file


@dataclass(frozen=True)
class Job:
    """What the ranks of a run are to do. `cases` has the inputs of each rank, case by case."""

    task: str
    source: str
    ranks: int
    cases: Sequence[Sequence[Mapping[str, Any]]]
    gates: Sequence[Mapping[str, Sequence[Any]]] = ()  # of each case: by name, what each rank is given there
    seed: int = 0
    deadline_seconds: float = 10.0  # for the learner's file to load, and again from when all ranks have loaded it
    with_optimizers: bool = False  # what they need is loaded before the ranks begin


@dataclass
class Rank:
    """A rank as the judge sees it."""

    number: int
    socket: socket.socket
    output: int
    reader: FrameReader = field(default_factory=FrameReader)
    outgoing: bytearray = field(default_factory=bytearray)
    pid: int | None = None  # as the kernel says whose bytes these are
    process: int | None = None  # a descriptor of it
    pages: Pages | None = None  # at its note before, where its peak could not be forgotten
    case: int = -1
    calls: int = 0
    stage: int = FORKED
    waits_for: int | None = None  # a call's identity
    asked_next: int | None = None
    ended: bool = False  # it said that it is done, or what went wrong, or is gone
    printed: bytearray = field(default_factory=bytearray)
    result_bytes: int = 0
