"""What the training loop has to know of a model that was spread over ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from labs.parallel.buckets import local
from labs.parallel.recompute import Recomputation
from labs.spec.events import Pass, StepPhase

SharesOf = Callable[[Iterable[nn.Parameter]], list[Tensor]]
MicroBatch = tuple[Tensor, Tensor]  # token ids and targets, both (micro_batch, sequence)


class Phases(Protocol):
    """Whoever wants to know what a step is doing: the probes."""

    def passing(self, what: Pass, stage: int, micro_batch: int) -> AbstractContextManager[None]:
        """Around one pass of one micro-batch through one stage."""
        ...

    def sending(self, phase: StepPhase, messages: Iterable[Tensor]) -> None:
        """These tensors are about to be sent, and belong to this phase, whatever runs meanwhile."""

    def waiting(self, stage: int) -> AbstractContextManager[None]:
        """While a rank can do nothing but wait for a message of another stage."""
        ...

    def updating(self) -> AbstractContextManager[None]:
        """Around the optimizer's update."""
        ...


class Optimizer(Protocol):
    """What updates the parameters."""

    def step(self, gradient_scale: float = 1.0) -> None:
        """Update the parameters this rank answers for, by its gradients times `gradient_scale`; afterwards every rank
        has what its forward needs."""

    def zero_grad(self) -> None:
        """Let go of the gradients."""

    def tensors(self) -> Iterable[Tensor]:
        """All it keeps from step to step: moments, step counters, and master weights where it has them."""
        ...


def whole_gradients(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """The gradients that are there of `parameters`: of each what this rank has, which is all unless FSDP cut it."""
    return [local(parameter.grad) for parameter in parameters if parameter.grad is not None]


@dataclass
class Strategy:
    """A model ready for parallel training.

    modules: what this rank runs forward and backward: the model, or the stages of it that fell to this rank.
    micro_step: the context for one forward and backward pass. Its argument says whether this is the step's last
        micro-batch, after which the gradients must have been averaged.
    finish: what gradients still need after the last backward pass, in order.
    has_buckets: whether modules allocate memory for gradients when they are set up, and when they regroup it.
    my_tokens: what of each (micro_batch, sequence) of tokens this rank works on: all, but for context parallelism.
    passes: runs all micro-batches of a step forward and backward; returns the sum of their losses, zero on a rank
        that sees no loss. None is one after the other; a pipeline brings its own.
    shares_of: what this rank answers for of some parameters' averaged gradients, when `finish` has got so far.
    held_gradients: the gradients this rank keeps, where they are not its parameters' own.
    loss_scale: what the loss is multiplied by before backward.
    recomputation: what is computed again in backward.
    measure: what else is worth reporting of the step just done, by name and unit.
    """

    modules: list[nn.Module]
    optimizer: Optimizer
    micro_step: Callable[[bool], AbstractContextManager[None]] = field(default=lambda _last: nullcontext())
    finish: list[Callable[[], None]] = field(default_factory=list)
    has_buckets: bool = False
    my_tokens: Callable[[Tensor], Tensor] = field(default=lambda tokens: tokens)
    passes: Callable[[list[MicroBatch], Phases], Tensor] | None = None
    shares_of: SharesOf = whole_gradients
    held_gradients: Callable[[], Iterable[Tensor]] | None = None
    loss_scale: Callable[[], float] = field(default=lambda: 1.0)
    recomputation: Recomputation | None = None
    measure: Callable[[], Mapping[str, tuple[float, str]]] | None = None

    def parameters(self) -> list[nn.Parameter]:
        """The parameters this rank keeps: its share where they are sharded."""
        return unique_parameters(self.modules)

    def gradients(self) -> list[Tensor]:
        """The gradients this rank keeps at the moment."""
        if self.held_gradients is not None:
            return list(self.held_gradients())
        return [parameter.grad for parameter in self.parameters() if parameter.grad is not None]


def unique_parameters(modules: Iterable[nn.Module]) -> list[nn.Parameter]:
    """The modules' parameters, one that several share only once."""
    return list({id(each): each for module in modules for each in module.parameters()}.values())


def train_step(strategy: Strategy, batch: list[MicroBatch], phases: Phases) -> Tensor:
    """One optimizer step over this rank's micro-batches. Returns the sum of their losses."""
    batch = [(strategy.my_tokens(tokens), strategy.my_tokens(targets)) for tokens, targets in batch]
    run = strategy.passes or (lambda batch, phases: _one_after_the_other(strategy, batch, phases))
    loss_sum = run(batch, phases)
    for finish in strategy.finish:
        finish()
    with phases.updating():
        strategy.optimizer.step()
    return loss_sum


def _one_after_the_other(strategy: Strategy, batch: list[MicroBatch], phases: Phases) -> Tensor:
    (model,) = strategy.modules
    loss_sum = torch.zeros((), device=batch[0][0].device)
    for index, (tokens, targets) in enumerate(batch):
        with strategy.micro_step(index == len(batch) - 1):
            with phases.passing("F", 0, index):
                loss = model(tokens, targets)
            # Gradients add up over micro-batches and are averaged over ranks. All pieces of the batch are
            # of one size, so the mean of their means is the mean over the global batch.
            with phases.passing("B", 0, index):
                (loss * (strategy.loss_scale() / len(batch))).backward()
        loss_sum += loss.detach()
    return loss_sum
