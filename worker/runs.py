"""One run from claim to end: start its ranks, write down what they report, see that it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from sqlalchemy.orm import Session

from app.core.db import database_time
from app.lab import service as lab
from app.lab.service import Claim, LeaseLost, RunFailure
from labs.spec import RunSpec
from labs.spec.events import Event, LogEvent, PhaseEvent, StepEvent
from worker import failures, untrusted
from worker.context import Context
from worker.devices import Placement
from worker.launcher import Launch, launch
from worker.pulses import Pulses
from worker.tail import Follower
from worker.writer import LONGEST_ABSENCE_SECONDS, StoppedWhileAway, Writer

log = structlog.get_logger()

POLL_SECONDS = 0.03
CHUNK_SECONDS = 0.25  # at most four chunks a second: what a page can show
LONGEST_RUN_SECONDS = 3600.0
REPORT_LINES = 500  # of torchrun's own words, which end with its report on the ranks


@dataclass
class _Ending:
    """Why a run is being ended by us, if it is."""

    status: str
    failure: RunFailure | None = None


@dataclass
class _Progress:
    """What was read of a run and when it was last written."""

    follower: Follower
    writer: Writer
    pulses: Pulses
    chunks: int  # the run's last chunk that we know of
    started: float = field(default_factory=time.monotonic)
    pending: list[Event] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)
    last_chunk: float = 0.0
    has_stepped: bool = False
    last_beat: float = 0.0


def take_next(context: Context) -> bool:
    """Claim and carry out one run; False when none waits that fits here."""
    with context.database.write() as session:
        gpus_elsewhere = lab.most_gpus_elsewhere(session, context.name, database_time(session))

        def place(spec: RunSpec) -> str | None:
            placement = context.devices.place(spec, gpus_elsewhere)
            return placement.text if placement else None

        claimed = lab.claim_next(session, context.name, place, database_time(session))
    if claimed is None:
        return False
    placement = context.devices.place(claimed.spec)
    assert placement is not None, "only runs that can be placed are claimed"
    context.run_id = claimed.run_id
    try:
        carry_out(context, claimed, placement)
    finally:
        context.run_id = None
    return True


def carry_out(context: Context, claim: Claim, placement: Placement) -> None:
    """Run a claimed run. Whatever happens, its processes are gone when this returns."""
    log.info("run starts", run=claim.run_id, device=placement.text)
    # a folder of this claim's own: a database that starts again at run 1 must not read what an older run 1 left
    folder = context.settings.run_folder / f"{claim.run_id}-{claim.lease[:8]}"
    writer = Writer(context.database, claim.run_id)
    try:
        launched = launch(claim.spec, folder, placement.environment)
    except OSError as error:
        why = RunFailure("could not start", f"torchrun could not be started: {error}.")
        _end(context, claim, writer, _Ending("failed", why))
        return
    ranks = claim.spec.parallel.world_size
    progress = _Progress(Follower(launched.events, ranks), writer, Pulses(launched.events, ranks), claim.chunks)
    try:
        ending = _follow(context, claim, launched, progress)
        launched.end()
        _write_rest(context, claim, progress)
        _end(context, claim, writer, ending or _verdict(launched, progress))
    except LeaseLost as error:
        log.warning("run was taken away", run=claim.run_id, reason=error.message)
    except StoppedWhileAway:
        log.warning("stopped while the database was away; the sweep decides about the run", run=claim.run_id)
    finally:
        launched.end()


def _follow(context: Context, claim: Claim, launched: Launch, progress: _Progress) -> _Ending | None:
    """Read, write and beat until the ranks end or must be ended; returns why, if it was us."""
    while launched.exit_code() is None:
        _write(context, claim, progress)
        now = time.monotonic()
        if now - progress.last_beat >= lab.HEARTBEAT_SECONDS / 4:
            progress.last_beat = now
            if progress.writer.attempt(lambda session: lab.beat(session, claim, database_time(session))):
                return _Ending("cancelled")
        silent = progress.pulses.find_silent(any(isinstance(event, StepEvent) for event in progress.seen))
        if silent is not None:
            return _Ending("failed", failures.silence(progress.seen, *silent, launched.logs))
        if context.stopping.is_set():
            return _Ending(
                "failed",
                RunFailure("worker stopped", "The worker was stopped while this run was under way. Run it again."),
            )
        if progress.writer.seconds_away > LONGEST_ABSENCE_SECONDS:
            away = round(progress.writer.seconds_away)
            return _Ending(
                "failed",
                RunFailure(
                    "database away", f"The database was away for {away} s, so the ranks were ended. Run it again."
                ),
            )
        if now - progress.started > LONGEST_RUN_SECONDS:
            minutes = round(LONGEST_RUN_SECONDS / 60)
            return _Ending(
                "failed",
                RunFailure("too long", f"The run was ended after {minutes} minutes, the longest a run may take."),
            )
        time.sleep(POLL_SECONDS)
    return None


def _write(context: Context, claim: Claim, progress: _Progress) -> None:
    """Move new events into a chunk, at most every CHUNK_SECONDS; while the database is away they stay in files.

    The first step is written at once: it is what a learner waits for.
    """
    if not progress.writer.may_try:
        return
    if not progress.writer.is_away:
        _read(progress)
    is_first_step = not progress.has_stepped and _has_step(progress.pending)
    if progress.pending and (is_first_step or time.monotonic() - progress.last_chunk >= CHUNK_SECONDS):
        _wrote(context, claim, progress, progress.writer.attempt(_chunk(claim, progress)))


def _write_rest(context: Context, claim: Claim, progress: _Progress) -> None:
    """All that the ranks, which are gone, have left, however long the database is away."""
    while True:
        _read(progress)
        if progress.pending:
            _wrote(context, claim, progress, progress.writer.insist(_chunk(claim, progress), context.stopping))
        if not progress.follower.is_behind:
            return


def _read(progress: _Progress) -> None:
    fresh = progress.follower.read()
    progress.pending += fresh
    progress.seen += [event for event in fresh if isinstance(event, PhaseEvent | StepEvent | LogEvent)]


def _chunk(claim: Claim, progress: _Progress) -> Callable[[Session], int]:
    def write(session: Session) -> int:
        return lab.append_chunk(session, claim, progress.pending, database_time(session), after=progress.chunks)

    return write


def _wrote(context: Context, claim: Claim, progress: _Progress, sequence: int | None) -> None:
    """Forget what is in the database now, and wake whoever looks on."""
    if sequence is None:
        return
    progress.has_stepped = progress.has_stepped or _has_step(progress.pending)
    progress.pending, progress.chunks, progress.last_chunk = [], sequence, time.monotonic()
    context.queue.wake_viewers(claim.run_id)


def _has_step(events: Iterable[Event]) -> bool:
    return any(isinstance(event, StepEvent) for event in events)


def _verdict(launched: Launch, progress: _Progress) -> _Ending:
    """How a run ended that we did not end."""
    if launched.exit_code() == 0:
        return _Ending("finished")
    output = untrusted.last_lines(launched.folder, Path(launched.output.name), REPORT_LINES)
    code = launched.exit_code() or 1
    return _Ending("failed", failures.explain(progress.seen, "\n".join(output), launched.logs, code))


def _end(context: Context, claim: Claim, writer: Writer, ending: _Ending) -> None:
    def write(session: Session) -> bool:
        return lab.end_run(session, claim, ending.status, database_time(session), ending.failure)

    writer.insist(write, context.stopping)
    context.queue.wake_viewers(claim.run_id)
    log.info("run ended", run=claim.run_id, status=ending.status)
