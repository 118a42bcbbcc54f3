"""All a learner's data: written out as JSON lines, or deleted. Both walk every table there is, so neither forgets one.

A table belongs to a learner by its `learner_id`, or by a foreign key to a table that does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, select, update
from sqlalchemy.orm import Session

from app.core.models import Learner
from app.models import METADATA

FORMAT = 1
CONFIRMATION = "delete"
LEARNER = Learner.__tablename__


def owned_tables() -> list[tuple[Table, ColumnElement[Any], tuple[Table, ...]]]:
    """Tables with rows of learners: the column that leads to the learner, and the tables on the way, parents first."""
    found: list[tuple[Table, ColumnElement[Any], tuple[Table, ...]]] = []
    for table in METADATA.sorted_tables:
        if table.name == LEARNER:
            continue
        way = _way(table, ())
        if way is not None:
            found.append((table, way[-1].c.learner_id if way else table.c.learner_id, way))
    return found


def export_lines(session: Session, learner_id: int, now: datetime) -> Iterator[str]:
    """Every row of the learner as a JSON line, after one that says what the file is."""
    yield _line({"record": "export", "format": FORMAT, "at": now, "learner_id": learner_id})
    learner = session.execute(select(Learner.__table__).where(Learner.id == learner_id)).mappings().one()
    yield _line({"record": LEARNER, **learner})
    for table, owner, way in owned_tables():
        query = select(table).where(owner == learner_id)
        for child, parent in pairwise((table, *way)):
            query = query.where(_link(child, parent))
        rows = session.execute(query.execution_options(yield_per=1000)).mappings()
        for row in rows:
            yield _line({"record": table.name, **row})


def delete_everything(session: Session, learner_id: int, now: datetime) -> list[int]:
    """Delete every row of the learner, children first; returns the ids of their runs, whose folders go next.

    The learner's own row stays, as empty as on the first day: local mode always has one.
    """
    run = METADATA.tables["run"]
    runs = list(session.scalars(select(run.c.id).where(run.c.learner_id == learner_id)))
    for table, owner, way in reversed(owned_tables()):
        if not way:
            session.execute(delete(table).where(owner == learner_id))
            continue
        mine = select(way[0].c[_target(table, way[0])]).where(owner == learner_id)
        for before, parent in pairwise(way):
            mine = mine.where(_link(before, parent))
        session.execute(delete(table).where(table.c[_source(table, way[0])].in_(mine)))
    session.execute(update(Learner).where(Learner.id == learner_id).values(name="You", created_at=now))
    session.expire_all()
    return runs


def delete_run_folders(folder: Path, run_ids: list[int]) -> None:
    """What runs left on disk."""
    for run_id in run_ids:
        for each in folder.glob(f"{run_id}-*"):
            shutil.rmtree(each, ignore_errors=True)


def _way(table: Table, seen: tuple[Table, ...]) -> tuple[Table, ...] | None:
    """Tables from `table` (exclusive) to the one that names the learner; None where none does."""
    if "learner_id" in table.c:
        return ()
    for key in table.foreign_keys:
        parent = key.column.table
        if parent is not table and parent not in seen:
            further = _way(parent, (*seen, table))
            if further is not None:
                return (parent, *further)
    return None


def _source(child: Table, parent: Table) -> str:
    return next(key.parent.name for key in child.foreign_keys if key.column.table is parent)


def _target(child: Table, parent: Table) -> str:
    return next(key.column.name for key in child.foreign_keys if key.column.table is parent)


def _link(child: Table, parent: Table) -> ColumnElement[bool]:
    return child.c[_source(child, parent)] == parent.c[_target(child, parent)]


def _line(row: dict[str, object]) -> str:
    return json.dumps(row, default=_plain) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in an export")
