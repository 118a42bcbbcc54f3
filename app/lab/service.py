"""What other rooms may use of the lab, and nothing else: its runs, and who is present. The worker has its own doors:
`app.lab.work` and `app.lab.presence`."""

from __future__ import annotations

from app.lab.activity import activity
from app.lab.artifacts import delete_kept
from app.lab.opening import export_run, store_opened
from app.lab.predictions import list_evidence
from app.lab.presence import note_release, workers_present
from app.lab.reading import (
    count_active,
    count_by_status,
    find_run,
    list_records,
    list_under_way,
    queue_position,
)
from app.lab.run_file import ENDING as RUN_FILE_ENDING
from app.lab.run_file import MOST_FILE_BYTES as RUN_FILE_BYTES
from app.lab.run_file import ReadRun, is_run_file
from app.lab.run_file import read_file as read_run_file
from app.lab.submitting import QueueFull, cancel_run, submit_run

__all__ = [
    "RUN_FILE_BYTES",
    "RUN_FILE_ENDING",
    "QueueFull",
    "ReadRun",
    "activity",
    "cancel_run",
    "count_active",
    "count_by_status",
    "delete_kept",
    "export_run",
    "find_run",
    "is_run_file",
    "list_evidence",
    "list_records",
    "list_under_way",
    "note_release",
    "queue_position",
    "read_run_file",
    "store_opened",
    "submit_run",
    "workers_present",
]
