"""What pages depend on that show the learner's day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends
from sqlalchemy.orm import Session

from app.content.web import Content
from app.core.web import Db, LearnerId, Now
from app.study.exam import preparation


def _day(database: Db, content: Content, learner: LearnerId, now: Now) -> Iterator[Session]:
    """A sweep chooses each day's cards; who comes before it need not wait for it."""
    with database.read() as session:
        if not preparation.is_unplanned(session, learner, now):
            yield session
            return
    with database.write() as session:
        preparation.plan_day(session, learner, content, now)
    with database.read() as session:
        yield session


# A session that reads, after the day's cards were chosen where the learner prepares for a date.
DaySession = Annotated[Session, Depends(_day, scope="function")]
