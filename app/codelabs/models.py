"""Submissions of code labs: the record, and their queue. And each learner's desk: draft, hints, what was passed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner

WAITING, RUNNING = "queued", "running"
PUZZLE = "puzzle"  # the mode of a program that was put together: judged as one that is submitted
ENDED = ("judged", "failed", "cancelled")


class CodeSubmission(Base):
    """A program from submission to verdict. As with a run, whoever holds the lease writes, and nobody else."""

    __tablename__ = "code_submission"
    __table_args__ = (
        Index("ix_code_submission_queue", "status", "id"),
        Index("ix_code_submission_learner", "learner_id", "lab_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    lab_id: Mapped[str] = mapped_column(String(20))
    revision: Mapped[int]
    mode: Mapped[str] = mapped_column(String(10))
    code: Mapped[str] = mapped_column(Text)
    hints_taken: Mapped[int] = mapped_column(default=0)  # when it was submitted
    status: Mapped[str] = mapped_column(String(20), default=WAITING)
    detail: Mapped[str] = mapped_column(String(500), default="")
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    cancel_requested_at: Mapped[datetime | None]
    lease: Mapped[str | None] = mapped_column(String(64))
    worker: Mapped[str | None] = mapped_column(String(200))
    attempts: Mapped[int] = mapped_column(default=0)
    chunks: Mapped[int] = mapped_column(default=0)
    verdict: Mapped[dict[str, Any] | None]
    passed: Mapped[bool | None]
    score: Mapped[float | None]


class CodeChunk(Base):
    """Events of a submission in the order they came: the sequence is the SSE event id."""

    __tablename__ = "code_chunk"

    submission_id: Mapped[int] = mapped_column(ForeignKey("code_submission.id"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True)
    events: Mapped[list[Any]]
    created_at: Mapped[datetime]


class CodeDesk(Base):
    """What a learner has of a lab: the program as it was last typed, the hints opened, when it was passed first."""

    __tablename__ = "code_desk"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    lab_id: Mapped[str] = mapped_column(String(20), primary_key=True)
    opened_at: Mapped[datetime]
    draft: Mapped[str | None] = mapped_column(Text)
    draft_at: Mapped[datetime | None]
    hints_taken: Mapped[int] = mapped_column(default=0)
    passed_at: Mapped[datetime | None]
    passed_with_hints: Mapped[int | None]
