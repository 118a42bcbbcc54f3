"""Starting a run's ranks under torchrun, and ending them.

torchrun runs on a leash: it is in a session of its own and ends when we do, even when we are killed. Each rank ends
with torchrun (labs.lifeline). So a run never outlives its worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from labs.command import environment, torchrun_command
from labs.spec import RunSpec

END_SECONDS = 8.0


@dataclass
class Launch:
    """A run's processes and where they write."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def events(self) -> Path:
        return self.folder / "events"

    @property
    def output(self) -> Path:
        """torchrun's own words; those of the ranks are below `logs`."""
        return self.folder / "torchrun.log"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def exit_code(self) -> int | None:
        return self.process.poll()

    def end(self) -> None:
        """End everything the run started; returns once it is gone."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()  # the leash sees it and ends torchrun, which ends its ranks
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def launch(spec: RunSpec, folder: Path, extra: dict[str, str]) -> Launch:
    """Start the ranks of `spec` with their folder at `folder`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # whoever reads where the ranks meet could join them
    (folder / "spec.json").write_text(spec.model_dump_json(indent=2))
    events, logs = folder / "events", folder / "logs"
    for each in (events, logs):
        each.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-m", "labs.leash", "--", *torchrun_command(spec, events, logs)]
    started = {"RANKZERO_RUN_STARTED_AT": repr(time.time())}
    with (folder / "torchrun.log").open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment({**extra, **started}),
            start_new_session=True,
        )
    return Launch(folder, process)
