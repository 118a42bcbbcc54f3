"""Training that writes a sharded checkpoint on the way, with `torch.distributed.checkpoint`, and the time of each step.

Every rank writes one file with its shards; rank 0 adds one that says what is where. An asynchronous save first copies
the shards within memory, since training changes them right after, and then writes the copy on a thread of its own.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.state_dict_saver import async_save, save
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Shard

_KEPT = {
    "weights": torch.bfloat16,
    "master_weights": torch.float32,
    "momentum": torch.float32,
    "variance": torch.float32,
}  # 14 bytes a parameter
_SIDE = 256
_PRODUCTS = 8  # a step's work
_PREFIX = "rankzero-checkpoint-"
_FORGOTTEN_SECONDS = 3600.0
_MOST_STEPS = 10_000  # after which a checkpoint that is still not written has failed


@dataclass(frozen=True)
class Timeline:
    """A training in which a checkpoint was begun in step `checkpoint_step` (from 1) and written in `done_step`.

    `blocked_seconds` is how long the save kept training waiting, `written_after_seconds` how long the whole of it took.
    """

    step_seconds: list[float]
    checkpoint_step: int
    done_step: int
    blocked_seconds: float
    written_after_seconds: float

    @property
    def lost_seconds(self) -> float:
        """What the steps from the checkpoint's first to its last took beyond what such steps take undisturbed."""
        typical = statistics.median(self.step_seconds[: self.checkpoint_step - 1])
        return sum(seconds - typical for seconds in self.step_seconds[self.checkpoint_step - 1 : self.done_step])


class CheckpointedTraining:
    """Data-parallel steps over a sharded state of `parameters`, in a folder that is gone afterwards. Collective."""

    def __init__(self, parameters: int, steps: int, device: torch.device) -> None:
        self._steps, self._device = steps, device
        self._rank = dist.get_rank()
        self._state = sharded_state(parameters, device)
        self._group = dist.new_group(backend="gloo")  # a thread of its own needs a group of its own
        self._left, self._right = (torch.randn(_SIDE, _SIDE, device=device) for _ in range(2))

    def __enter__(self) -> CheckpointedTraining:
        shared: list[str | None] = [_new_folder() if self._rank == 0 else None]
        dist.broadcast_object_list(shared, src=0)
        self._folder = Path(str(shared[0]))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _t: TracebackType | None) -> None:
        if kind is None:
            dist.barrier()  # nobody writes any more
        if self._rank == 0:
            shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, name: str, wait: bool) -> Timeline:
        """Train with a checkpoint into folder `name` begun in the middle; `wait` for it, or go on while it is written.

        Raises what the save raises, and TimeoutError for one that is not done after 10,000 steps.
        """
        durations: list[float] = []
        checkpoint_step, done_step = self._steps // 2 + 1, 0
        saving: Future[Any] | None = None
        begun = blocked = written_after = 0.0
        while len(durations) < self._steps or not done_step:
            step = len(durations) + 1
            if step > _MOST_STEPS:
                raise TimeoutError(f"the checkpoint was not written within {_MOST_STEPS:,} steps")
            started = time.perf_counter()
            if step == checkpoint_step:
                begun, saving = started, self._save(name, wait)
                blocked = time.perf_counter() - started
            is_done = self._step(saving is not None and saving.done())
            durations.append(time.perf_counter() - started)
            if is_done and not done_step:
                done_step, written_after = step, time.perf_counter() - begun
        assert saving is not None
        saving.result()
        return Timeline(durations, checkpoint_step, done_step, blocked, written_after)

    def bytes_written(self, name: str) -> int:
        """Bytes of this rank's file in checkpoint `name`."""
        return sum(path.stat().st_size for path in (self._folder / name).glob(f"__{self._rank}_*"))

    def _save(self, name: str, wait: bool) -> Future[Any]:
        """Begin a checkpoint; what it is done by. Files are flushed to the disk before it counts as written."""
        writer = FileSystemWriter(self._folder / name)
        if not wait:
            begun = async_save(self._state, storage_writer=writer, process_group=self._group)
            return begun if isinstance(begun, Future) else begun.upload_completion
        done: Future[Any] = Future()
        done.set_result(save(self._state, storage_writer=writer, process_group=self._group))
        return done

    def _step(self, checkpoint_is_done: bool) -> bool:
        """One step: the work of a rank, and what all agree on after it, here whether all have their shard on disk."""
        for _ in range(_PRODUCTS):
            torch.mm(self._left, self._right)
        agreed = torch.tensor(float(checkpoint_is_done), device=self._device)
        dist.all_reduce(agreed, dist.ReduceOp.MIN)
        return agreed.item() > 0


def _new_folder() -> str:
    """A new folder. A run that was killed leaves its own behind: what is left since an hour is cleared away first."""
    for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if time.time() - old.stat().st_mtime > _FORGOTTEN_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    return tempfile.mkdtemp(prefix=_PREFIX)


def sharded_state(parameters: int, device: torch.device) -> dict[str, DTensor]:
    """Weights and Adam's state of `parameters`, of which each rank holds one shard, as FSDP would cut them.

    Values are random: zeros could be written faster than numbers by a disk that compresses.
    """
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    own = len(range(parameters)[_own_slice(parameters)])
    return {name: _shard(torch.randn(own, device=device).to(dtype), parameters, mesh) for name, dtype in _KEPT.items()}


def _own_slice(parameters: int) -> slice:
    each = -(-parameters // dist.get_world_size())
    return slice(each * dist.get_rank(), each * (dist.get_rank() + 1))


def _shard(local: Tensor, parameters: int, mesh: DeviceMesh) -> DTensor:
    return DTensor.from_local(local, mesh, [Shard(0)], shape=torch.Size([parameters]), stride=(1,))
