"""What a rank tells the world: one event after the other, each a JSON object on a line of its own.

Every event has `t` (seconds since the run started), `kind` and `rank`. By kind:

  phase          phase, detail                            rank 0: starting, ready, running, finished
                                                          any rank: failed, detail = {cause, message}
  step           step (from 1), loss, tokens, seconds, tokens_per_second, probed       rank 0 only
                   split of a probed step with the timeline: {forward, backward, optimizer, idle, communication}
  memory         step, at, bytes {parameters, gradients, optimizer, activations, temporary, total}
                   at = forward_start, backward_start, backward_end, step_end, activation_peak (when activations were
                   largest) or peak (when the total was; it also has `during`)
  communication  step, operation, phase, group, group_size, count, payload_bytes, wire_bytes, seconds
  span           step, stage, micro_batch, what (F, B, W, idle, optimizer), start, end: seconds like t
                   what = communication: one collective or message, with operation, group and payload_bytes
  measurement    name, x, y, unit                        what a strategy reports of itself; x is the step
                   figure of a program's point: `name` is its series there
  log            stream, line
  result         summary

Torch-free, so that the first event is out before torch is loaded.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
RUN_STARTED_AT = "RANKZERO_RUN_STARTED_AT"  # Unix time in seconds, set by whoever started the run


class Reporter:
    """Stamps the events of one rank with time and rank, and hands them to `write`."""

    def __init__(self, rank: int, write: Callable[[Event], None]) -> None:
        self.rank = rank
        self._write = write
        self.started_at_seconds = float(os.environ.get(RUN_STARTED_AT) or time.time())

    def emit(self, kind: str, **fields: Any) -> None:
        t = round(time.time() - self.started_at_seconds, 6)
        self._write({"t": t, "kind": kind, "rank": self.rank, **fields})

    def phase(self, phase: str) -> None:
        """Where the run as a whole stands: rank 0 speaks for all."""
        if self.rank == 0:
            self.emit("phase", phase=phase)

    def failed(self, cause: str, message: str) -> None:
        self.emit("phase", phase="failed", detail={"cause": cause, "message": message})

    def log(self, stream: str, line: str) -> None:
        self.emit("log", stream=stream, line=line)


class EventFile:
    """Appends events to `events-<rank>.jsonl`, each with a single write, so that a reader sees whole lines
    and a rank that is killed loses nothing it has reported."""

    def __init__(self, folder: Path, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"events-{rank}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, event: Event) -> None:
        os.write(self._file, (json.dumps(valid_json(event), allow_nan=False) + "\n").encode())


def valid_json(value: Any) -> Any:
    """`value` with null in place of NaN and the infinities, for which JSON has no notation."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: valid_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [valid_json(item) for item in value]
    return value
