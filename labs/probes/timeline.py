"""When a rank did what: the spans of a step, from which a pipeline's Gantt chart is drawn.

A span is one pass of one micro-batch through one stage (F forward, B backward, W the weights' own gradients where
backward is split in two), the optimizer's update, or `idle`: waiting for a message of another stage, with nothing else
to do. What a rank does between its spans (averaging gradients, bookkeeping) is in none of them.
The collectives of the ledger (labs.probes.communication) are reported beside them, from the call until the result is
there: what of them lies under a pass costs nothing.

On a GPU work is only queued when a call returns. The probe therefore waits for the GPU at both ends of a span, which
takes away what would have overlapped: watched steps are slower than the others, and throughput is not taken from them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch

from labs.probes.layers import Layers
from labs.probes.report import Reporter
from labs.spec.events import Pass, SpanEvent

What = Pass | Literal["idle", "optimizer"]


@dataclass(frozen=True)
class Span:
    """`start` and `end` are Unix times in seconds, which the ranks of one machine share."""

    what: What
    stage: int
    micro_batch: int | None
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


class Timeline:
    """The spans of one step of this rank, and when its layers ran."""

    def __init__(self, device: torch.device) -> None:
        self._on_cuda = device.type == "cuda"
        self.spans: list[Span] = []
        self.layers = Layers(self._now)
        self.started_at = self.ended_at = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around the step that is looked at."""
        self.spans = []
        self.started_at = self._now()
        with self.layers.watching():
            yield
        self.ended_at = self._now()

    @contextmanager
    def span(self, what: What, stage: int, micro_batch: int | None = None) -> Iterator[None]:
        start = self._now()
        try:
            yield
        finally:
            self.spans.append(Span(what, stage, micro_batch, start, self._now()))

    def seconds_of(self, what: What) -> float:
        return sum(span.seconds for span in self.spans if span.what == what)

    def _now(self) -> float:
        if self._on_cuda:
            torch.cuda.synchronize()
        return time.time()


def report_spans(reporter: Reporter, step: int, spans: Iterable[Span]) -> None:
    """Emit the spans of a step, their times in seconds since the run started."""
    since = reporter.started_at_seconds
    for span in spans:
        start, end = round(span.start - since, 6), round(span.end - since, 6)
        reporter.emit(SpanEvent, step, span.what, span.stage, span.micro_batch, start, end)
