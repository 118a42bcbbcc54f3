"""Items as they were asked: what a file said when it was answered is kept, so that history outlives its revisions."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.content.problem_schemas import Problem
from app.content.rubric_schemas import RubricFile
from app.core.models import ItemSource

T = TypeVar("T", Problem, RubricFile)


def digest_of(item: Problem | RubricFile) -> str:
    """The SHA-256 of everything the item's file says."""
    text = json.dumps(_source(item), ensure_ascii=False)  # in the file's order: what `let` names builds up
    return hashlib.sha256(text.encode()).hexdigest()


def keep_source(session: Session, item: Problem | RubricFile, now: datetime) -> str:
    """Keep what `item` says, unless it is kept already; returns its digest."""
    digest = digest_of(item)
    if session.get(ItemSource, digest) is None:
        try:
            with session.begin_nested():
                session.add(ItemSource(digest=digest, item_id=item.id, source=_source(item), kept_at=now))
        except IntegrityError:  # somebody else was faster with the same words
            pass
    return digest


def item_then(session: Session, item: T, digest: str | None) -> T:
    """`item` as it was when its digest was `digest`; as it is now where that is unknown or cannot be read any more."""
    if digest is None or digest == digest_of(item):
        return item
    kept = session.get(ItemSource, digest)
    try:
        then = item if kept is None else type(item).model_validate(kept.source)
    except ValidationError:  # of a release whose files had other fields
        return item
    if isinstance(then, RubricFile) and isinstance(item, RubricFile):
        then.read_with(item.knowledge)
    return then


def _source(item: Problem | RubricFile) -> dict[str, object]:
    return item.model_dump(mode="json", exclude_defaults=True)
