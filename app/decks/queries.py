"""Reading a learner's own cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Table, bindparam, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.decks.cards import Stored
from app.decks.drafts import Draft, DraftOption, clean_line
from app.decks.models import CardReport, OwnCard, OwnShelf

AT_ONCE = 500  # ids in one query: SQLite takes 32,766 parameters, older ones 999

_SHELF = cast(Table, OwnShelf.__table__)
_SHELF_STATE = select(_SHELF.c.state).where(_SHELF.c.learner_id == bindparam("of_learner"))
_RENEW_SHELF = update(_SHELF).where(_SHELF.c.learner_id == bindparam("of_learner"))

Stamp = tuple[int, datetime]  # version and time: two equal ones are the same text, even if one was rolled back


@dataclass(frozen=True)
class Filter:
    """Which own cards are listed."""

    text: str = ""
    deck: str = ""
    tag: str = ""


def find_shelf_state(session: Session, learner_id: int) -> str | None:
    """Asked at every review: a plain statement, built once."""
    found: str | None = session.connection().execute(_SHELF_STATE, {"of_learner": learner_id}).scalar()
    return found


def put_shelf_state(session: Session, learner_id: int, state: str) -> None:
    values = {"of_learner": learner_id, "state": state}
    if session.connection().execute(_RENEW_SHELF, values).rowcount == 0:
        session.connection().execute(insert(_SHELF), {"learner_id": learner_id, "state": state})


def find_own(session: Session, learner_id: int, card_id: str) -> OwnCard | None:
    return session.get(OwnCard, (learner_id, card_id))


def list_versions(session: Session, learner_id: int) -> Sequence[tuple[str, Stamp]]:
    """Id and stamp of every own card, in the order they were made."""
    query = (
        select(OwnCard.card_id, OwnCard.version, OwnCard.updated_at)
        .where(OwnCard.learner_id == learner_id)
        .order_by(OwnCard.created_at, OwnCard.card_id)
    )
    return [(card_id, (version, updated_at)) for card_id, version, updated_at in session.execute(query)]


def list_own(session: Session, learner_id: int, wanted: Iterable[str] | None = None) -> list[OwnCard]:
    """Own cards, those with the `wanted` ids or all, in the order they were made."""
    query = select(OwnCard).where(OwnCard.learner_id == learner_id).order_by(OwnCard.created_at, OwnCard.card_id)
    if wanted is None:
        return list(session.scalars(query))
    ids = list(wanted)
    return [
        row
        for start in range(0, len(ids), AT_ONCE)
        for row in session.scalars(query.where(OwnCard.card_id.in_(ids[start : start + AT_ONCE])))
    ]


def search_own(session: Session, learner_id: int, wanted: Filter, limit: int) -> tuple[list[OwnCard], int]:
    """The newest `limit` own cards that fit, and how many fit."""
    conditions = [OwnCard.learner_id == learner_id]
    if wanted.deck:
        conditions.append(OwnCard.deck == wanted.deck)
    for word in clean_line(wanted.text).split()[:6]:
        pattern = "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        texts = (
            OwnCard.title,
            OwnCard.card_id,
            *(OwnCard.sections[name].as_string() for name in ("Question", "Answer")),
        )
        conditions.append(or_(*(text.ilike(pattern, escape="\\") for text in texts)))
    query = select(OwnCard).where(*conditions).order_by(OwnCard.updated_at.desc(), OwnCard.card_id)
    if not wanted.tag:
        count = session.scalar(select(func.count()).select_from(OwnCard).where(*conditions)) or 0
        return list(session.scalars(query.limit(limit))), count
    tagged = [row for row in session.scalars(query) if wanted.tag in row.tags]
    return tagged[:limit], len(tagged)


def count_by_deck(session: Session, learner_id: int) -> dict[str, int]:
    """How many own cards each deck has, by name."""
    query = select(OwnCard.deck, func.count()).where(OwnCard.learner_id == learner_id).group_by(OwnCard.deck)
    return dict(sorted((name, count) for name, count in session.execute(query)))


def list_reports(session: Session, learner_id: int) -> list[CardReport]:
    """Every reported error, newest first."""
    query = select(CardReport).where(CardReport.learner_id == learner_id).order_by(CardReport.id.desc())
    return list(session.scalars(query))


def find_report(session: Session, learner_id: int, report_id: int) -> CardReport | None:
    found = session.get(CardReport, report_id)
    return found if found is not None and found.learner_id == learner_id else None


def stored_of(row: OwnCard) -> Stored:
    """A row as the pure part of the room knows it."""
    options = tuple(DraftOption(each["text"], each["correct"], each["message"]) for each in row.options)
    draft = Draft(row.kind, row.deck, row.title, tuple(row.tags), row.sections, options, row.source)
    return Stored(row.guid, draft, row.revision, row.version)


def values_of(draft: Draft, now: datetime) -> dict[str, object]:
    """A draft as the columns of a row."""
    return {
        "kind": draft.kind,
        "deck": draft.deck,
        "title": draft.title,
        "tags": list(draft.tags),
        "sections": dict(draft.sections),
        "source": draft.source,
        "updated_at": now,
        "options": [{"text": each.text, "correct": each.correct, "message": each.message} for each in draft.options],
    }
