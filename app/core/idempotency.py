"""The same Idempotency-Key gets the same reply: a double click or a retried request does its work once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.errors import DomainError
from app.core.models import IdempotentReply

MAX_KEY_LENGTH = 200
KEPT_FOR = timedelta(days=2)


class KeyMisused(DomainError):
    """An Idempotency-Key that was used for something else."""

    code = "idempotency-key-misused"


def once(
    session: Session,
    learner_id: int,
    key: str | None,
    path: str,
    now: datetime,
    work: Callable[[], dict[str, Any]],
    body: object = None,
) -> tuple[dict[str, Any], bool]:
    """Run `work` unless `key` was seen before; returns the reply and whether it is a repeated one.

    The key is claimed before the work is done: a second request with it waits for the first to commit, on both
    databases, and then finds its reply. Without a key, `work` runs. Raises KeyMisused when the key came with another
    path or body before.
    """
    if not key:
        return work(), False
    if len(key) > MAX_KEY_LENGTH:
        raise DomainError(f"Idempotency-Key: {len(key)} characters are too many. Accepted: up to {MAX_KEY_LENGTH}.")
    asked = hashlib.sha256(f"{path}\n{json.dumps(body, sort_keys=True, default=str)}".encode()).hexdigest()
    claim = IdempotentReply(learner_id=learner_id, key=key, request=asked, reply=None, created_at=now)
    try:
        with session.begin_nested():
            session.add(claim)
    except IntegrityError:
        kept = session.get(IdempotentReply, (learner_id, key), populate_existing=True)
        if kept is None or kept.request != asked:
            raise KeyMisused(f"Idempotency-Key {key!r} was already used for something else. Send a new one.") from None
        return kept.reply or {}, True
    claim.reply = work()
    session.flush()
    return claim.reply, False


def forget_old(session: Session, now: datetime) -> None:
    """Keys are for retries, not for ever."""
    session.execute(delete(IdempotentReply).where(IdempotentReply.created_at < now - KEPT_FOR))
