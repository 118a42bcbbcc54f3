"""A learner's memory of each card, the log it follows from, the date they prepare for, their own parameters."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Date, Float, ForeignKey, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner


class CardState(Base):
    """A card as this learner remembers it. `version` rises with every change; a stale one changes nothing.

    No memory means a new card: one whose only review was undone, or that was only flagged, noted or suspended.
    `available_at` is when it may be shown: the due date, later while it is buried, never (null) while it is suspended.
    `position` orders what is due at the same time; it follows from card and repetition, so that decks mix.
    """

    __tablename__ = "card_state"
    __table_args__ = (
        Index("ix_card_state_due", "learner_id", "due_at"),
        Index("ix_card_state_available", "learner_id", "is_learning", "available_at", "position"),
    )

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    card_id: Mapped[str] = mapped_column(String(20), primary_key=True)
    revision: Mapped[int]
    version: Mapped[int] = mapped_column()
    memory: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    is_learning: Mapped[bool] = mapped_column(default=False)
    due_at: Mapped[datetime | None]
    last_review_at: Mapped[datetime | None]
    reviews: Mapped[int] = mapped_column(default=0)
    lapses: Mapped[int] = mapped_column(default=0)
    available_at: Mapped[datetime | None]
    position: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    parameters_id: Mapped[str | None] = mapped_column(String(60))
    last_review_id: Mapped[int | None]
    suspended_at: Mapped[datetime | None]
    buried_until: Mapped[datetime | None]
    flagged_at: Mapped[datetime | None]
    note: Mapped[str | None] = mapped_column(Text)

    # every UPDATE says "where version is what was read" and fails when somebody else was faster
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's protocol


class MetBlock(Base):
    """That there is a state of every card of a block (`Catalogue.card_blocks`), so that none of them is asked for.

    It stays true: no state is ever deleted, and a block of other cards has another name. A missing row says nothing.
    """

    __tablename__ = "met_block"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    block: Mapped[str] = mapped_column(String(32), primary_key=True)


class Review(Base):
    """One answer to one card. Append-only: undo marks, it never deletes. The log alone rebuilds every state.

    `level` is what the learner pressed, `rating` what the scheduler was told: Again where the machine's `verdict` on
    the answer is wrong, and not Easy where it is right but came very late. `kind` is `review`, `placement` (a card that
    starts further along) or `import` (its `memory_after` comes from elsewhere and is taken as it is).

    `previous_id` is the card's review before this one, if this one built on it: with undo, the log is a tree.
    `phase` is what the card was (0 new, 1 learning, 2 known, 3 relearning), `version` the showing that was answered,
    `repetition` how many reviews of the card stood: with the card's id it seeds the fuzz.
    """

    __tablename__ = "review"
    __table_args__ = (
        Index("ix_review_day", "learner_id", "reviewed_at", "undone_at", "cluster", "phase"),
        Index("ix_review_card", "learner_id", "card_id", "id"),
        Index(
            "ix_review_standing",
            "learner_id",
            "id",
            sqlite_where=text("undone_at IS NULL"),
            postgresql_where=text("undone_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    card_id: Mapped[str] = mapped_column(String(20))
    revision: Mapped[int]
    level: Mapped[int]
    rating: Mapped[int]
    reviewed_at: Mapped[datetime]
    elapsed_milliseconds: Mapped[int | None]
    seed: Mapped[int | None] = mapped_column(BigInteger)
    answer: Mapped[str | None] = mapped_column(Text)
    verdict: Mapped[str | None] = mapped_column(String(10))
    due_at: Mapped[datetime]
    memory_before: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    memory_after: Mapped[dict[str, Any]]
    time_zone: Mapped[str] = mapped_column(String(60))
    day_starts_hour: Mapped[int]
    scheduler: Mapped[str] = mapped_column(String(60))
    parameters_id: Mapped[str] = mapped_column(String(60))
    undone_at: Mapped[datetime | None]
    kind: Mapped[str] = mapped_column(String(20), default="review", server_default="review")
    phase: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    cluster: Mapped[str | None] = mapped_column(String(80))
    version: Mapped[int | None]
    repetition: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    previous_id: Mapped[int | None]
    desired_retention: Mapped[float] = mapped_column(Float, default=0.9, server_default=text("0.9"))
    request_key: Mapped[str | None] = mapped_column(String(200))


class ParameterSet(Base):
    """The values behind a `parameters_id` of the log. The id follows from the values (app.study.parameters)."""

    __tablename__ = "parameter_set"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    id: Mapped[str] = mapped_column(String(60), primary_key=True)
    parameters: Mapped[list[Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]


class StudySettings(Base):
    """What a learner chose for their days. No row means the defaults."""

    __tablename__ = "study_settings"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    new_per_day: Mapped[int]
    reviews_per_day: Mapped[int | None]
    desired_retention: Mapped[float] = mapped_column(Float)
    updated_at: Mapped[datetime]


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
