"""`python -m app.exchange.child FOLDER`: one import, in a process of its own, with an order on standard input.

It limits itself before it looks at the file, and imports no torch. Everything is stored in one transaction at its end:
killed at any moment before, it leaves the database as it was.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from app.exchange import limits

STATUS = "status.json"
FILE = "file"
SHOWN_SECONDS = 0.2


def limit_self() -> None:
    """Memory, processor time, file sizes and the clock: the kernel ends us at each, whatever library is at work."""
    for kind, most in (
        (resource.RLIMIT_DATA, limits.CHILD_DATA_BYTES),
        (resource.RLIMIT_AS, limits.CHILD_ADDRESS_BYTES),
        (resource.RLIMIT_CPU, limits.CHILD_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, limits.CHILD_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # a lower limit is set already, or the system knows no such limit
            resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limits.CHILD_DEADLINE_SECONDS)
    os.nice(5)  # pages come first


def write_status(folder: Path, **status: Any) -> None:
    """What the page shows, replaced as a whole."""
    partial = folder / f"{STATUS}.partial"
    partial.write_text(json.dumps(status))
    partial.replace(folder / STATUS)


def main(folder: Path, order: dict[str, object]) -> None:
    """Do the import and write what became of it."""
    from app.core.errors import DomainError, problem_details  # noqa: PLC0415 - after the limits

    try:
        write_status(folder, state="done", leads_to=_import(folder, order))
    except DomainError as error:
        details = problem_details(error)
        write_status(folder, state="refused", message=details["detail"], violations=details["errors"])
    except MemoryError:
        refuse(folder, f"It needs more than {limits.CHILD_DATA_BYTES // limits.MB} MB of memory.")


def refuse(folder: Path, message: str, accepted: str = "a smaller file, such as one deck at a time") -> None:
    """Say that the file as a whole was not imported."""
    violation = {"field": "file", "value": "…", "message": message, "accepted": accepted}
    write_status(folder, state="refused", message="The file was not imported.", violations=[violation])


def _import(folder: Path, order: dict[str, Any]) -> str:
    """Read the file and store it; the address of what came of it."""
    from app.core.db import open_database  # noqa: PLC0415 - after the limits
    from app.core.moment import Moment  # noqa: PLC0415
    from app.exchange import service  # noqa: PLC0415
    from app.exchange.findings import Findings  # noqa: PLC0415
    from app.lab import service as lab  # noqa: PLC0415

    shown = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > SHOWN_SECONDS:
            shown = time.monotonic()
            write_status(folder, state="running", phase="reading", done=done, total=total)

    name, known = order["name"], order["known"]
    moment = Moment(datetime.fromisoformat(order["moment"]["now"]), ZoneInfo(order["moment"]["zone"]))
    found: lab.ReadRun | Findings
    with (folder / FILE).open("rb") as file:
        if lab.is_run_file(name):
            found = lab.read_run_file(file, progress)
        else:
            found = service.read_file(name, file, known, moment, progress)
    count = len(found.events) if isinstance(found, lab.ReadRun) else len(found.cards) + len(found.catalogue)
    write_status(folder, state="running", phase="storing", done=count, total=count)
    database = open_database(order["database"])
    with database.write() as session:
        if isinstance(found, lab.ReadRun):
            stored = lab.store_opened(session, order["learner"], name, found, moment.now)
            leads_to = f"/lab/runs/{stored.id}"
        else:
            scheduling = order["scheduling"]
            report = service.store(session, order["learner"], known, name, found, moment, scheduling=scheduling)
            leads_to = f"/study/exchange/{report.id}"
        # from here on a cancel or the clock comes too late: what is committed must be said to be done
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM})
        return leads_to


if __name__ == "__main__":
    limit_self()
    main(Path(sys.argv[1]), json.load(sys.stdin))
