"""One install runs once: a lock on its data folder, a note of what runs, and the end of what a crash left behind."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Process:
    """A process by id and start time: ids are reused, the pair is not."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        try:
            found = psutil.Process(self.pid)
            return found if abs(found.create_time() - self.started) < 1 else None
        except psutil.NoSuchProcess:
            return None


@dataclass(frozen=True)
class Note:
    """What `start` wrote down about itself: where it answers and what it started."""

    address: str
    supervisor: Process
    children: Mapping[str, Process]
    troubles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Note | None:
        try:
            data = json.loads(path.read_text())
            children = {name: Process(**child) for name, child in data["children"].items()}
            return cls(data["address"], Process(**data["supervisor"]), children, dict(data.get("troubles", {})))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, path: Path) -> None:
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(asdict(self)))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def __str__(self) -> str:
        each = ", ".join(f"{name} {child.pid}" for name, child in self.children.items())
        return f"RankZero is already running at {self.address} (process {self.supervisor.pid}: {each})."


def note_path(folder: Path) -> Path:
    """Where the install in `folder` notes what runs."""
    return folder / "running.json"


def troubles_of(folder: Path) -> Mapping[str, str]:
    """Which parts of the install in `folder` keep dying, and how. None where `start` does not watch over them."""
    note = Note.read(note_path(folder))
    return note.troubles if note else {}


def running_address(folder: Path) -> str:
    """Where the install in `folder` answers, or nothing while it does not run."""
    note = Note.read(note_path(folder))
    return note.address if note and note.supervisor.find() else ""


class Install:
    """The data folder of one install, held by at most one `start`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.note_path = note_path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def hold(self) -> bool:
        """Take the lock; False when another `start` has it. The system releases it when this process ends."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def let_go(self) -> None:
        """Let another one have it."""
        os.close(self._lock)

    def running(self) -> Note | None:
        return Note.read(self.note_path)

    def note(self, address: str, children: Mapping[str, int], troubles: Mapping[str, str]) -> None:
        alive = {}
        for name, pid in children.items():
            with suppress(psutil.NoSuchProcess):  # it may end between two looks at it
                alive[name] = Process.of(pid)
        Note(address, Process.of(os.getpid()), alive, troubles).write(self.note_path)

    def end_leftovers(self) -> list[str]:
        """End what an earlier `start` began and did not outlive. Only call while holding the lock."""
        note = self.running()
        found = [(name, child.find()) for name, child in (note.children if note else {}).items()]
        alive = [(name, process) for name, process in found if process is not None]
        for _, process in alive:
            process.terminate()
        _, stubborn = psutil.wait_procs([process for _, process in alive], timeout=5)
        for process in stubborn:
            process.kill()
        self.note_path.unlink(missing_ok=True)
        return [name for name, _ in alive]


def who_listens(port: int) -> str:
    """The process that has a TCP port, as far as this user may see it."""
    try:
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.Error, OSError):
        pass
    return "another program"
