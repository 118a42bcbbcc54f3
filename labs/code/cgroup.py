"""One control group around all sandboxes of a judge: memory and processes of a submission as a whole (cgroup v2).

It is made beside the judge's own group, where that is ours to share out: handed over (systemd's `Delegate=memory pids`
with `DelegateSubgroup=`), or where no systemd keeps the groups. No process is moved but those of sandboxes. Where there
is none, each process has limits of its own (`inside.seal`) and a folder of so many bytes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 3 * 2**30  # of four ranks with torch loaded, 0.25 GB each, and what a program may take: a rank 1 GiB
MOST_PROCESSES = 512  # threads count
CONTROLLERS = ("memory", "pids")
_PREFIX = "rankzero-judge-"
_HANDED_OVER = ("user.delegate", "trusted.delegate")  # as systemd marks a group that is no longer its own
_END_SECONDS = 5.0
# A process enters by itself before it becomes the sandbox: one that was moved later might have started others.
_ENTER = 'echo $$ > "$0" && exec "$@"'


class NoGroup(Exception):
    """Why there is none; the message says it."""


@dataclass(frozen=True)
class Group:
    """A group of ours, with its limits."""

    folder: Path

    def entering(self, command: Sequence[str]) -> list[str]:
        """The command, in the group from its first moment."""
        return ["/bin/sh", "-c", _ENTER, str(self.folder / "cgroup.procs"), *command]

    def end(self) -> None:
        """End whatever is left in it, and remove it."""
        with contextlib.suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1")
        until = time.monotonic() + _END_SECONDS
        while self.folder.exists() and time.monotonic() < until:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.01)


def make_group(root: Path | None = None) -> Group:
    """A new group beside our own, or below the top where we are there. Raises NoGroup."""
    reasons = []
    for parent in _parents(root):
        try:
            _share_out(parent)
            _remove_left_over(parent)
            folder = parent / f"{_PREFIX}{os.getpid()}"
            folder.mkdir()
        except OSError as error:
            reasons.append(f"{parent}: {error.strerror}")
            continue
        try:
            (folder / "memory.max").write_text(str(MOST_BYTES))
            (folder / "pids.max").write_text(str(MOST_PROCESSES))
        except OSError as error:
            folder.rmdir()
            reasons.append(f"{folder}: {error.strerror}")
            continue
        with contextlib.suppress(OSError):  # there is none where the kernel does not count swapped pages
            (folder / "memory.swap.max").write_text("0")
        return Group(folder)
    raise NoGroup(reasons[0] if reasons else "no control group here is ours to share out")


def why_no_group() -> str | None:
    """Why a judge would have none; None where it would."""
    try:
        make_group().end()
    except NoGroup as error:
        return str(error)
    return None


def _parents(root: Path | None) -> Iterator[Path]:
    """Where a group may be made: beside our own, and in it where it is the top one that we see. Raises NoGroup."""
    mounted = root or _mounted()
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        if not (mounted / "cgroup.controllers").exists():
            raise NoGroup("cgroup v2 is not mounted")
        offered = (mounted / "cgroup.controllers").read_text().split()
    except OSError as error:
        raise NoGroup(f"cgroup v2 cannot be read: {error.strerror}") from None
    missing = [each for each in CONTROLLERS if each not in offered]
    if missing:
        raise NoGroup(f"cgroup v2 does not have {' and '.join(missing)} here: version 1 does")
    own = next((line[3:] for line in lines if line.startswith("0::/")), None)
    if own is None or ".." in own:
        raise NoGroup("our own control group is not to be seen")
    mine = mounted / own.lstrip("/")
    yield from (each for each in (mine.parent if mine != mounted else mine,) if _is_ours(each))


def _mounted() -> Path:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] == "cgroup2":
            return Path(before.split()[4])
    raise NoGroup("cgroup v2 is not mounted")


def _is_ours(folder: Path) -> bool:
    """Whether nobody else keeps what is in it: two that do are in each other's way."""
    if not os.access(folder / "cgroup.procs", os.W_OK):
        return False
    for name in _HANDED_OVER:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return not Path("/run/systemd/system").exists()


def _share_out(parent: Path) -> None:
    """Have the groups in it count memory and processes. Raises OSError."""
    counted = (parent / "cgroup.subtree_control").read_text().split()
    missing = [f"+{each}" for each in CONTROLLERS if each not in counted]
    if missing:
        (parent / "cgroup.subtree_control").write_text(" ".join(missing))


def _remove_left_over(parent: Path) -> None:
    """Of judges that were killed."""
    for each in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", each.name.removeprefix(_PREFIX)).exists():
            Group(each).end()
