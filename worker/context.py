"""What a worker process holds: settings, database, queue, devices, and whether it is being stopped."""

from __future__ import annotations

import math
import os
import platform
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

from app.core.db import Database, open_database
from app.core.queue import Queue
from app.core.settings import Settings
from worker.devices import Devices

if TYPE_CHECKING:
    from labs.warm import WarmHost
    from worker.over_hosts import SeveralHosts


@dataclass
class Context:
    """One per process; tasks reach it through `current`."""

    settings: Settings
    database: Database
    queue: Queue
    devices: Devices | SeveralHosts
    kind: str
    name: str
    stopping: threading.Event = field(default_factory=threading.Event)
    run_id: int | None = None
    host: WarmHost | None = None
    asked: str = "cpu"  # the devices as they were asked for: GPUs come and go
    database_away_at: float = -math.inf  # when it last was, on the monotonic clock


def is_gone_here(name: str) -> bool:
    """Whether `name` is a worker of this host whose process is not there any more. Of other hosts nobody knows."""
    _, _, rest = name.partition("-")
    host, _, pid = rest.rpartition("-")
    return host == platform.node() and pid.isdecimal() and not psutil.pid_exists(int(pid))


_current: Context | None = None


def open_context(settings: Settings, devices: Devices | SeveralHosts, kind: str, asked: str = "cpu") -> Context:
    """Make this process's context."""
    global _current  # noqa: PLW0603 - Celery calls tasks with their message only
    name = f"{kind}-{platform.node()}-{os.getpid()}"
    database = open_database(settings.sqlalchemy_url, settings.limits)
    _current = Context(settings, database, Queue(settings.redis), devices, kind, name, asked=asked)
    if kind == "device" and isinstance(devices, Devices) and devices.cpu and settings.warm:
        from labs.warm import WarmHost  # noqa: PLC0415 - only this kind of worker has one

        _current.host = WarmHost(settings.warm_idle_seconds)
    return _current


def current() -> Context:
    """This process's context. Raises RuntimeError outside a worker."""
    if _current is None:
        raise RuntimeError("no worker context: start this process with `python -m worker`")
    return _current
