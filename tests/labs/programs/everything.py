"""Ranks that train one step of each family of strategies, then carry out every program, in one start of torchrun."""

from __future__ import annotations

import argparse
import importlib
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist

from labs.data import Batches, load_text
from labs.joining import join
from labs.parallel.mesh import Mesh
from labs.probes.instrument import Instrument
from labs.probes.report import EventFile, Reporter
from labs.probes.watched import spread_watched, watched_step
from labs.programs.running import Bench
from labs.spec import PROGRAMS, RunSpec, parse_run_spec

CPU = torch.device("cpu")


def train(spec: RunSpec) -> None:
    mesh = Mesh(spec.parallel, "cpu")
    instrument = Instrument((), 1, CPU, mesh)
    strategy, _ = spread_watched(spec, mesh, CPU, instrument)
    batches = Batches(load_text(), spec.training, mesh.data_rank, mesh.data_ranks, CPU)
    watched_step(instrument, 1, strategy, batches.of_step)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--specs", type=Path)
    parser.add_argument("--events", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    join(CPU)
    reporter = Reporter(dist.get_rank(), EventFile(asked.events, dist.get_rank()))
    for name, data in json.loads(asked.specs.read_text()).items():
        spec = parse_run_spec(data)
        if spec.options is None:
            train(spec)
        elif PROGRAMS[spec.program].axis is not None or dist.get_rank() == 0:  # a program without one has one rank
            bench = Bench(spec.options, reporter, CPU, seed=1)
            importlib.import_module(f"labs.programs.{spec.program}").measure(spec.options, bench)
        dist.barrier()
        reporter.log("stdout", name)
    dist.barrier()
    os._exit(0)  # as labs.train does, and for its reason


main()
