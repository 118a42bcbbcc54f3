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
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from app.exchange import limits

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

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
    from app.core.moment import Moment  # noqa: PLC0415 - after the limits

    shown = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > SHOWN_SECONDS:
            shown = time.monotonic()
            write_status(folder, state="running", phase="reading", done=done, total=total)

    name, known, learner = order["name"], order["known"], order["learner"]
    moment = Moment(datetime.fromisoformat(order["moment"]["now"]), ZoneInfo(order["moment"]["zone"]))
    # a run is read without what cards need, and cards without what a run needs: either is most of what there is to load
    if order["is_run"]:
        from app.lab import service as lab  # noqa: PLC0415

        with (folder / FILE).open("rb") as file:
            run = lab.read_run_file(file, progress)

        def store_run(session: Session) -> str:
            return f"/lab/runs/{lab.store_opened(session, learner, name, run, moment.now).id}"

        return _store(folder, order, len(run.events), store_run)
    from app.exchange import service  # noqa: PLC0415

    with (folder / FILE).open("rb") as file:
        found = service.read_file(name, file, known, moment, progress)

    def store_cards(session: Session) -> str:
        report = service.store(session, learner, known, name, found, moment, scheduling=order["scheduling"])
        return f"/study/exchange/{report.id}"

    return _store(folder, order, len(found.cards) + len(found.catalogue), store_cards)


def _store(folder: Path, order: dict[str, Any], count: int, store: Callable[[Session], str]) -> str:
    """Everything that was read, in one transaction; returns what `store` does."""
    from app.core.db import open_database  # noqa: PLC0415 - after the limits

    write_status(folder, state="running", phase="storing", done=count, total=count)
    with open_database(order["database"]).write() as session:
        leads_to = store(session)
        # from here on a cancel or the clock comes too late: what is committed must be said to be done
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM})
        return leads_to


if __name__ == "__main__":
    limit_self()
    main(Path(sys.argv[1]), json.load(sys.stdin))
