"""What was guessed before anything was learnt."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner


class FirstGuess(Base):
    """A learner's first prediction, made once and never changed; without bytes where the question was skipped."""

    __tablename__ = "first_guess"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    guess_bytes: Mapped[float | None]
    guessed_at: Mapped[datetime]
