"""Saying that a worker is there: a line in the database, every two seconds, from a thread of its own."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.core.db import Database, database_time
from app.core.leases import HEARTBEAT_SECONDS
from app.core.release import release
from app.lab import presence
from worker.context import Context
from worker.devices import Devices, UnknownDevice, find_devices

if TYPE_CHECKING:
    from worker.over_hosts import SeveralHosts

log = structlog.get_logger()

LOOK_SECONDS = 30.0  # between two looks for GPUs


def announce_forever(context: Context) -> threading.Thread:
    """Start announcing; the thread ends with the process or when `stopping` is set."""
    log.info("worker is there", worker=context.name, devices=_names(context.devices), release=release())
    thread = threading.Thread(target=_announce, args=(context,), daemon=True, name="presence")
    thread.start()
    return thread


def _announce(context: Context) -> None:
    said = ""
    looked_at = time.monotonic()
    while True:
        if time.monotonic() - looked_at >= LOOK_SECONDS:
            looked_at = time.monotonic()
            _look_again(context)
        try:
            with context.database.write() as session:
                presence.announce_worker(
                    session,
                    context.name,
                    context.kind,
                    context.devices.describe() if context.kind == "device" else [],
                    database_time(session),
                    context.run_id,
                    release(),
                    context.devices.trouble,
                )
                why = presence.why_nothing_is_taken(session, context.name)
        except SQLAlchemyError as error:
            context.database_away_at = time.monotonic()
            log.warning("presence not written", error=str(error))
        else:
            if why != said:
                log.warning("this worker takes no runs" if why else "this worker takes runs again", reason=why)
                if said and context.kind == "device":
                    context.queue.nudge_workers()
                said = why
        if context.stopping.wait(HEARTBEAT_SECONDS):
            return


def _look_again(context: Context) -> None:
    """Find the devices anew: GPUs come, go, and are cut up, and memory is taken and let go. While a run is on them they
    are left alone."""
    is_here = isinstance(context.devices, Devices)
    if context.kind != "device" or (is_here and context.run_id is not None):
        return
    found: Devices | SeveralHosts
    if not isinstance(context.devices, Devices):
        found = context.devices.look_again()
    else:
        try:
            found = find_devices(context.asked)
        except UnknownDevice as error:
            found = Devices(cpu=context.devices.cpu, gpus=(), trouble=str(error))
    before, context.devices = context.devices, found  # free memory alone is no change
    if found == before:
        return
    if (_names(before), before.trouble) != (_names(found), found.trouble):  # else hosts are busy, or idle again
        log.warning("the devices have changed", devices=_names(found), why=found.trouble)
    context.queue.nudge_workers()


def _names(devices: Devices | SeveralHosts) -> list[object]:
    return [each["name"] for each in devices.describe()]


def is_alive(database: Database, host: str) -> bool:
    """Whether a process of ours on this host said lately that it is there: a container's health."""
    with database.read() as session:
        return any(f"-{host}-" in worker.name for worker in presence.workers_present(session, database_time(session)))


def retire(context: Context) -> None:
    """Take the worker's line back."""
    try:
        with context.database.write() as session:
            presence.retire_worker(session, context.name)
    except SQLAlchemyError as error:
        log.warning("worker not retired", error=str(error))
