"""What other rooms and the worker may use of the lab, and nothing else: its runs, their claims, who is present."""

from __future__ import annotations

from app.lab.claims import (
    Claim,
    LeaseLost,
    append_chunk,
    beat,
    claim_next,
    end_run,
    expire_waiting,
    give_up_on_stale,
    requeue,
)
from app.lab.gpus import GpuTaken, gpus_taken, take_gpus
from app.lab.opening import export_run, store_opened
from app.lab.presence import (
    FORGET_WORKERS_AFTER,
    HEARTBEAT_SECONDS,
    STALE_AFTER,
    announce_worker,
    forget_workers_long_gone,
    most_gpus_elsewhere,
    note_release,
    retire_worker,
    why_nothing_is_taken,
    workers_present,
)
from app.lab.reading import (
    count_active,
    count_by_status,
    find_run,
    list_evidence,
    list_records,
    list_under_way,
    queue_position,
    runs_wait,
    suggest,
)
from app.lab.records import RunFailure
from app.lab.retention import forget_events, list_active_ids
from app.lab.run_file import ENDING as RUN_FILE_ENDING
from app.lab.run_file import MOST_FILE_BYTES as RUN_FILE_BYTES
from app.lab.run_file import ReadRun, is_run_file
from app.lab.run_file import read_file as read_run_file
from app.lab.submitting import QueueFull, cancel_run, submit_run

__all__ = [
    "FORGET_WORKERS_AFTER",
    "HEARTBEAT_SECONDS",
    "RUN_FILE_BYTES",
    "RUN_FILE_ENDING",
    "STALE_AFTER",
    "Claim",
    "GpuTaken",
    "LeaseLost",
    "QueueFull",
    "ReadRun",
    "RunFailure",
    "announce_worker",
    "append_chunk",
    "beat",
    "cancel_run",
    "claim_next",
    "count_active",
    "count_by_status",
    "end_run",
    "expire_waiting",
    "export_run",
    "find_run",
    "forget_events",
    "forget_workers_long_gone",
    "give_up_on_stale",
    "gpus_taken",
    "is_run_file",
    "list_active_ids",
    "list_evidence",
    "list_records",
    "list_under_way",
    "most_gpus_elsewhere",
    "note_release",
    "queue_position",
    "read_run_file",
    "requeue",
    "retire_worker",
    "runs_wait",
    "store_opened",
    "submit_run",
    "suggest",
    "take_gpus",
    "why_nothing_is_taken",
    "workers_present",
]
