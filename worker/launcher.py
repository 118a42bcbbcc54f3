"""Starting a run's ranks under torchrun, warm or cold, and ending them.

Cold, torchrun is a new process on a leash: in a session of its own, ending when we do, even when we are killed. Warm,
it is a fork of our host (labs.host), which keeps torch loaded and ends with us just so. Each rank ends with torchrun
(labs.lifeline). So a run never outlives its worker. Everything else is the same for both: the command line, the
environment, the folders, where the ranks meet.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from labs.command import RUN_STARTED_AT, environment, torchrun_command
from labs.leash import on_leash
from labs.spec import RunSpec
from labs.warm import WarmHost

END_SECONDS = 8.0
GRACE_SECONDS = 1.0  # of a run that is ended by us: the ranks are told, and nothing they write then matters


class Started(Protocol):
    """torchrun as it was started, either way."""

    @property
    def pid(self) -> int | None: ...

    def poll(self) -> int | None:
        """The exit code, or None while it works."""

    def end(self) -> None:
        """End it and all it started; returns once it is gone."""


class OnLeash(subprocess.Popen[bytes]):
    """A cold torchrun and its leash."""

    def __init__(self, command: Sequence[str], folder: Path, variables: dict[str, str], output: Path) -> None:
        with output.open("wb") as file:
            super().__init__(
                on_leash(command, GRACE_SECONDS),
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=variables,
                start_new_session=True,
            )

    def end(self) -> None:
        if self.stdin is not None:
            with contextlib.suppress(OSError):
                self.stdin.close()  # the leash sees it and ends torchrun, which ends its ranks
        try:
            self.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()


@dataclass
class Launch:
    """A run's processes and where they write."""

    folder: Path
    process: Started
    is_warm: bool

    @property
    def events(self) -> Path:
        return self.folder / "events"

    @property
    def output(self) -> Path:
        """torchrun's own words; those of the ranks are below `logs`. Over several hosts each has a file beside it."""
        return self.folder / "torchrun.log"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def exit_code(self) -> int | None:
        return self.process.poll()

    def end(self) -> None:
        """End everything the run started; returns once it is gone."""
        self.process.end()


def launch(spec: RunSpec, folder: Path, extra: dict[str, str], host: WarmHost | None = None) -> Launch:
    """Start the ranks of `spec` with their folder at `folder`: from `host` where there is one, else cold. Raises
    OSError."""
    events, logs = make_folders(spec, folder)
    command = torchrun_command(spec, events, logs)
    variables = environment({**extra, RUN_STARTED_AT: repr(time.time())})
    process = (host.start if host is not None else OnLeash)(command, folder, variables, folder / "torchrun.log")
    return Launch(folder, process, host is not None)


def make_folders(spec: RunSpec, folder: Path) -> tuple[Path, Path]:
    """The run's folder with its spec, and in it those of events and of logs, which are returned."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # whoever reads where the ranks meet could join them
    (folder / "spec.json").write_text(spec.model_dump_json(indent=2))
    events, logs = folder / "events", folder / "logs"
    for each in (events, logs):
        each.mkdir(mode=0o700, exist_ok=True)
    return events, logs


def can_start_warm(spec: RunSpec, variables: dict[str, str]) -> bool:
    """Whether a fork of a host will do. It cannot be given a shaped link, for which a network of its own is needed; and
    CUDA survives no fork of a torchrun that has asked which GPUs there are."""
    return spec.link is None and not variables.get("CUDA_VISIBLE_DEVICES")
