"""Runs: the record, and the queue. Celery only nudges a worker, which claims the next run here."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner

WAITING = "queued"
ACTIVE = ("starting", "running")
ENDED = ("finished", "failed", "cancelled", "expired")  # expired: nobody took it in time


class Sweep(Base):
    """Runs that were submitted as one, alike but for one or two fields of their specs. `knobs`: field and values."""

    __tablename__ = "sweep"

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    name: Mapped[str] = mapped_column(String(80))
    knobs: Mapped[list[Any]]
    created_at: Mapped[datetime]


class Run(Base):
    """One run from submission to result.

    `lease` is set by the worker that claims the run; whoever holds it writes, and nobody else: a worker that was
    given up on cannot overwrite what a sweep decided.
    """

    __tablename__ = "run"
    __table_args__ = (
        Index("ix_run_queue", "status", "id"),
        Index("ix_run_learner", "learner_id", "id"),
        Index("ix_run_sweep", "sweep_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    experiment_id: Mapped[str | None] = mapped_column(String(20))
    spec: Mapped[dict[str, Any]]
    prediction: Mapped[dict[str, Any] | None]
    theory: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(String(20))
    phase: Mapped[str] = mapped_column(String(200), default="")
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    cancel_requested_at: Mapped[datetime | None]
    lease: Mapped[str | None] = mapped_column(String(64))
    worker: Mapped[str | None] = mapped_column(String(200))
    device: Mapped[str | None] = mapped_column(String(200))
    attempts: Mapped[int] = mapped_column(default=0)  # how often a worker claimed it
    launch: Mapped[str | None] = mapped_column(String(20))  # how its ranks were started: warm or cold
    steps_done: Mapped[int] = mapped_column(default=0)
    chunks: Mapped[int] = mapped_column(default=0)
    name: Mapped[str] = mapped_column(String(80), default="")  # what its learner calls it, and notes of it
    note: Mapped[str] = mapped_column(String(2000), default="")
    sweep_id: Mapped[int | None] = mapped_column(ForeignKey("sweep.id"))
    result: Mapped[dict[str, Any] | None]
    failure: Mapped[dict[str, Any] | None]
    opened_from: Mapped[str | None] = mapped_column(String(200))  # the file's name, of a run of somebody's else
    origin: Mapped[dict[str, Any] | None]  # where that run was, as the file tells
    # what is kept of it elsewhere (app.lab.artifacts), bytes by name; null until that is done
    artifacts: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    @property
    def identity(self) -> str:
        """For names of what it has written: no other run has it, not that of another database."""
        made = f"{self.id} {self.created_at.isoformat()}"
        return f"{self.id}-{hashlib.sha256(made.encode()).hexdigest()[:8]}"


class Chunk(Base):
    """Events of a run in the order they were read: the sequence is the SSE event id."""

    __tablename__ = "run_chunk"

    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True)
    events: Mapped[list[Any]]
    created_at: Mapped[datetime]


class WorkerPresence(Base):
    """A worker that said it was there, and what it may use. `control` is a worker without devices."""

    __tablename__ = "worker_presence"

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    devices: Mapped[list[Any]]
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    run_id: Mapped[int | None]
    release: Mapped[str] = mapped_column(String(60), default="")
    is_drained: Mapped[bool] = mapped_column(default=False)  # asked to take no more runs; it finishes the one it has
    drained_at: Mapped[datetime | None]
    trouble: Mapped[str] = mapped_column(String(500), default="")  # what keeps its devices from being used


class ServedRelease(Base):
    """The release whose pages are served: one row. A worker of another one takes nothing."""

    __tablename__ = "served_release"

    id: Mapped[int] = mapped_column(primary_key=True)
    release: Mapped[str] = mapped_column(String(60))
    noted_at: Mapped[datetime]


class GpuLease(Base):
    """A GPU that a run has to itself, by the identity its driver gave it. It holds as long as the run is active."""

    __tablename__ = "gpu_lease"

    uuid: Mapped[str] = mapped_column(String(80), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"))
