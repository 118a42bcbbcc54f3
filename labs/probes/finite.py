"""Where the first value that is no number came up: which step, forward or backward, part of the model and rank.

A loss that is NaN tells nothing of its cause: whatever the first such value was, a moment later all are. So in every
step each part of the model leaves the sum of what it gave, and of the gradient it got, which is no number where one of
them is none. Nobody reads these sums, which a GPU would have to be waited for, until a loss is none. They are hidden
from the probes and change no result. docs/decisions/no-numbers.md has what they cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from labs.failures import LOST_RANK, CannotGoOnError
from labs.model import GPT, Block
from labs.parallel.buckets import local

NO_NUMBER = "NaN"
_FULL = 4  # bytes
_AFTER_LAYERS = 1 << 20  # beyond any layer


@dataclass(frozen=True, order=True)
class NotFinite:
    """A value that is none. They are in the order in which one leads to another: a forward to its backward, and that
    by the update to the next step."""

    step: int
    is_backward: bool
    turn: int  # of the part, the other way round in backward
    part: str
    rank: int = 0

    def __str__(self) -> str:
        what = f"the gradient of {self.part}, in backward" if self.is_backward else f"{self.part}, in forward"
        return f"{what} of step {self.step} on rank {self.rank}"


class Watch:
    """The sums of one rank's parts, in this step and the one before."""

    def __init__(self, modules: Iterable[nn.Module], layers: Sequence[int], has_loss_scaling: bool = False) -> None:
        """`layers` are the numbers, from 0, of the blocks in `modules`."""
        # gradients that are none are part of loss scaling: it leaves such an update out
        self._keeps_previous = not has_loss_scaling
        self._sums: list[tuple[bool, int, str, Tensor]] = []
        self._previous: list[tuple[bool, int, str, Tensor]] = []
        for turn, part, module in _parts([*modules], layers):
            module.register_forward_hook(partial(self._returned, turn, part))

    def begin(self) -> None:
        """A step begins."""
        self._previous, self._sums = self._sums if self._keeps_previous else [], []

    def _returned(self, turn: int, part: str, _module: nn.Module, _args: Any, output: Any) -> None:
        if not isinstance(output, Tensor):
            return
        if torch._C._current_graph_task_id() == -1:  # else it is computed again, for backward
            self._note(False, turn, part, output)
        if output.requires_grad:
            output.register_hook(partial(self._note, True, turn, part))  # type: ignore[no-untyped-call]

    def _note(self, is_backward: bool, turn: int, part: str, values: Tensor) -> None:
        if torch._C._len_torch_dispatch_stack():  # the probes see every operation; this is not the model's
            with _disable_current_modes():
                total = _sum(values)
        else:
            total = _sum(values)
        self._sums.append((is_backward, -turn if is_backward else turn, part, total))

    def first(self, step: int) -> NotFinite | None:
        """The first of this rank, if `step` is the one that has just been done."""
        return min((*_none(self._previous, step - 1), *_none(self._sums, step)), default=None)


def stop_unless_number(loss: float, step: int, watch: Watch, rank: int) -> None:
    """Raise CannotGoOnError where the loss of `step`, which all ranks know alike, is no number: on the rank that has
    the first such value with where it is, on the others that they lost it. Collective then."""
    if math.isfinite(loss):
        return
    mine = watch.first(step)
    everybody: list[NotFinite | None] = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, mine)
    known = (replace(value, rank=at) for at, value in enumerate(everybody) if value)
    first = min(known, default=None)
    if rank != (first.rank if first else 0):
        raise CannotGoOnError(LOST_RANK, f"the loss of step {step} is no number: the cause is on another rank")
    what = "NaN" if math.isnan(loss) else "infinite"
    where = f"First: {first}." if first else "Every part of the model gave numbers until then."
    raise CannotGoOnError(NO_NUMBER, f"The loss of step {step} is {what}. {where}")


def spoil_weight(modules: Iterable[nn.Module]) -> None:
    """On purpose: one weight of attention is NaN, in the middle of the layers that are here."""
    blocks = [each for module in modules for each in module.modules() if isinstance(each, Block)]
    weights = (local(each.detach()) for each in blocks[len(blocks) // 2].attention.parameters())
    with torch.no_grad():
        weight = next(weight for weight in weights if weight.numel())
        weight[(0,) * weight.dim()] = math.nan


def _none(sums: Sequence[tuple[bool, int, str, Tensor]], step: int) -> Iterator[NotFinite]:
    if not sums:
        return
    numbers = torch.stack([total.double() for *_, total in sums]).isfinite().tolist()
    for (is_backward, turn, part, _), is_number in zip(sums, numbers, strict=True):
        if not is_number:
            yield NotFinite(step, is_backward, turn, part)


def _parts(modules: list[nn.Module], layers: Sequence[int]) -> Iterator[tuple[int, str, nn.Module]]:
    """What is watched, with its turn in forward: the ends of the model, and of each layer attention and MLP."""
    numbers = iter(layers)
    for whole in (each for module in modules for each in module.modules() if isinstance(each, GPT)):
        for turn, part, name in (
            (-1, "the embedding's output", "tokens"),
            (_AFTER_LAYERS, "the last norm's output", "norm"),
            (_AFTER_LAYERS + 1, "the loss", "next_token"),
        ):
            if isinstance(found := getattr(whole, name, None), nn.Module):
                yield turn, part, found
        for block in whole.blocks:
            assert isinstance(block, Block)
            number = next(numbers)
            yield 2 * number, f"layer {number + 1}'s attention output", block.attention
            yield 2 * number + 1, f"layer {number + 1}'s MLP output", block.mlp


def _sum(values: Tensor) -> Tensor:
    values = local(values.detach())
    # in 16 bits the sum of numbers could be none
    return values.sum(dtype=torch.float32) if values.element_size() < _FULL else values.sum()
