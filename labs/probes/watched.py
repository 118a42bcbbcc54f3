"""A model spread over the ranks, and its steps, under the probes: what a run and a dry run do alike."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labs.model import build_model, count_parameters
from labs.parallel.apply import parallelise
from labs.parallel.mesh import Mesh
from labs.parallel.strategy import MicroBatch, Strategy, train_step
from labs.probes.instrument import Instrument
from labs.spec import RunSpec


def spread_watched(spec: RunSpec, mesh: Mesh, device: torch.device, instrument: Instrument) -> tuple[Strategy, int]:
    """The model of `spec` as this rank has it, and how many parameters the whole one has.

    Nobody keeps the whole model: of a pipeline's layers a rank holds its own only.
    """
    model = build_model(spec.model, spec.training.sequence, spec.training.seed)
    if device.type != "cpu":  # nor can the fake tensors of a dry run be moved
        model.to(device)
    parameters = count_parameters(model)
    with instrument.watching_construction():
        strategy = parallelise(model, spec, mesh, device)
    del model
    instrument.attach(strategy)
    return strategy, parameters


def watched_step(
    instrument: Instrument, number: int, strategy: Strategy, draw: Callable[[int], list[MicroBatch]]
) -> Tensor:
    """Step `number` under the probes, from drawing its batch to letting go of its gradients. Returns the mean of this
    rank's losses, which is zero where it sees none."""
    with instrument.step(number):
        batch = draw(number)
        loss_sum = train_step(strategy, batch, instrument)
        instrument.note("step_end")
        strategy.optimizer.zero_grad()
    return loss_sum / len(batch)
