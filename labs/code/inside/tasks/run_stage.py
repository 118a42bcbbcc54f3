"""Have the learner's run_stage carry out this rank's actions on a stage that asks the judge for its factors."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Case, Desk, callable_of

LARGE_WIDTH = 8
LAST_NOTE = "in the last backward"
MOST_PASSES = 2  # of a micro-batch: so many are seen, where one is right


class _Pass(torch.autograd.Function):
    """The k-th pass through a stage: its factors are asked for when it is made, and when its gradient comes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, stage: Stage) -> Tensor:
        ctx.stage, ctx.number = stage, stage.forwards
        stage.forwards += 1
        y: Tensor = x * stage.factor(f"F{ctx.number}")
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        found = gradient * ctx.stage.factor(f"B{ctx.number}")
        ctx.stage.note_last()
        return found, None


class Stage(nn.Module):
    """One layer. What it does to the k-th micro-batch it is given depends on what the judge answers then."""

    def __init__(self, weight: Tensor, case: Case) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self._case, self._micro_batches = case, case.inputs["micro_batches"]
        self._is_large = "rows" in case.inputs
        self.forwards, self._backwards = 0, 0

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = _Pass.apply(torch.tanh(x @ self.weight), self)  # type: ignore[no-untyped-call]
        return y

    def factor(self, name: str) -> Any:
        if int(name[1:]) >= MOST_PASSES * self._micro_batches:
            raise RuntimeError(f"the stage is to be called {self._micro_batches} times: once for each micro-batch")
        return self._case.gate(name)

    def note_last(self) -> None:
        self._backwards += 1
        if self._is_large and self._backwards == self._micro_batches:
            self._case.note(LAST_NOTE, parameters=[self.weight])


def run(learner: ModuleType, desk: Desk) -> None:
    run_stage = callable_of(learner, "run_stage")
    for case in desk.cases():
        given = _large(case) if "rows" in case.inputs else case.inputs
        stage = Stage(given["weight"], case)
        targets, like = given["targets"], given["like"]
        if given is not case.inputs:
            case.note("before")
        returned = run_stage(given["actions"], stage, given["inputs"], _loss(targets), like)
        case.result("loss", float(returned) if targets is not None and returned is not None else None)
        case.result("gradient", stage.weight.grad)


def _loss(targets: list[Tensor] | None) -> Callable[[int, Tensor], Tensor] | None:
    return None if targets is None else lambda i, y: (y * targets[i]).mean()


def _large(case: Case) -> dict[str, Any]:
    """A case of which the activations are large: made here, so that they need not be sent."""
    given = case.inputs
    rows, micro_batches = given["rows"], given["micro_batches"]
    generator = torch.Generator().manual_seed(given["seed"])

    def made() -> list[Tensor]:
        one = torch.randn(rows, LARGE_WIDTH, generator=generator)
        return [one] * micro_batches

    inputs = made() if case.rank == 0 else None
    targets = made() if case.rank == case.ranks - 1 else None
    weight = torch.randn(LARGE_WIDTH, LARGE_WIDTH, generator=generator)
    return {**given, "weight": weight, "inputs": inputs, "targets": targets, "like": torch.empty(rows, LARGE_WIDTH)}
