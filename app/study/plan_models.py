"""What a learner prepares for, and parameters fitted to their own reviews."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, Date, Float, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner


class InterviewPlan(Base):
    """The day of an interview and how to get there. One per learner; setting it again replaces it.

    `strategy` is None where plain FSRS does best. `card_order` is the order new cards are introduced in. `planned_day`
    is the study day (ordinal of its date) whose cards were chosen last, `new_today` how many of them are new.
    """

    __tablename__ = "interview_plan"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    day: Mapped[date] = mapped_column(Date)
    minutes_per_day: Mapped[int]
    started_on: Mapped[date] = mapped_column(Date)
    set_at: Mapped[datetime]
    strategy: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    card_order: Mapped[list[Any]]
    planned_day: Mapped[int | None]
    new_today: Mapped[int] = mapped_column(default=0)


class ParameterFit(Base):
    """One fit of FSRS's parameters to a learner's reviews, from being asked for to its comparison with the default.

    Losses are mean log losses over `held_out` later reviews the fit did not see, `difference_error` the standard error
    of their mean difference. `is_used` says whether the learner's cards are scheduled with it.
    """

    __tablename__ = "parameter_fit"
    __table_args__ = (
        Index("ix_parameter_fit_learner", "learner_id", "id"),
        Index(
            "uq_parameter_fit_open",
            "learner_id",
            unique=True,
            sqlite_where=text("finished_at IS NULL"),
            postgresql_where=text("finished_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    asked_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    reviews: Mapped[int]
    held_out: Mapped[int | None]
    parameters: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    parameters_id: Mapped[str | None] = mapped_column(String(60))
    default_loss: Mapped[float | None] = mapped_column(Float)
    fitted_loss: Mapped[float | None] = mapped_column(Float)
    difference_error: Mapped[float | None] = mapped_column(Float)
    is_used: Mapped[bool] = mapped_column(default=False)
    failure: Mapped[str | None] = mapped_column(String(400))
