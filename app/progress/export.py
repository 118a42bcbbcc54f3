"""The evidence log as a file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TextIO

from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, ProgrammingError

from app.core.db import Database, open_database
from app.core.errors import DomainError, Violation
from app.core.models import LOCAL_LEARNER
from app.core.settings import Settings
from app.progress.evidence import log_records

FORMAT = 1  # raised when a reader of older files would misread newer ones


def open_existing(settings: Settings) -> Database:
    """The install's database. Raises DomainError where there is none yet: connecting would make an empty one."""
    url = make_url(settings.sqlalchemy_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise DomainError(f"There is no database in {settings.data} yet. `rankzero start` makes one.")
    return open_database(settings.sqlalchemy_url)


def write_log(database: Database, out: str, now: datetime, learner_id: int = LOCAL_LEARNER) -> int:
    """Write the log to the file `out`, or to standard output for "-"; returns how many records.

    The first line says what the file is. A file is replaced only once the new one is whole. Raises DomainError.
    """
    try:
        with database.read() as session:
            records = list(log_records(session, learner_id))
    except (OperationalError, ProgrammingError) as error:
        reason = str(error.orig).splitlines()[0]
        raise DomainError(f"The database cannot be read ({reason}). `rankzero migrate` brings it up to date.") from None
    head = {"record": "log", "at": now.isoformat(), "format": FORMAT, "learner_id": learner_id, "records": len(records)}
    lines = [head, *records]
    if out == "-":
        _write(sys.stdout, lines)
        return len(records)
    target = Path(out)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            _write(file, lines)
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        violation = Violation("OUT", out, f"{error.strerror}.", "a path that can be written, or -")
        raise DomainError("The log was not written.", [violation]) from None
    return len(records)


def _write(file: TextIO, lines: Iterable[dict[str, object]]) -> None:
    for line in lines:
        file.write(json.dumps(line) + "\n")
