"""Sittings and their answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner


class Sitting(Base):
    """One timed interview. The stored deadline is the only clock; at most one is open per learner."""

    __tablename__ = "sitting"
    __table_args__ = (
        Index(
            "uq_sitting_open",
            "learner_id",
            unique=True,
            sqlite_where=text("closed_at IS NULL"),
            postgresql_where=text("closed_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    interview_id: Mapped[str] = mapped_column(String(20))
    revision: Mapped[int]
    drawn: Mapped[dict[str, Any]]
    started_at: Mapped[datetime]
    deadline_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    closed_by: Mapped[str | None] = mapped_column(String(20))
    scorecard: Mapped[dict[str, Any] | None]
    # The level its candidate expected before the debrief, empty for who would not say; null before the question.
    expected_level: Mapped[str | None] = mapped_column(String(20))


class SittingAnswer(Base):
    """What was answered to one part of a sitting, saved while it was typed."""

    __tablename__ = "sitting_answer"

    sitting_id: Mapped[int] = mapped_column(ForeignKey("sitting.id"), primary_key=True)
    part_id: Mapped[str] = mapped_column(String(60), primary_key=True)
    answer: Mapped[str] = mapped_column(Text)
    final: Mapped[bool] = mapped_column(default=False)
    saved_at: Mapped[datetime]
    judged: Mapped[dict[str, Any] | None]
    # What the interviewer asks on account of it, decided when it was given; null where the interviewer goes on.
    reaction: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
