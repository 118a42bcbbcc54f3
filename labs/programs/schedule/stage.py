"""A stage that only takes time: the passes of a real one last as long as one asks for, whatever the machine.

What idles in a pipeline depends on how long passes take and on who waits for whom, not on what is computed. So here a
pass sleeps. Sleeping ranks need no core: eight of them run side by side on two, as they would on eight GPUs.

Everything else is real. torch's schedules call the stage, its result goes to the next rank through the process group,
and backward is autograd's, through these functions:

  Receive   forward: waits for the message of the stage before.   backward: sends it its gradient.
  Compute   forward: takes its time.                              backward: takes that of the input's gradient.
  Weight    forward: hands out the weight.                        backward: takes that of the weight's gradient.
  Send      forward: sends the result on.                         backward: waits for its gradient.

The graph parts at Compute and Weight, as in a real layer: δ of the input needs the weight, δ of the weight needs the
input, and neither needs the other. That is what lets zero-bubble schedules run the second one later (Qi et al. 2023).

A message is (1, 2) numbers: when it arrives, in Unix time, and its micro-batch. That makes links slow without slowing
down a rank: whoever takes a message up sooner waits until it would have arrived.

Between two passes torch, the process group and the operating system need a few milliseconds. A GPU's work is queued
ahead of time, which hides that; here it counts as part of the pass that it leads to, up to half of the pass. What is
later than that is late, and delays whoever waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from labs.probes.timeline import Span, What

MESSAGE = (1, 2)
_HIDDEN = 0.5  # of a pass: how much of what comes before it may be hidden


class Work:
    """What a rank does, and when. `take_seconds` are of the passes of one micro-batch in one of its stages."""

    def __init__(self, take_seconds: Mapping[What, float], message_seconds: float) -> None:
        self._take_seconds, self._message_seconds = take_seconds, message_seconds
        self.start(hurries=True)

    def start(self, hurries: bool = False) -> None:
        """Begin a step. One that hurries takes no time: it is there to set everything up."""
        self.done: list[Span] = []
        self._hurries = hurries
        self._ready_at = time.time()  # the rank has ended its last pass, and has what it needs for the next
        self._link_free_at: dict[int, float] = {}

    def take(self, what: What, stage: int, micro_batch: int) -> None:
        """Spend on a pass the time it takes."""
        seconds = 0.0 if self._hurries else self._take_seconds[what]
        start = max(self._ready_at, time.time() - _HIDDEN * seconds)
        self._ready_at = start + seconds
        _sleep_until(self._ready_at)
        self.done.append(Span(what, stage, micro_batch, start, self._ready_at))

    def message(self, micro_batch: int, rank_there: int | None) -> list[list[float]]:
        """What the rank that is ready now sends another. A link carries one message at a time; within a rank (None)
        there is no link."""
        arrives_at = self._ready_at
        if rank_there is not None and not self._hurries:
            arrives_at = max(arrives_at, self._link_free_at.get(rank_there, 0.0)) + self._message_seconds
            self._link_free_at[rank_there] = arrives_at
        return [[arrives_at, float(micro_batch)]]

    def wait_for(self, message: Tensor) -> None:
        """Until a message has arrived."""
        self._ready_at = max(self._ready_at, float(message[0, 0]))
        _sleep_until(self._ready_at)


def _sleep_until(at: float) -> None:
    time.sleep(max(0.0, at - time.time()))


class TimedStage(nn.Module):
    """Stage `index`; `before` and `after` are the ranks of its neighbours, None where that is this rank or nobody."""

    def __init__(self, index: int, work: Work, before: int | None, after: int | None) -> None:
        super().__init__()
        self.index, self.work, self.before, self.after = index, work, before, after
        self.weight = nn.Parameter(torch.zeros(MESSAGE, dtype=torch.float64))
        # The first stage has embeddings before its layers, for which they need the gradient of their input.
        self.embedding = nn.Parameter(torch.zeros(MESSAGE, dtype=torch.float64)) if index == 0 else None

    def forward(self, message: Tensor) -> Tensor:
        micro_batch = int(message[0, 1])
        x = _Receive.of(message, self, micro_batch)
        if self.embedding is not None:
            x = x + self.embedding
        x = _Compute.of(x, self, micro_batch)
        # autograd goes through functions last one first: in a whole backward the weight's gradient is before the
        # input's, which is on its way as soon as it is there
        x = x + _Weight.of(self.weight, self, micro_batch)
        return _Send.of(x, self, micro_batch)


class _OfStage(Function):
    """Knows the stage and the micro-batch it belongs to; a subclass says what they are used for."""

    @classmethod
    def of(cls, x: Tensor, stage: TimedStage, micro_batch: int) -> Tensor:
        y: Tensor = cls.apply(x, stage, micro_batch)  # type: ignore[no-untyped-call]
        return y

    @staticmethod
    def forward(ctx: Any, x: Tensor, stage: TimedStage, micro_batch: int) -> Tensor:
        ctx.stage, ctx.micro_batch = stage, micro_batch
        return x.clone()


class _Receive(_OfStage):
    @staticmethod
    def forward(ctx: object, x: Tensor, stage: TimedStage, micro_batch: int) -> Tensor:
        stage.work.wait_for(x)
        return _OfStage.forward(ctx, x, stage, micro_batch)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        stage: TimedStage = ctx.stage
        return gradient.new_tensor(stage.work.message(ctx.micro_batch, stage.before)), None, None


class _Compute(_OfStage):
    @staticmethod
    def forward(ctx: object, x: Tensor, stage: TimedStage, micro_batch: int) -> Tensor:
        stage.work.take("F", stage.index, micro_batch)
        return _OfStage.forward(ctx, x, stage, micro_batch)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        ctx.stage.work.take("B", ctx.stage.index, ctx.micro_batch)
        return gradient, None, None


class _Weight(_OfStage):
    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        ctx.stage.work.take("W", ctx.stage.index, ctx.micro_batch)
        return torch.zeros_like(gradient), None, None


class _Send(_OfStage):
    @staticmethod
    def forward(ctx: object, x: Tensor, stage: TimedStage, micro_batch: int) -> Tensor:
        _OfStage.forward(ctx, x, stage, micro_batch)
        return x.new_tensor(stage.work.message(micro_batch, stage.after))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        ctx.stage.work.wait_for(gradient)
        return gradient, None, None
