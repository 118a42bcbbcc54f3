"""Imports under way: each is a process of its own with a folder of its own, which a page can ask about at any time.

What an import is doing stands in files in its folder, so it survives a reload, and a restart of the server. The folder
is private, and is the process's temporary folder too: whatever a killed one leaves goes with it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from app.core.errors import DomainError, NotFound, Violation
from app.core.moment import Moment
from app.exchange.archive import refused
from app.exchange.child import FILE, STATUS, refuse
from app.exchange.limits import CHILD_CPU_SECONDS, CHILD_DEADLINE_SECONDS, UPLOAD_BYTES
from app.lab.service import is_run_file

CANCELLED, PROCESS = "cancelled", "process.json"
KEPT = 20  # folders of imports that ended; their files are gone by then
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH")  # and no key or password of ours

_starting = threading.Lock()


class Busy(DomainError):
    """One import at a time: their limits are each one's own."""

    status = 409
    code = "busy"


@dataclass(frozen=True)
class Order:
    """What to import, and into which database. It reaches the process through a pipe: an address holds a password."""

    name: str
    database: str
    learner: int
    known: Mapping[str, int]
    moment: Moment
    scheduling: bool

    @property
    def as_json(self) -> bytes:
        moment = {"now": self.moment.now.isoformat(), "zone": str(self.moment.zone)}
        return json.dumps({**vars(self), "moment": moment, "is_run": is_run_file(self.name)}).encode()


@dataclass(frozen=True)
class Job:
    """An import as it stands: running, done (with the address of what came of it), refused or cancelled."""

    id: str
    name: str
    state: str = "running"
    phase: str = "starting"
    done: int = 0
    total: int = 0
    leads_to: str = ""
    seconds: float = 0.0
    message: str = ""
    violations: list[Violation] = field(default_factory=list)

    @property
    def error(self) -> DomainError:
        return DomainError(self.message, self.violations)


def start(folder: Path, file: BinaryIO, order: Order) -> str:
    """Begin an import in `folder`, which holds those of one install; returns its id. Raises Busy, DomainError."""
    size = file.seek(0, 2)
    file.seek(0)
    if size > UPLOAD_BYTES:
        raise refused("It is too large.", f"{size:,} bytes", f"up to {UPLOAD_BYTES:,} bytes")
    with _starting:
        _forget_old(folder)
        running = next((job for job in _jobs(folder) if job.state == "running"), None)
        if running is not None:
            raise Busy(f"{running.name} is being imported just now. Wait for its end, or cancel it.")
        identity = secrets.token_hex(8)
        own = folder / identity
        own.mkdir(mode=0o700, parents=True)
        (own / "order.json").write_text(json.dumps({"name": order.name, "started": time.time()}))
        with (own / FILE).open("wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        process = _launch(own, order)
    threading.Thread(target=_wait, args=(own, process), daemon=True).start()
    return identity


def _launch(own: Path, order: Order) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "app.exchange.child", str(own)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**environment, "TMPDIR": str(own), "RANKZERO_DATA": str(own)},
    )
    assert process.stdin is not None
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).create_time()
        (own / PROCESS).write_text(json.dumps({"pid": process.pid, "started": started}))
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(order.as_json)
    return process


def _wait(own: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the process ended; what it could not say itself is said for it."""
    code = process.wait()
    if _read(own / STATUS).get("state", "running") == "running" and not (own / CANCELLED).exists():
        refuse(own, _why(code))
    _clear(own)


def _why(code: int) -> str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"Reading it takes more than {CHILD_CPU_SECONDS} s of work, or all of this machine's memory."
    if code == -signal.SIGALRM:
        return f"Reading it takes more than {CHILD_DEADLINE_SECONDS // 60} minutes."
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"Reading it broke the process that did ({how})."


def find(folder: Path, identity: str) -> Job:
    """The import with this id. Raises NotFound."""
    own = folder / identity
    order = _read(own / "order.json")
    if not order:
        raise NotFound("There is no such import. It may have been long ago; what it brought is in its report.")
    status = _read(own / STATUS)
    state = status.pop("state", "running")
    seconds = max(0.0, time.time() - float(order.get("started", 0)))
    shown = {name: status[name] for name in ("phase", "done", "total", "leads_to", "message") if name in status}
    violations = [Violation(**each) for each in status.get("violations", [])]
    if state == "running" and (own / CANCELLED).exists():
        state, shown["message"] = "cancelled", "The import was cancelled."
    elif state == "running" and _process(own) is None and (own / PROCESS).exists() and not _settles(own):
        state, shown["message"] = "refused", "The import was cut off before its end."
    return Job(identity, str(order.get("name", "")), state, seconds=seconds, violations=violations, **shown)


def _settles(own: Path) -> bool:
    """Whether the thread that waits for the process may not have written yet what became of it."""
    newest = max((path.stat().st_mtime for path in (own / STATUS, own / PROCESS) if path.exists()), default=0.0)
    return time.time() - newest < 2


def cancel(folder: Path, identity: str) -> Job:
    """End an import; what it stores is stored at its end, so nothing of it stays. Raises NotFound."""
    job, own = find(folder, identity), folder / identity
    process = _process(own)
    if job.state == "running" and process is not None:
        (own / CANCELLED).touch()
        with suppress(psutil.Error):
            process.terminate()
            psutil.wait_procs([process], timeout=10)
            process.kill()
    return find(folder, identity)


def _process(own: Path) -> psutil.Process | None:
    """The process of an import, by id and start time; None when it ended."""
    noted = _read(own / PROCESS)
    with suppress(psutil.Error, KeyError, TypeError):
        found = psutil.Process(int(noted["pid"]))
        if abs(found.create_time() - noted["started"]) < 1 and found.status() != psutil.STATUS_ZOMBIE:
            return found
    return None


def _jobs(folder: Path) -> list[Job]:
    found = []
    for own in folder.iterdir() if folder.is_dir() else ():
        with suppress(NotFound):
            found.append(find(folder, own.name))
    return found


def _forget_old(folder: Path) -> None:
    """Folders of imports that ended long ago, and files of those that were cut off."""
    ended = sorted((job for job in _jobs(folder) if job.state != "running"), key=lambda job: job.seconds)
    for position, job in enumerate(ended):
        _clear(folder / job.id)
        if position >= KEPT:
            shutil.rmtree(folder / job.id, ignore_errors=True)


def _clear(own: Path) -> None:
    """Everything but what says what became of the import."""
    for path in own.iterdir() if own.is_dir() else ():
        if path.name not in (STATUS, CANCELLED, PROCESS, "order.json"):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
