"""`python -m labs.run FILE`: one run from start to end, its events as JSON lines on standard output.

FILE holds a RunSpec (`-`: standard input). torchrun is started on a leash, so that nothing is left when this
process dies, however it dies. Torch-free: only the ranks need torch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from labs.command import RUN_BYTES, RUN_STARTED_AT, SNAPSHOTS, environment, parse_spec, read_spec, torchrun_command
from labs.leash import on_leash
from labs.spec import RunSpec, SpecError, Violation
from labs.spec.events import Event, event_line, read_event

_POLL_SECONDS = 0.03
# Ranks write down an event right after they stamped it. Those younger than this are held back, so that
# another rank's slightly older one can still take its place in order.
_SETTLE_SECONDS = 0.05
EXIT_USAGE = 2


def main(arguments: list[str]) -> int:
    """The exit code is the run's; 2 when the spec cannot be run."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m labs.run FILE\n")
        return EXIT_USAGE
    try:
        spec = parse_spec(sys.stdin.read()) if arguments[0] == "-" else read_spec(arguments[0])
        _check_hosts(spec)
    except SpecError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE
    with tempfile.TemporaryDirectory(prefix="rankzero-run-") as folder:
        run = start(spec, Path(folder))
        _pass_on_signals(run)
        try:
            for event in follow(run, Path(folder)):
                sys.stdout.write(event_line(event).decode() + "\n")
                sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough: end the run
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            run.terminate()
        return run.wait()


def _check_hosts(spec: RunSpec) -> None:
    if spec.hosts > 1:
        message = "This starts ranks on this host alone; over several a worker does it (`rankzero worker --backend`)."
        raise SpecError([Violation("hosts", spec.hosts, message, "1")])


def start(spec: RunSpec, events_dir: Path) -> subprocess.Popen[bytes]:
    """torchrun on a leash: the run ends when this process closes the returned `stdin`, or dies."""
    command = on_leash(torchrun_command(spec, events_dir))
    # torchrun and torch leave folders wherever temporary files go: let that be a folder which goes with the run
    variables = environment({RUN_STARTED_AT: repr(time.time()), "TMPDIR": str(events_dir)})
    variables |= {name: os.environ[name] for name in (RUN_BYTES, SNAPSHOTS) if name in os.environ}
    # Standard output belongs to the events; whatever the ranks print goes to standard error.
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr, env=variables)


def _pass_on_signals(run: subprocess.Popen[bytes]) -> None:
    def end(_signal: int, _frame: FrameType | None) -> None:
        run.terminate()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)


def follow(run: subprocess.Popen[bytes], events_dir: Path) -> Iterator[Event]:
    """The events of all ranks in order of time, as they come, until the run has ended."""
    started_at = time.time()
    files: dict[Path, Lines] = {}
    waiting: list[Event] = []
    while True:
        ended = run.poll() is not None
        for path in sorted(events_dir.glob("events-*.jsonl")):
            waiting += (read_event(line) for line in files.setdefault(path, Lines(path)).read_new())
        waiting.sort(key=lambda event: event.t)
        settled = float("inf") if ended else time.time() - started_at - _SETTLE_SECONDS
        while waiting and waiting[0].t <= settled:
            yield waiting.pop(0)
        if ended:
            return
        time.sleep(_POLL_SECONDS)


class Lines:
    """Whole lines of a file that grows. An unfinished last line waits for its end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._unfinished = b""

    def read_new(self) -> list[bytes]:
        *whole, self._unfinished = (self._unfinished + self._file.read()).split(b"\n")
        return whole


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
