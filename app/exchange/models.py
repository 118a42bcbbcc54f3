"""What became of the files a learner imported."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base
from app.core.models import Learner


class ImportReport(Base):
    """One imported file: what it brought, and what was left out and why."""

    __tablename__ = "import_report"
    __table_args__ = (Index("ix_import_report_learner", "learner_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    learner_id: Mapped[int] = mapped_column(ForeignKey(Learner.id))
    file_name: Mapped[str] = mapped_column(String(200))
    report: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
