"""A gradient overflows on rank 1 alone, under every way of spreading the state: what both ranks then do, as events."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from findings import Findings
from torch import Tensor

from labs.command import read_spec
from labs.data import Batches, load_text
from labs.joining import join
from labs.model import build_model
from labs.parallel.apply import parallelise
from labs.parallel.buckets import local
from labs.parallel.mesh import Mesh
from labs.parallel.precision import LossScaler
from labs.parallel.strategy import Strategy, train_step
from labs.probes.instrument import Instrument
from labs.spec import RunSpec

CPU = torch.device("cpu")


def weights(strategy: Strategy) -> list[Tensor]:
    return [local(parameter).detach().clone() for parameter in strategy.parameters()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec")
    parser.add_argument("--events", type=Path)
    options = parser.parse_args()
    given = read_spec(options.spec)
    torch.set_num_threads(1)
    join(CPU)
    findings = Findings(options.events, dist.get_rank())
    for zero in range(4):
        overflow(given.model_copy(update={"parallel": given.parallel.model_copy(update={"zero": zero})}), findings)
    dist.barrier()
    os._exit(0)  # as labs.train does, and for its reason


def overflow(spec: RunSpec, findings: Findings) -> None:
    mesh = Mesh(spec.parallel, "cpu")
    strategy = parallelise(build_model(spec.model, spec.training.sequence, 1), spec, mesh, CPU)
    scaler = strategy.optimizer
    assert isinstance(scaler, LossScaler)
    batches = Batches(load_text(), spec.training, mesh.data_rank, mesh.data_ranks, CPU)
    off = Instrument((), 2, CPU, mesh)
    scales, moved = [scaler.scale], []
    for step in (1, 2):
        too_much = 1e12 if step == 1 and findings.rank == 1 else 1.0
        strategy.loss_scale = lambda too_much=too_much: too_much * scaler.scale
        before = weights(strategy)
        train_step(strategy, batches.of_step(step), off)
        strategy.optimizer.zero_grad()
        moved.append(any(not torch.equal(a, b) for a, b in zip(before, weights(strategy), strict=True)))
        scales.append(scaler.scale)
    finite = all(bool(each.isfinite().all()) for each in weights(strategy))
    findings.add("overflow", zero=spec.parallel.zero, scales=scales, moved=moved, finite=finite)


main()
