"""Recovery inside a run: sharded checkpoints by `torch.distributed.checkpoint`, and going on from the last whole one
when the ranks were started again: by torchrun, or all of them on all hosts.

Every rank writes what only it has; what several hold alike is written by one of them. A checkpoint counts once its
`.metadata` is there, which is written last. An asynchronous save copies the state first, for training changes it right
after, and writes the copy on a thread of its own.

The optimizer makes its state with its first step, and each strategy keeps it in its own way. So to go on, a step is
done for nothing, after which every tensor is there, and all of them are then overwritten.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save, save

from labs.checkpoints import place_of, whole_steps
from labs.command import restart_count
from labs.parallel.buckets import local
from labs.parallel.mesh import Mesh
from labs.parallel.strategy import Strategy
from labs.probes.report import Reporter
from labs.spec import RunSpec
from labs.spec.events import MeasurementEvent

_KEPT = 2  # the last one, and the one before, while the last is being written


class Checkpoints:
    """Those of one run, in a `folder` that all its ranks and all their restarts share. Collective."""

    def __init__(self, spec: RunSpec, folder: Path, mesh: Mesh, strategy: Strategy, reporter: Reporter) -> None:
        self._spec, self._folder, self._mesh = spec, folder, mesh
        self._strategy, self._reporter = strategy, reporter
        self._losses = torch.zeros(spec.training.steps, dtype=torch.float64)
        self._seconds = torch.zeros_like(self._losses)
        self._group = dist.new_group(backend="gloo")  # a thread of its own needs a group of its own
        self._saving: Future[Any] | None = None

    def resume(self, step_for_nothing: Callable[[], object]) -> list[tuple[float, float]]:
        """Go on from the last whole checkpoint, if there is one: loss and seconds of the steps that are done."""
        newest = torch.tensor(max(whole_steps(self._folder), default=0) if dist.get_rank() == 0 else 0)
        dist.broadcast(newest, src=0, group=self._group)
        done = int(newest)
        if not done:
            return []
        step_for_nothing()
        load(self._state(), storage_reader=FileSystemReader(place_of(self._folder, done)), process_group=self._group)
        self._reporter.log("stdout", f"restart {restart_count()}: going on after step {done}, from its checkpoint")
        return list(zip(self._losses[:done].tolist(), self._seconds[:done].tolist(), strict=True))

    def after_step(self, number: int, loss: float, seconds: float) -> None:
        """Write a checkpoint where one is due. Of the last step there is none: nothing comes after it."""
        self._losses[number - 1], self._seconds[number - 1] = loss, seconds
        every, mode = self._spec.training.checkpoint_every, self._spec.training.checkpoint_mode
        if every is None or number % every or number == self._spec.training.steps:
            return
        began = time.perf_counter()
        self.finish()
        self._forget_old()
        writer = FileSystemWriter(place_of(self._folder, number))
        if mode == "async":
            begun = async_save(self._state(), storage_writer=writer, process_group=self._group)
            self._saving = begun if isinstance(begun, Future) else begun.upload_completion
        else:
            save(self._state(), storage_writer=writer, process_group=self._group)
        waited = time.perf_counter() - began
        self._reporter.emit(MeasurementEvent, "training waited for the checkpoint", number, waited, "s")

    def finish(self) -> None:
        """Wait for what is being written. Raises what went wrong with it."""
        if self._saving is not None:
            self._saving.result()
            self._saving = None

    def _state(self) -> dict[str, Tensor]:
        """Every tensor of this rank's state, under a name that says whose it is: of several ranks' with one name, one
        is written."""
        parallel, own = self._spec.parallel, f"rank {dist.get_rank()}"
        part = f"stage {self._mesh.pipeline.index}, slice {self._mesh.tensor.index}"  # alike on all data ranks
        is_alike = parallel.expert == 1
        weights = part if is_alike and parallel.zero != 3 else own
        optimizer = part if is_alike and parallel.zero == 0 else own
        named = [(f"{i} {name}".rstrip(), each) for i, (name, each) in enumerate(self._weights())]
        found = {f"weights of {weights}: {name}": local(each).detach() for name, each in named}
        kept = self._strategy.optimizer.tensors()
        found |= {f"optimizer of {optimizer}: {i}": local(each).detach() for i, each in enumerate(kept)}
        return {**found, "losses": self._losses, "seconds": self._seconds}

    def _weights(self) -> list[tuple[str, Tensor]]:
        """What the model calls each is for whoever opens a checkpoint; several parts of a pipeline on one rank may call
        theirs alike."""
        modules = self._strategy.modules
        names = {id(each): name for module in modules for name, each in module.named_parameters()}
        return [(names.get(id(each), ""), each) for each in self._strategy.parameters()]

    def _forget_old(self) -> None:
        if dist.get_rank() == 0:
            for step in whole_steps(self._folder)[: 1 - _KEPT]:
                shutil.rmtree(place_of(self._folder, step), ignore_errors=True)
