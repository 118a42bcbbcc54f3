"""Answers in free text and what became of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner
from app.grading.levels import Level


class RubricAnswer(Base):
    """One answer: `judged` are the learner's own decisions on points the grader was unsure of, beside its `grade`.

    `second` is what a second grader made of it: asked, given with its verdicts, or failed; None where there was none.
    `source` is the digest of what the rubric said then.
    """

    __tablename__ = "rubric_answer"
    __table_args__ = (Index("ix_rubric_answer_newest", "learner_id", "rubric_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    rubric_id: Mapped[str] = mapped_column(String(20))
    revision: Mapped[int]
    answered_at: Mapped[datetime]
    text: Mapped[str] = mapped_column(Text)
    grade: Mapped[dict[str, Any]]
    judged: Mapped[dict[str, Any]]
    score: Mapped[float]
    level: Mapped[Level] = mapped_column(String(20))
    second: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    source: Mapped[str | None] = mapped_column(String(64))
