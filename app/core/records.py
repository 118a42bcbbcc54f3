"""Rows as JSON, column by column: what an export holds is what the database holds."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import inspect

from app.core.db import Base


def as_record(name: str, row: Base, at: datetime, without: Collection[str] = ()) -> dict[str, object]:
    """`row` with what it is a record of and the time it stands for; every column but those `without`."""
    names = [column.key for column in inspect(type(row)).column_attrs if column.key not in without]
    return {"record": name, "at": at.isoformat()} | {each: _plain(getattr(row, each)) for each in names}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
