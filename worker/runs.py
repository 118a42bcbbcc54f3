"""One run from claim to end: start its ranks, write down what they report, see that it ends."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from sqlalchemy.orm import Session

from app.core.db import database_time
from app.core.disk import free_bytes, is_disk_full
from app.core.leases import HEARTBEAT_SECONDS
from app.lab import presence, work
from app.lab.work import Claim, LeaseLost, RunFailure
from labs.spec import RunSpec
from labs.spec.events import Event, HostEvent, LogEvent, MeasurementEvent, PhaseEvent, StepEvent
from labs.warm import WarmHost
from worker import failures
from worker.context import Context
from worker.devices import Placement
from worker.endings import Ending, find_lost_hosts, lost_its_host, of_lost_hosts, verdict
from worker.folders import let_go, name_of_claim, variables_for_ranks
from worker.launcher import Launch, can_start_warm, launch
from worker.over_hosts import RanksOverHosts, SeveralHosts
from worker.pulses import Pulses
from worker.slurm_jobs import cancel_leftovers
from worker.tail import Follower
from worker.watchdog import Watchdog
from worker.writer import LONGEST_ABSENCE_SECONDS, StoppedWhileAway, Writer

log = structlog.get_logger()

POLL_SECONDS = 0.03
CHUNK_SECONDS = 0.25  # at most four chunks a second: what a page can show
NO_ROOM_BYTES = 256 * 1024  # less is no room: a step's events take as much
_KEPT = (PhaseEvent, StepEvent, MeasurementEvent, LogEvent, HostEvent)  # what an ending is told from


_AGAIN = Ending("again")  # of this launch, not of the run


@dataclass
class _Progress:
    """What was read of a run and when it was last written."""

    follower: Follower
    writer: Writer
    pulses: Pulses
    chunks: int  # the run's last chunk that we know of
    began: float = field(default_factory=time.monotonic)
    started: float = field(default_factory=time.monotonic)  # from when its time counts
    pending: list[Event] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)
    last_chunk: float = 0.0
    has_stepped: bool = False
    way: str = "cold"  # how it was started
    doing: str = ""  # what is said in place of ranks that do not speak yet
    last_beat: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether what the ranks have done since may be written by now: until then there is no need to look. A first
        step is written at once: it is what a learner waits for."""
        return not self.has_stepped or time.monotonic() - self.last_chunk >= CHUNK_SECONDS


def take_next(context: Context) -> bool:
    """Claim and carry out one run; False when none waits that fits here."""
    placements: list[Placement] = []
    _end_leftovers(context)
    try:
        with context.database.write() as session:
            if presence.why_nothing_is_taken(session, context.name):
                return False
            now = database_time(session)
            elsewhere = presence.devices_elsewhere(session, context.name, now)
            taken = work.gpus_taken(session)

            def place(spec: RunSpec) -> str | None:
                placement = context.devices.place(spec, work.most_gpus(elsewhere, spec), taken)
                placements.extend([placement] if placement else [])
                return placement.text if placement else None

            claimed = work.claim_next(session, context.name, place, now)
            if claimed is not None:
                work.take_gpus(session, claimed.run_id, placements[-1].gpus)
    except work.GpuTaken as error:
        log.info("a claim was undone", reason=error.message)
        return True  # the next look sees what the other one took
    if claimed is None:
        return False
    placement = placements[-1]
    context.run_id = claimed.run_id
    try:
        carry_out(context, claimed, placement)
    finally:
        context.run_id = None
    return True


def _end_leftovers(context: Context) -> None:
    """Jobs of runs that are in other hands now: a worker that was killed could not end them."""
    if not isinstance(context.devices, SeveralHosts) or not (jobs := context.devices.jobs()):
        return
    with context.database.read() as session:  # after the jobs: whoever submitted one had claimed its run before
        cancel_leftovers(jobs, {name_of_claim(*each) for each in work.list_leases(session)})


def carry_out(context: Context, claim: Claim, placement: Placement) -> None:
    """Run a claimed run. Whatever happens, its processes are gone when this returns."""
    log.info("run starts", run=claim.run_id, device=placement.text)
    folder = context.settings.run_folder / name_of_claim(claim.run_id, claim.lease)
    writer, chunks = Writer(context.database, claim.run_id), claim.chunks
    for number, host in enumerate(ways := _ways(context, claim.spec, placement), 1):
        is_last = number == len(ways)
        place = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        try:
            launched = _launch(context, claim, place, placement, host)
        except OSError as error:
            if is_last:
                what = "It" if placement.launch else "torchrun"
                why = RunFailure("could not start", f"{what} could not be started: {error}.")
                why = failures.disk_full(()) if is_disk_full(error) else why
                _end(context, claim, writer, Ending("failed", why))
            continue
        follower = Follower(launched.events, claim.spec.parallel.world_size, context.settings.limits)
        progress = _begin(claim, launched, host, writer, chunks, follower)
        progress.way = placement.way or ("warm" if launched.is_warm else "cold")
        if _finish(context, claim, launched, progress, None if is_last else Watchdog(claim.spec)):
            return
        log.warning("a warm start came to nothing; once more", run=claim.run_id, cold=number + 1 == len(ways))
        chunks = progress.chunks
        shutil.rmtree(place, ignore_errors=True)


def _launch(context: Context, claim: Claim, folder: Path, placement: Placement, host: WarmHost | None) -> Launch:
    variables = {**placement.environment, **variables_for_ranks(context.settings.run_folder, claim)}
    if placement.launch is not None:
        return placement.launch(claim.spec, folder, variables)
    return launch(claim.spec, folder, variables, host)


def _ways(context: Context, spec: RunSpec, placement: Placement) -> list[WarmHost | None]:
    """How to start a run, one way after the other until its ranks get to work: from the warm host, once more, cold."""
    host = context.host if placement.launch is None else None
    return [host, host, None] if host is not None and can_start_warm(spec, placement.environment) else [None]


def _begin(
    claim: Claim, launched: Launch, host: WarmHost | None, writer: Writer, chunks: int, follower: Follower
) -> _Progress:
    """Ranks speak for themselves as soon as there are any; what takes the time until then is said here."""
    ranks = claim.spec.parallel.world_size
    progress = _Progress(follower, writer, Pulses(launched.events, ranks), chunks)
    doing = f"starting {ranks} {'ranks' if ranks > 1 else 'rank'}" if host and host.is_ready else "loading torch"
    progress.pending.append(PhaseEvent(0.0, 0, "starting", doing=doing))
    return progress


def _finish(context: Context, claim: Claim, launched: Launch, progress: _Progress, watchdog: Watchdog | None) -> bool:
    """See a launch through to the run's end; False when it came to nothing and the run is to be started again."""
    try:
        ending = _follow(context, claim, launched, progress, watchdog)
        launched.end()
        if ending is _AGAIN:
            return False
        ending = _make_room(context, claim, launched, progress, ending)
        _write_rest(context, claim, progress)
        if ending is None and watchdog and lost_its_host(launched) and not watchdog.has_worked(progress.seen):
            return False
        _end(context, claim, progress.writer, ending or verdict(claim, launched, progress.seen))
        if ending is not None and ending.status == "cancelled":
            let_go(context.settings.run_folder, claim, launched.folder)
    except LeaseLost as error:
        log.warning("run was taken away", run=claim.run_id, reason=error.message)
    except StoppedWhileAway:
        log.warning("stopped while the database was away; the sweep decides about the run", run=claim.run_id)
    finally:
        launched.end()
    return True


def _make_room(
    context: Context, claim: Claim, launched: Launch, progress: _Progress, ending: Ending | None
) -> Ending | None:
    """Where the disk is full, what the ranks have written is let go: it is what there is to make room with, and the
    run's end can be written. It is said as what it is, whatever the ranks died of."""
    is_full = progress.writer.is_disk_full or free_bytes(launched.folder) < NO_ROOM_BYTES
    if not is_full or launched.exit_code() == 0 or (ending is not None and ending.status == "cancelled"):
        return ending
    _read(progress)
    let_go(context.settings.run_folder, claim, launched.folder)
    return Ending("failed", failures.disk_full(progress.seen))


def _follow(
    context: Context, claim: Claim, launched: Launch, progress: _Progress, watchdog: Watchdog | None
) -> Ending | None:
    """Read, write and beat until the ranks end or must be ended; returns why, if it was us."""
    way = progress.way
    while launched.exit_code() is None:
        if not progress.is_due:  # each look takes time from the ranks
            time.sleep(POLL_SECONDS)
            continue
        _note_waiting(launched, progress)
        _write(context, claim, progress)
        now = time.monotonic()
        if now - progress.last_beat >= HEARTBEAT_SECONDS / 4:
            progress.last_beat = now
            if progress.writer.attempt(lambda session: work.beat(session, claim, database_time(session), way)):
                return Ending("cancelled")
        if watchdog is not None and watchdog.hangs(launched, progress.seen):
            return _AGAIN
        lost = find_lost_hosts(claim.spec, launched, progress.seen, progress.pulses)
        ending = of_lost_hosts(claim.spec, progress.seen, lost) if lost else _must_end(context, launched, progress)
        if ending is not None:
            return ending
        time.sleep(POLL_SECONDS)
    return None


def _note_waiting(launched: Launch, progress: _Progress) -> None:
    """What a run over several hosts waits for; such time is none of its own."""
    process = launched.process
    if not isinstance(process, RanksOverHosts):
        return
    if process.doing != progress.doing and not _has_step(progress.seen):
        progress.doing = process.doing
        progress.pending.append(PhaseEvent(time.monotonic() - progress.began, 0, "starting", doing=progress.doing))
    if process.is_waiting:
        progress.started = time.monotonic()


def _must_end(context: Context, launched: Launch, progress: _Progress) -> Ending | None:
    """Why a run must not go on, if so."""
    silent = progress.pulses.find_silent(_has_step(progress.seen))
    if silent is not None:
        return Ending("failed", failures.silence(progress.seen, *silent, launched.logs))
    if context.stopping.is_set():
        said = "The worker was stopped while this run was under way."
        return Ending("failed", RunFailure("worker stopped", f"{said} Run it again."), said)
    if progress.writer.is_disk_full:
        return Ending("failed", failures.disk_full(progress.seen))
    if progress.writer.seconds_away > LONGEST_ABSENCE_SECONDS:
        away = round(progress.writer.seconds_away)
        return Ending(
            "failed",
            RunFailure("database away", f"The database was away for {away} s, so the ranks were ended. Run it again."),
        )
    longest = context.settings.run_seconds
    if time.monotonic() - progress.started > longest:
        said = f"The run was ended after {longest:g} s, the longest a run may take here."
        return Ending("failed", RunFailure("limit reached", said))
    return None


def _write(context: Context, claim: Claim, progress: _Progress) -> None:
    """Move new events into a chunk, at most every CHUNK_SECONDS; while the database is away they stay in files."""
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
    progress.seen += [event for event in fresh if isinstance(event, _KEPT)]


def _chunk(claim: Claim, progress: _Progress) -> Callable[[Session], int]:
    def write(session: Session) -> int:
        return work.append_chunk(session, claim, progress.pending, database_time(session), after=progress.chunks)

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


def _end(context: Context, claim: Claim, writer: Writer, ending: Ending) -> None:
    def write(session: Session) -> bool:
        now = database_time(session)
        if ending.again and work.requeue(session, claim, ending.again, now):
            return True
        return work.end_run(session, claim, ending.status, now, ending.failure)

    writer.insist(write, context.stopping)
    context.queue.wake_viewers(claim.run_id)
    why = {"cause": ending.failure.cause, "why": ending.failure.message} if ending.failure else {}
    log.info("run ended here", run=claim.run_id, status=ending.status, **why)
    if ending.again:
        context.queue.nudge_workers()
