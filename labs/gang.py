"""Starting torchrun on every host that Slurm gave a run, from the first of them. Slurm runs this file; it needs nothing
but the standard library.

`gang.py batch FOLDER -- COMMAND...` is the job itself: it sees that every host can read the run's folder, chooses where
the ranks meet, starts COMMAND on each host through srun, and ends it when nobody looks after the run any more. In
COMMAND, ADDRESS, PORT and NODE_RANK stand for what is known only here. srun starts `gang.py check` and `gang.py node`.

Whoever submitted the job touches `lifeline` in the folder as long as it is there. How the job ended is written to
`exit-code`, for where Slurm keeps no accounts it soon forgets its jobs.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from types import FrameType

ADDRESS, PORT, NODE_RANK = "@ADDRESS", "@PORT", "@NODE_RANK"
LIFELINE, EXIT_CODE = "lifeline", "exit-code"
HOST = "RANKZERO_HOST"  # for the ranks: the name of the host they sit on, as the cluster calls it
NO_FOLDER = 66  # the exit code where a host cannot read the run's folder; EX_NOINPUT of <sysexits.h>
ORPHANED = 75  # where nobody touched the lifeline any more; EX_TEMPFAIL
LIFELINE_SECONDS = 60.0
PEERS_SECONDS = 10  # in which hosts end by themselves after the first has, and say why
_POLL_SECONDS = 0.25


def main(arguments: list[str]) -> int:
    part, folder, *rest = arguments
    if part == "check":
        return 0 if _is_readable(folder) else NO_FOLDER
    command = rest[1:]  # after the --
    return _node(folder, command) if part == "node" else _batch(folder, command)


def _batch(folder: str, command: list[str]) -> int:
    hosts = os.environ["SLURM_JOB_NUM_NODES"]
    each = ["srun", f"--nodes={hosts}", f"--ntasks={hosts}", "--ntasks-per-node=1"]
    this = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    if not _is_readable(folder) or subprocess.run([*each, *this, "check", folder], check=False).returncode:
        return NO_FOLDER
    known = {ADDRESS: _own_address(), PORT: str(_free_port())}
    command = [known.get(word, word) for word in command]
    output = f"--output={os.path.join(folder, 'torchrun-%n.log')}"  # one of each host
    start = [*each, f"--wait={PEERS_SECONDS}", output, *this, "node", folder, "--", *command]
    code = _follow(subprocess.Popen(start, stdin=subprocess.DEVNULL), folder)
    _write_down(folder, code)
    return code


def _node(folder: str, command: list[str]) -> int:
    rank = os.environ["SLURM_NODEID"]
    os.environ[HOST] = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    os.chdir(folder)
    command = [rank if word == NODE_RANK else word for word in command]
    os.execv(command[0], command)  # noqa: S606 - a command, not a shell's line


def _follow(started: subprocess.Popen[bytes], folder: str) -> int:
    """The exit code of what was started; it is ended where the lifeline is not touched any more, or we are told to."""

    def end(_number: int, _frame: FrameType | None) -> None:
        started.terminate()

    signal.signal(signal.SIGTERM, end)
    touched, since, is_orphaned = _touched(folder), time.monotonic(), False
    while (code := started.poll()) is None:
        time.sleep(_POLL_SECONDS)
        if (now := _touched(folder)) != touched:
            touched, since = now, time.monotonic()
        elif time.monotonic() - since > LIFELINE_SECONDS and not is_orphaned:
            is_orphaned = True
            started.terminate()
    return ORPHANED if is_orphaned else code if code >= 0 else 128 - code


def _touched(folder: str) -> int:
    """When the lifeline was touched last. Opened, for a network's file system asks its server only then."""
    try:
        with open(os.path.join(folder, LIFELINE), "rb") as file:
            return os.fstat(file.fileno()).st_mtime_ns
    except OSError:
        return 0


def _write_down(folder: str, code: int) -> None:
    path = os.path.join(folder, EXIT_CODE)
    with open(f"{path}.new", "w") as file:
        file.write(str(code))
    os.replace(f"{path}.new", path)


def _is_readable(folder: str) -> bool:
    return os.access(os.path.join(folder, "spec.json"), os.R_OK) and os.access(folder, os.W_OK)


def _own_address() -> str:
    """The address by which Slurm itself reaches this host."""
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    asked = subprocess.run(["scontrol", "show", "node", "-o", name], capture_output=True, text=True, check=False)
    found = re.search(r"\bNodeAddr=(\S+)", asked.stdout)
    return found[1] if found else name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
