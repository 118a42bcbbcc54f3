"""Offload: the optimizer's state, of which AdamW has 8 to 12 bytes a parameter, leaves the accelerator.

  optimizer  to host memory, where the update is then computed. Gradients go down, updated weights come up: with
             `zero-16` 2 bytes a parameter each way and step. Ren et al. 2021, "ZeRO-Offload", section 4.
  file       further, to a file as on an NVMe drive. For the update of a tensor its state is read into host memory, and
             written back after. Rajbhandari et al. 2021, "ZeRO-Infinity", section 5.
  all        under FSDP2 only: weights, gradients and optimizer state live in host memory, and a unit's weights are
             copied to the accelerator when it is gathered. That is the library's own; see `fsdp`.

On a machine without an accelerator, host and device are the same memory. Nothing is copied then, and what the probes
show as the optimizer's memory is what *would* live on the host beside a GPU. With `file` it really is elsewhere, and
what was read, written and how long that took is measured.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from labs.spec import RunTraining

HOST = torch.device("cpu")


class HostMemory:
    """State stays in host memory, and the update is computed there."""

    device = HOST

    def fetch(self, number: int, state: dict[str, Tensor]) -> None: ...

    def put_away(self, number: int, state: dict[str, Tensor]) -> None: ...

    def measure(self) -> Mapping[str, tuple[float, str]]:
        return {}


class File:
    """State lies in a file, and is in memory only for the moment of its update.

    A tensor that is away keeps its shape, but its storage is shrunk to nothing. Writing is done when the drive says so
    (fsync), and what was written is dropped from the operating system's cache where that can be asked for, so that
    reading it comes from the drive as well. The file has no name from the start: it goes when the process does.
    """

    device = HOST

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - open as long as the training
        self._places: dict[tuple[int, str], int] = {}
        self._end = 0
        self._forget_what_was_measured()

    def fetch(self, number: int, state: dict[str, Tensor]) -> None:
        started = time.perf_counter()
        for name, tensor in state.items():
            place = self._places.get((number, name))
            if place is None or not tensor.numel():
                continue
            tensor.untyped_storage().resize_(tensor.numel() * tensor.itemsize)
            self._read += _transfer(os.preadv, self._file.fileno(), tensor, place)
        self._seconds += time.perf_counter() - started

    def put_away(self, number: int, state: dict[str, Tensor]) -> None:
        started = time.perf_counter()
        for name, tensor in state.items():
            if not tensor.numel():
                continue
            place = self._places.setdefault((number, name), self._end)
            self._end = max(self._end, place + tensor.numel() * tensor.itemsize)
            self._written += _transfer(os.pwritev, self._file.fileno(), tensor, place)
            tensor.untyped_storage().resize_(0)
        os.fsync(self._file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self._seconds += time.perf_counter() - started

    def measure(self) -> Mapping[str, tuple[float, str]]:
        """Since the last call: what went to and fro, and how long that took. The update itself is not in it."""
        found = {
            "read from file": (float(self._read), "B"),
            "written to file": (float(self._written), "B"),
            "reading and writing": (self._seconds, "s"),
        }
        self._forget_what_was_measured()
        return found

    def _forget_what_was_measured(self) -> None:
        self._read = self._written = 0
        self._seconds = 0.0


def home_of(training: RunTraining) -> HostMemory | File | None:
    """Where the optimizer's state lives, if not where the weights do."""
    if training.offload == "file":
        return File()
    return HostMemory() if training.offload == "optimizer" else None


def _transfer(move: object, file: int, tensor: Tensor, place: int) -> int:
    """Read or write all of `tensor` at `place`: the system may do a part at a time. Returns the bytes."""
    # Not through `tensor.numpy()`, after which torch would not let the storage shrink.
    raw = memoryview((ctypes.c_ubyte * (tensor.numel() * tensor.itemsize)).from_address(tensor.data_ptr()))
    done = 0
    while done < len(raw):
        moved = move(file, [raw[done:]], place + done)  # type: ignore[operator]
        if moved == 0:
            raise EOFError(f"the file of the optimizer's state ends at {place + done}")
        done += moved
    return len(raw)
