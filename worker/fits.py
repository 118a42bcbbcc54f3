"""Starting fits of personal parameters, one at a time, each in a process of its own that ends with this one."""

from __future__ import annotations

import subprocess
import sys

import structlog

from app.core.clock import utc_now
from app.study import api as study
from labs.leash import on_leash
from worker.context import Context

log = structlog.get_logger()

_running: dict[int, subprocess.Popen[bytes]] = {}  # by fit; what this process started


def start_next(context: Context) -> bool:
    """Start the fit that waited longest, unless one is under way here; whether one was started."""
    _reap(context)
    if _running:
        return False
    with context.database.write() as session:
        study.give_up_on_stale_fits(session, utc_now())
        fit_id = study.claim_fit(session, utc_now())
    if fit_id is None:
        return False
    # on a leash (labs.leash): its standard input closes with this process, even by SIGKILL, and ends the fit
    command = on_leash([sys.executable, "-m", "worker.optimise", str(fit_id)])
    _running[fit_id] = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    log.info("fit starts", fit=fit_id)
    return True


def _reap(context: Context) -> None:
    """Note fits that ended; one that was killed left no word."""
    for fit_id, process in list(_running.items()):
        code = process.poll()
        if code is None:
            continue
        del _running[fit_id]
        if process.stdin is not None:
            process.stdin.close()
        if code:
            with context.database.write() as session:
                study.fail_fit(session, fit_id, f"The fit's process ended with {code}.", utc_now())
