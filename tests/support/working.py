"""One run that a worker carries out in a thread of the test's own process, so that the test can get at both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.core.clock import utc_now
from app.core.db import Database, open_database
from app.core.queue import Queue
from app.core.settings import Settings
from app.lab import results, service
from app.lab.models import Run
from labs.spec.events import Event, HostEvent, StepEvent, read_event
from labs.warm import WarmHost
from worker import runs
from worker.context import Context
from worker.devices import Devices
from worker.slurm_jobs import Partition

SECONDS = 180.0  # a busy machine is slow, not wrong


class Working:
    """A worker's run in a thread of this process, over a connection pool of its own."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        spec: dict[str, Any],
        host: WarmHost | None = None,
        devices: Devices | Partition | None = None,
    ) -> None:
        self.database, self.folder = database, folder
        settings = Settings(data=folder, redis_url=f"unix://{folder}/nothing.sock")
        own = open_database(database.engine.url.render_as_string(hide_password=False))
        devices = devices or Devices(cpu=True, gpus=())
        self.context = Context(settings, own, Queue(settings.redis), devices, "device", "w")
        self.context.host = host
        with database.write() as session:
            self.run_id = service.submit_run(session, 1, spec, None, utc_now()).id
        self.work()

    def work(self) -> None:
        """Take a run, the one that waits first."""
        self.thread = threading.Thread(target=runs.take_next, args=(self.context,), daemon=True)
        self.thread.start()

    def wait_for_step(self, number: int) -> None:
        """By what the ranks wrote: the database may be away."""
        self.wait_until(lambda: f'"step":{number},' in self.reported())

    def wait_for_ranks_to_be_done(self) -> None:
        self.wait_until(lambda: '"finished"' in self.reported())

    def reported(self) -> str:
        return "".join(path.read_text() for path in self.folder.glob("runs/*/events/events-*.jsonl"))

    def close(self) -> None:
        self.context.stopping.set()
        self.thread.join(SECONDS)
        self.context.database.engine.dispose()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.reported()
            time.sleep(0.02)

    def ended(self) -> Run:
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()
        return self.run()

    def run(self) -> Run:
        with self.database.read() as session:
            found = session.get(Run, self.run_id)
            assert found is not None
            return found

    def hosts(self) -> dict[int, str]:
        """Where the ranks of the newest claim say they are."""
        folders = sorted(self.folder.glob("runs/*/events"), key=lambda each: each.stat().st_mtime)[-1:]
        paths = (path for folder in folders for path in folder.glob("events-*.jsonl"))
        lines = [line for path in paths for line in path.read_text().splitlines()]
        found = (read_event(line) for line in lines)
        return {event.rank: event.host for event in found if isinstance(event, HostEvent)}

    def starts(self) -> list[list[Event]]:
        """What was reported, start by start: the run is given back between."""
        found: list[list[Event]] = [[]]
        with self.database.read() as session:
            for event in results.every_event(session, self.run_id):
                if results.is_new_start(event):
                    found.append([])
                found[-1].append(event)
        return found

    def steps(self) -> list[int]:
        with self.database.read() as session:
            return [e.step for e in results.every_event(session, self.run_id) if isinstance(e, StepEvent)]
