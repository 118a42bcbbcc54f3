"""What the worker may use of the lab, and nothing else: runs in its hands, the GPUs they take, how large they
may be, what old ones leave.

That it is there a worker says through `app.lab.presence`, which the clock uses as well. Both load neither theory nor
content: each is a good part of a worker's start.
"""

from __future__ import annotations

from app.lab.claims import (
    beat,
    claim_next,
    end_run,
    expire_waiting,
    give_up_on_stale,
    list_leases,
    requeue,
    runs_wait,
)
from app.lab.events import append_chunk
from app.lab.gpus import GpuTaken, gpus_taken, take_gpus
from app.lab.leases import Claim, LeaseLost
from app.lab.records import RunFailure, killed_as_asked
from app.lab.retention import forget_events, list_active_ids
from app.lab.sizes import gpus_for, kind_on, sizes_on
from app.lab.takers import most_gpus

__all__ = [
    "Claim",
    "GpuTaken",
    "LeaseLost",
    "RunFailure",
    "append_chunk",
    "beat",
    "claim_next",
    "end_run",
    "expire_waiting",
    "forget_events",
    "give_up_on_stale",
    "gpus_for",
    "gpus_taken",
    "killed_as_asked",
    "kind_on",
    "list_active_ids",
    "list_leases",
    "most_gpus",
    "requeue",
    "runs_wait",
    "sizes_on",
    "take_gpus",
]
