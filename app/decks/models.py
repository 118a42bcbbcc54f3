"""Cards a learner wrote or imported, and errors a learner found in any card."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner


class OwnCard(Base):
    """A card of the learner's own, as it was typed. `guid` is its identity everywhere; `card_id` follows from it.

    `revision` rises when its meaning changed, `version` with every change; a stale one changes nothing.
    """

    __tablename__ = "own_card"
    __table_args__ = (Index("ix_own_card_deck", "learner_id", "deck"),)

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    card_id: Mapped[str] = mapped_column(String(20), primary_key=True)
    guid: Mapped[str] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(10))
    deck: Mapped[str] = mapped_column(String(200))
    title: Mapped[str] = mapped_column(String(200))
    tags: Mapped[list[Any]]
    sections: Mapped[dict[str, Any]]
    options: Mapped[list[Any]]
    source: Mapped[str] = mapped_column(String(200))
    revision: Mapped[int] = mapped_column(default=1)
    version: Mapped[int] = mapped_column()
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's protocol


class OwnShelf(Base):
    """What a learner's own cards are at, so that a process knows whether those it holds are still the newest."""

    __tablename__ = "own_shelf"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    state: Mapped[str] = mapped_column(String(16))


class CardReport(Base):
    """An error that a learner found in a card, with the revision it was found in."""

    __tablename__ = "card_report"
    __table_args__ = (Index("ix_card_report_learner", "learner_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    card_id: Mapped[str] = mapped_column(String(20))
    revision: Mapped[int]
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
