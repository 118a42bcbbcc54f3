"""The peak of a step by our tracker and by two other instruments, under DDP and under FSDP, as events of rank 0.

ours_bytes, allocator_bytes: the growth over the step's start, ours and from the profiler's record of the allocator.
ours_total_bytes, torch_bytes: everything that is alive, ours and from torch.distributed._tools.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from findings import Findings
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile

from labs.command import read_spec
from labs.data import Batches, load_text
from labs.joining import join
from labs.model import build_model
from labs.parallel.apply import parallelise
from labs.parallel.mesh import Mesh
from labs.preload import EVERY_STRATEGY, preload
from labs.probes.instrument import Instrument
from labs.probes.watched import watched_step
from labs.spec import RunSpec

CPU = torch.device("cpu")


class Subject:
    """A model that can be trained for a step, watched or not."""

    def __init__(self, spec: RunSpec, steps: int = 2) -> None:
        self.spec = spec
        self.model = build_model(spec.model, spec.training.sequence, 1)
        mesh = Mesh(spec.parallel, "cpu")
        self.ours, self.off = Instrument(spec.probes, steps, CPU, mesh), Instrument((), steps, CPU, mesh)
        with self.ours.watching_construction():
            self.strategy = parallelise(self.model, spec, mesh, CPU)
        self.ours.attach(self.strategy)
        self.batches = Batches(load_text(), spec.training, mesh.data_rank, mesh.data_ranks, CPU)

    def step(self, number: int, instrument: Instrument) -> None:
        watched_step(instrument, number, self.strategy, self.batches.of_step)

    def allocator_peak_bytes(self) -> int:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            self.step(3, self.off)
        changes = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
        now = peak = 0
        for change in sorted(changes, key=lambda event: event.start_ns()):
            now += change.nbytes()
            peak = max(peak, now)
        return peak

    def torch_peak_bytes(self) -> int:
        if self.spec.parallel.zero == 3:
            tracker = FSDPMemTracker(self.model, self.strategy.optimizer.inner)
        else:
            tracker = MemTracker()
            tracker.track_external(self.strategy.modules[0], self.strategy.optimizer.inner)
        with tracker:
            for number in (4, 5):  # the first one warms it up
                tracker.reset_mod_stats()
                self.step(number, self.off)
        return tracker.get_tracker_snapshot("peak")[CPU]["Total"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec")
    parser.add_argument("--events", type=Path)
    options = parser.parse_args()
    given = read_spec(options.spec)
    torch.set_num_threads(1)
    preload(*EVERY_STRATEGY)
    join(CPU)
    rank = dist.get_rank()
    for zero, strategy in ((0, "ddp"), (3, "fsdp")):
        subject = Subject(given.model_copy(update={"parallel": given.parallel.model_copy(update={"zero": zero})}))
        subject.step(1, subject.off)
        subject.step(2, subject.ours)
        peak, start = subject.ours.moments["peak"], subject.ours.moments["forward_start"]
        alone = dist.get_world_size() == 1
        found = {
            "ours_bytes": peak["total"] - (start["total"] - start["temporary"]),
            "ours_total_bytes": peak["total"],
            "allocator_bytes": subject.allocator_peak_bytes() if alone else None,
            "torch_bytes": None if alone else subject.torch_peak_bytes(),
        }
        first = Subject(subject.spec, steps=1)
        first.step(1, first.ours)
        if rank == 0:
            findings = Findings(options.events, rank)
            findings.add("peak", strategy=strategy, **found)
            findings.add("first_step", strategy=strategy, moments=first.ours.moments)
    dist.barrier()
    os._exit(0)  # as labs.train does, and for its reason


main()
