"""Tables that belong to no single room."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base

LOCAL_LEARNER = 1


class Learner(Base):
    """A person who learns. Local mode has one, created by the first migration."""

    __tablename__ = "learner"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    created_at: Mapped[datetime]


class IdempotentReply(Base):
    """What was answered to a POST with an Idempotency-Key: the same key gets the same answer again."""

    __tablename__ = "idempotent_reply"

    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id), primary_key=True)
    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    request: Mapped[str] = mapped_column(String(64))
    reply: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]


class ItemSource(Base):
    """What an item's file said when somebody answered it, once for each wording: history shows it as it was asked."""

    __tablename__ = "item_source"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    item_id: Mapped[str] = mapped_column(String(20))
    source: Mapped[dict[str, Any]]
    kept_at: Mapped[datetime]
