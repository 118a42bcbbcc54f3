"""Issued variants and what was answered to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner


class Variant(Base):
    """A seed issued to a learner. Only issued seeds count as evidence, and each counts once.

    `source` is the digest of what the problem said when it was issued or last answered.
    """

    __tablename__ = "variant"
    __table_args__ = (UniqueConstraint("learner_id", "problem_id", "seed"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    problem_id: Mapped[str] = mapped_column(String(20))
    revision: Mapped[int]
    seed: Mapped[int]
    drawn: Mapped[dict[str, Any]]
    issued_at: Mapped[datetime]
    hints_opened: Mapped[int] = mapped_column(default=0)
    settled_at: Mapped[datetime | None]
    score: Mapped[float | None]
    source: Mapped[str | None] = mapped_column(String(64))


class Attempt(Base):
    """One submission of answers to a variant, as it was graded. Append-only; re-renderable from seed and revision."""

    __tablename__ = "attempt"
    __table_args__ = (Index("ix_attempt_variant", "variant_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    variant_id: Mapped[int] = mapped_column(ForeignKey("variant.id"))
    answered_at: Mapped[datetime]
    answers: Mapped[dict[str, Any]]
    results: Mapped[dict[str, Any]]
    counted: Mapped[bool]
