"""A sandbox: one process tree of its own for one rank of one submission, made by bubblewrap.

Inside it there is Python, torch and a rank's own side of ours (`inside/`), read-only; a small folder in memory; no
network but its own loopback, no /proc, no other process, no privilege, no user of ours. When the judge ends the tree's
first process, the kernel ends all of it.

As root the tree belongs to a user id of its own, in a user namespace without any id mapped; else to whoever runs us, in
a user namespace of its own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from labs.code.cgroup import Group, NoGroup, make_group

CONFINED = "RANKZERO_SANDBOX"  # as `inside.zygote` reads it
_LABS = Path(__file__).resolve().parent.parent
# Of our own code only what a rank needs: not the labs' own implementations of what learners are to write.
_MOUNTED = ("__init__.py", "code/__init__.py", "code/inside")
_FOLDER_BYTES = 4 * 2**20  # a rank that writes its tensors there must not look as if it held none
_FIRST_USER = 61_000  # the users of sandboxes, as root: one for each rank of each judge, by its process id
_USERS = 4_000
_READY_SECONDS = 60.0
_AT_A_TIME = 2  # sandboxes that load torch at once


class NoSandbox(Exception):
    """This machine cannot make one; the message says why and what would help."""


class Sandbox:
    """One tree with a zygote in it. A rank is forked from it for each run."""

    def __init__(self, number: int, unconfined: bool = False, group: Group | None = None) -> None:
        self.owner: str | None = None  # whose programs it has run
        self._control, theirs = socket.socketpair()
        words = unconfined_command() if unconfined else command(number)
        with theirs:
            self._process = subprocess.Popen(
                group.entering(words) if group is not None else words,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=sys.stderr.fileno() if os.environ.get("RANKZERO_SANDBOX_STDERR") else subprocess.DEVNULL,
                env=unconfined_environment() if unconfined else {"PATH": "/usr/bin:/bin"},
                start_new_session=True,
            )
        self._is_ready = False

    def is_ready(self, seconds: float = 0.0) -> bool:
        """Whether torch is loaded in it; waits so long. Raises NoSandbox where it never will be."""
        if not self._is_ready:
            self._control.settimeout(seconds or 1e-6)
            with contextlib.suppress(TimeoutError, BlockingIOError):
                if not self._control.recv(1):
                    raise NoSandbox(f"bubblewrap ended with code {self._process.wait(5)} before torch was loaded")
                self._is_ready = True
        return self._is_ready

    def become_rank(self, channel: socket.socket, output: int, with_optimizers: bool = False) -> None:
        """Fork a rank that speaks on `channel` and prints to `output`. Raises OSError where the tree is gone."""
        if not self.is_ready(_READY_SECONDS):
            raise NoSandbox(f"torch was not loaded in {_READY_SECONDS:g} s")
        socket.send_fds(self._control, [b"o" if with_optimizers else b"f"], [channel.fileno(), output])

    def rank_ended(self, seconds: float) -> bool:
        """Wait until the rank that was forked last is gone; whether it is."""
        self._control.settimeout(seconds)
        try:
            return bool(self._control.recv(64))
        except OSError:
            return False

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """End the whole tree."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def command(place: int) -> list[str]:
    """The command line of a sandbox."""
    python = Path(os.path.realpath(sys.executable))
    home, sites = Path(sys.base_prefix), _site_folders()
    outer = ["--unshare-user", "--disable-userns"] if os.getuid() else _KEEP_TO_CHANGE_USER
    inner = [] if os.getuid() else _change_user(place)
    words = [_bubblewrap(), "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", *outer]
    words += ["--die-with-parent", "--new-session", "--hostname", "rank", "--clearenv"]
    modules = ":".join(["/opt/ours", *(f"/opt/site{number}" for number in range(len(sites)))])
    for name, value in {**_environment(), "PYTHONPATH": modules}.items():
        words += ["--setenv", name, value]
    words += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif Path("/", name).exists():
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    words += ["--perms", "0755", "--dir", "/opt", "--ro-bind", str(home), "/opt/python"]
    for number, site in enumerate(sites):
        words += ["--ro-bind", site, f"/opt/site{number}"]
    for folder in ("/opt/ours", *(f"/opt/ours/labs{name}" for name in ("", "/code"))):
        words += ["--perms", "0755", "--dir", folder]
    for name in _MOUNTED:
        words += ["--ro-bind", str(_LABS / name), f"/opt/ours/labs/{name}"]
    words += ["--dev", "/dev", "--perms", "0755", "--dir", "/proc", "--ro-bind", "/proc/cpuinfo", "/proc/cpuinfo"]
    words += ["--perms", "1777", "--size", str(_FOLDER_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 - inside
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--", *inner]  # noqa: S108
    return [*words, f"/opt/python/bin/{python.name}", "-P", "-m", "labs.code.inside.zygote"]


def unconfined_command() -> list[str]:
    """A zygote without a sandbox around it: for one's own programs on one's own machine, and only when asked for."""
    return [sys.executable, "-P", "-m", "labs.code.inside.zygote"]


def unconfined_environment() -> dict[str, str]:
    found = {name: value for name, value in _environment().items() if name not in _INSIDE_ALONE}
    return {**found, "PYTHONPATH": str(_LABS.parent), "PATH": os.defpath, "HOME": os.sep}


_INSIDE_ALONE = (CONFINED, "PYTHONHOME", "LD_LIBRARY_PATH")
_KEEP_TO_CHANGE_USER = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]


def _change_user(number: int) -> list[str]:
    user = _FIRST_USER + (os.getpid() * 8 + number) % _USERS
    words = ["/usr/bin/setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
    return [*words, "--no-new-privs", "--", "/usr/bin/unshare", "--user", "--"]


def _site_folders() -> list[str]:
    """Where torch is installed, and whatever else is beside this Python."""
    torch = importlib.util.find_spec("torch")
    found = [str(Path(torch.origin).parents[1])] if torch is not None and torch.origin else []
    return list(dict.fromkeys([*found, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]))


def _environment() -> dict[str, str]:
    return {
        "PYTHONHOME": "/opt/python",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": "/opt/python/lib",
        "HOME": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed goes back to the kernel, whose count the judge reads
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        CONFINED: "1",
    }


def _bubblewrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise NoSandbox("bubblewrap is not installed: `apt install bubblewrap`, or your system's package of that name")
    return found


@cache
def why_not() -> str | None:
    """Why there can be no sandbox here; None where there can."""
    if sys.platform != "linux":
        return f"sandboxes need Linux, this is {sys.platform}"
    try:
        words = command(0)
        tried = subprocess.run(
            [*words[: words.index("/opt/python/bin/" + Path(os.path.realpath(sys.executable)).name)], "/usr/bin/true"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (NoSandbox, OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if tried.returncode:
        return f"bubblewrap cannot make one here: {tried.stderr.strip() or tried.returncode}"
    return None


def _is_ready(sandbox: Sandbox) -> bool:
    try:
        return sandbox.is_ready()
    except NoSandbox:
        return True  # it has ended, and loads nothing


class Pool:
    """Sandboxes made ahead, so that a submission finds torch loaded.

    One that ran somebody's program serves that owner alone from then on: whatever there might be to find in it is his.
    """

    def __init__(self, ahead: int = 0, unconfined: bool = False) -> None:
        self._ahead, self._unconfined, self._number = ahead, unconfined, 0
        self._ready: list[Sandbox] = []
        self._group: Group | None = None
        if not unconfined:
            with contextlib.suppress(NoGroup):
                self._group = make_group()

    @property
    def is_full(self) -> bool:
        """Whether as many are there as are kept ahead."""
        return len(self._ready) >= self._ahead

    def fill(self) -> None:
        """Start those that are missing, a few at a time: what a run on two ranks needs is there first. Returns at
        once."""
        self._ready = [each for each in self._ready if each.is_alive]
        loading = sum(not _is_ready(each) for each in self._ready)
        while not self.is_full and loading < _AT_A_TIME:
            self._ready.append(self._make())
            loading += 1

    def _make(self) -> Sandbox:
        self._number += 1
        return Sandbox(self._number, self._unconfined, self._group)

    def take(self, count: int, owner: str) -> list[Sandbox]:
        """`count` sandboxes for a program of `owner`, those first that were made first."""
        usable = [each for each in self._ready if each.is_alive and each.owner in (None, owner)]
        taken = usable[:count]
        for each in self._ready:
            if each not in usable:
                each.end()
        self._ready = usable[count:]
        taken += [self._make() for _ in range(count - len(taken))]
        for each in taken:
            each.owner = owner
        return taken

    def give_back(self, sandboxes: list[Sandbox]) -> None:
        """A submission is done with these."""
        self._ready += [each for each in sandboxes if each.is_alive]

    def end(self) -> None:
        for each in self._ready:
            each.end()
        self._ready = []
        if self._group is not None:
            self._group.end()
