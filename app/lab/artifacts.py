"""What an ended run leaves to be kept elsewhere: which runs are next, what there is of one, and what is kept of it.

The row says what is kept, so that nobody asks the store to know. It is written last: what stands there is whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import DomainError, NotFound
from app.core.store import Store
from app.lab import findings, queries
from app.lab.models import ENDED, Run
from app.lab.opening import export_run
from app.lab.results import every_span
from app.lab.trace import chrome_trace
from labs.checkpoints import Archive, named_for_checkpoints, open_newest
from labs.snapshots import Snapshot, list_snapshots, named_for_snapshots, open_snapshot


class StoreAway(DomainError):
    """Whatever its client raised: each raises its own."""

    status = 503
    code = "store-away"


@dataclass(frozen=True)
class Left:
    """A run that has ended. `identity` names what it has written."""

    run_id: int
    learner_id: int
    identity: str


def list_unkept(session: Session, most: int) -> list[Left]:
    """Ended runs of which nothing is kept yet, those that have waited for longest first."""
    has_ended = (Run.status.in_(ENDED), Run.chunks > 0, queries.IS_OWN)
    query = select(Run).where(*has_ended, Run.artifacts.is_(None)).order_by(Run.id).limit(most)
    return [Left(run.id, run.learner_id, run.identity) for run in session.scalars(query)]


def contents_of(session: Session, run: Left, release: str, now: datetime) -> Iterator[tuple[str, Iterable[bytes]]]:
    """What the database tells of a run, by name of file: all of it as the one file that an install opens, and its trace
    where it was looked at in time."""
    yield export_run(session, run.learner_id, run.run_id, release, now)
    if spans := every_span(session, run.run_id):
        yield f"run-{run.run_id}-trace.json", [json.dumps(chrome_trace(spans)).encode()]


def last_checkpoint(run: Run, runs: Path) -> Archive | None:
    """The last whole checkpoint of an ended run, where this server sees what its ranks wrote, below `runs`, and it is
    still there: read or close it."""
    return open_newest(named_for_checkpoints(runs, run.identity)) if _may_be_had(run) else None


def list_snapshots_of(run: Run, runs: Path) -> Mapping[int, int]:
    """Bytes of what the GPUs' allocators recorded, by rank, of an ended run: where this server sees it, as above."""
    return list_snapshots(named_for_snapshots(runs, run.identity)) if _may_be_had(run) else {}


def snapshot_of(run: Run, runs: Path, rank: int) -> Snapshot | None:
    """One rank's: read or close it."""
    return open_snapshot(named_for_snapshots(runs, run.identity), rank) if _may_be_had(run) else None


def _may_be_had(run: Run) -> bool:
    return run.status in ENDED and not run.opened_from and not findings.is_hidden(run)


def note_kept(session: Session, run_id: int, files: Mapping[str, int]) -> None:
    """Say what is kept of a run now, bytes by name: nothing once it was let go of."""
    session.get_one(Run, run_id).artifacts = dict(files)


def list_kept_before(session: Session, before: datetime) -> list[tuple[int, str]]:
    """Id and folder of runs that ended before then and of which something is kept."""
    query = select(Run).where(Run.artifacts.is_not(None), Run.ended_at < before).order_by(Run.id)
    return [(run.id, run.identity) for run in session.scalars(query) if run.artifacts]


def delete_kept(session: Session, learner_id: int, place: str) -> None:
    """Remove all that is kept of a learner's runs. Raises StoreAway."""
    query = select(Run).where(Run.artifacts.is_not(None), Run.learner_id == learner_id)
    kept = [run for run in session.scalars(query) if run.artifacts]
    if not kept or not place:
        return
    try:
        store = Store(place)
        for run in kept:
            store.remove(run.identity)
    except Exception as error:
        raise StoreAway("Where your runs' files are kept does not answer just now. Try again later.") from error


def read_kept(run: Run, place: str, name: str) -> Iterator[bytes]:
    """One of the files that are kept of a run. Raises NotFound."""
    missing = NotFound(f"Nothing called {name} is kept of run {run.id}.")
    if not place or name not in (run.artifacts or {}):
        raise missing
    try:
        return Store(place).read(f"{run.identity}/{name}")
    except FileNotFoundError:
        raise missing from None
    except Exception as error:
        raise StoreAway(f"Where {name} is kept does not answer just now. Try again later.") from error
