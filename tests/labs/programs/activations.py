"""The memory of a typical step of the lab's own model, for every way that --specs names, as events of rank 0."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from findings import Findings

from labs.data import Batches, load_text
from labs.joining import join
from labs.parallel.mesh import Mesh
from labs.preload import EVERY_STRATEGY, preload
from labs.probes.instrument import Instrument
from labs.probes.watched import spread_watched, watched_step
from labs.spec import RunSpec, parse_run_spec

CPU = torch.device("cpu")
STEPS = 2  # the optimizer's state is made in the first: the second is typical, and probed


def moments(spec: RunSpec) -> dict[str, dict[str, int]]:
    mesh = Mesh(spec.parallel, "cpu")
    instrument = Instrument(("memory",), STEPS, CPU, mesh)
    strategy, _ = spread_watched(spec, mesh, CPU, instrument)
    batches = Batches(load_text(), spec.training, mesh.data_rank, mesh.data_ranks, CPU)
    for step in range(1, STEPS + 1):
        watched_step(instrument, step, strategy, batches.of_step)
    return instrument.moments


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--specs", type=Path)
    parser.add_argument("--events", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    preload(*EVERY_STRATEGY)
    join(CPU)
    findings = Findings(options.events, dist.get_rank())
    for name, data in json.loads(options.specs.read_text()).items():
        findings.add("moments", name=name, moments=moments(parse_run_spec(data)))
    dist.barrier()
    os._exit(0)  # as labs.train does, and for its reason


main()
