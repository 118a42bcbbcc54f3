"""Writing own cards, and saying where a card is wrong."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from app.core.errors import DomainError, NotFound, Stale, Violation
from app.core.texts import storable
from app.decks import queries
from app.decks.cards import Stored, card_id_of
from app.decks.drafts import Draft, checked, clean_line, clean_text, problems, tidy
from app.decks.models import CardReport, OwnCard
from app.decks.queries import Filter
from app.decks.shelf import touch

MOST_CARDS = 50_000
LISTED = 100
LONGEST_GUID = 60  # of a card made here
LONGEST_REPORT = 4000

stored_of = queries.stored_of  # what other rooms read of a row


@dataclass(frozen=True)
class Listing:
    """Own cards as a page lists them."""

    cards: Sequence[OwnCard]
    matching: int
    decks: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.decks.values())


def list_cards(session: Session, learner_id: int, wanted: Filter) -> Listing:
    """The newest cards that fit `wanted`, and the decks there are."""
    cards, matching = queries.search_own(session, learner_id, wanted, LISTED)
    return Listing(cards, matching, queries.count_by_deck(session, learner_id))


def all_rows(session: Session, learner_id: int, deck: str = "") -> list[OwnCard]:
    """Every own card, or those of one deck."""
    return [row for row in queries.list_own(session, learner_id) if deck in ("", row.deck)]


def all_stored(session: Session, learner_id: int, deck: str = "") -> list[Stored]:
    """The same as files are written from them."""
    return [stored_of(row) for row in all_rows(session, learner_id, deck)]


def count(session: Session, learner_id: int) -> int:
    """How many own cards there are."""
    query = select(func.count()).select_from(OwnCard).where(OwnCard.learner_id == learner_id)
    return session.scalar(query) or 0


def find(session: Session, learner_id: int, card_id: str) -> OwnCard:
    """Raises NotFound."""
    row = queries.find_own(session, learner_id, card_id)
    if row is None:
        raise NotFound(f"There is no own card {card_id!r}. It may have been deleted.")
    return row


def add(session: Session, learner_id: int, draft: Draft, now: datetime, guid: str | None = None) -> OwnCard:
    """Store a new card; the same one again is the one that is there. Raises DomainError with what is wrong by field."""
    ready = checked(draft)
    known_by = clean_line(guid or "")[:LONGEST_GUID] or secrets.token_urlsafe(12)
    present = queries.find_own(session, learner_id, card_id_of(known_by))
    if present is not None and stored_of(present).draft == ready:
        return present
    if present is not None:
        raise Stale("This card was added already, here or in another tab. What you typed is still below.")
    refuse_too_many(session, learner_id, 1)
    row = OwnCard(
        learner_id=learner_id,
        card_id=card_id_of(known_by),
        guid=known_by,
        created_at=now,
        **queries.values_of(ready, now),
    )
    session.add(row)
    touch(session, learner_id)
    session.flush()
    return row


def edit(
    session: Session, learner_id: int, card_id: str, draft: Draft, version: int, now: datetime, *, anew: bool = False
) -> OwnCard:
    """Change a card as it was shown at `version`; `anew` says that it means something else now.

    Raises NotFound, Stale, or DomainError with what is wrong by field.
    """
    row = find(session, learner_id, card_id)
    ready = checked(draft)
    if row.version != version:
        raise Stale("This card was changed in the meantime, here or in another tab. What you typed is still below.")
    for name, value in queries.values_of(ready, now).items():
        setattr(row, name, value)
    row.revision += int(anew)
    _flush_change(session, learner_id)
    return row


class Importable(Protocol):
    """A card of a file. Without `modified_at` it is as new as the import."""

    @property
    def guid(self) -> str: ...
    @property
    def draft(self) -> Draft: ...
    @property
    def revision(self) -> int: ...
    @property
    def modified_at(self) -> datetime | None: ...


@dataclass
class StoredCounts:
    """What became of the cards of a file; `kept` are those that were changed here later than there."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0


def store_all(session: Session, learner_id: int, cards: Iterable[Importable], now: datetime) -> StoredCounts:
    """Store checked cards by GUID: new ones are added, known ones updated in place where theirs is the newer text."""
    by_id = {card_id_of(card.guid): card for card in cards}
    present = {row.card_id: row for row in queries.list_own(session, learner_id, by_id)}
    refuse_too_many(session, learner_id, len(by_id) - len(present))
    counts = StoredCounts()
    for index, (card_id, card) in enumerate(by_id.items()):
        row = present.get(card_id)
        at = card.modified_at or now
        if row is None:
            values = queries.values_of(card.draft, at)
            session.add(
                OwnCard(
                    learner_id=learner_id,
                    card_id=card_id,
                    guid=card.guid,
                    revision=card.revision,
                    created_at=now + timedelta(microseconds=index),
                    **values,
                )
            )
            counts.added += 1
        elif stored_of(row).draft == card.draft:
            counts.unchanged += 1
        elif int(at.timestamp()) > int(row.updated_at.timestamp()) or card.modified_at is None:
            for name, value in queries.values_of(card.draft, at).items():
                setattr(row, name, value)
            row.revision = max(row.revision, card.revision)
            counts.updated += 1
        else:
            counts.kept += 1
    if counts.added or counts.updated:
        _flush_change(session, learner_id)
    return counts


def remove(session: Session, learner_id: int, card_id: str) -> str:
    """Delete a card; returns its title. What was answered stays in the log, and counts again if the card returns."""
    row = find(session, learner_id, card_id)
    title = row.title
    session.delete(row)
    _flush_change(session, learner_id)
    return title


def remove_deck(session: Session, learner_id: int, deck: str, cards: int) -> int:
    """Delete a deck's cards, where they are as many as were shown. Raises Stale, NotFound."""
    present = queries.count_by_deck(session, learner_id).get(deck, 0)
    if not present:
        raise NotFound(f"You have no deck called {deck!r}.")
    if present != cards:
        raise Stale(f"{deck} has {present} cards by now, not {cards}. Nothing was deleted.")
    session.execute(delete(OwnCard).where(OwnCard.learner_id == learner_id, OwnCard.deck == deck))
    _flush_change(session, learner_id)
    return present


def _flush_change(session: Session, learner_id: int) -> None:
    touch(session, learner_id)
    try:
        session.flush()
    except StaleDataError:
        raise Stale("This card was changed in another tab just now. Nothing was changed here.") from None


def refuse_too_many(session: Session, learner_id: int, more: int) -> None:
    """Raises DomainError when `more` cards are more than one learner can have."""
    present = count(session, learner_id)
    if present + more > MOST_CARDS:
        raise DomainError(
            f"You have {present:,} own cards; {more:,} more are too many.",
            [Violation("cards", present + more, "These are too many.", f"up to {MOST_CARDS:,} own cards")],
        )


def preview(draft: Draft) -> tuple[Stored, list[Violation]]:
    """The card as it would be stored, and what keeps it from being."""
    tidied = tidy(draft)
    return Stored("preview", tidied), list(problems(tidied))


def report_error(
    session: Session, learner_id: int, card_id: str, revision: int, text: str, now: datetime
) -> CardReport:
    """Note an error in a card. Raises DomainError."""
    said = clean_text(storable(text))
    if not said or len(said) > LONGEST_REPORT:
        message = "It says nothing." if not said else f"{len(said):,} characters are too many."
        raise DomainError(
            "The error was not noted.",
            [Violation("text", said[:40], message, f"what is wrong, in up to {LONGEST_REPORT:,} characters")],
        )
    report = CardReport(learner_id=learner_id, card_id=card_id, revision=revision, text=said, created_at=now)
    session.add(report)
    session.flush()
    return report


def list_reports(session: Session, learner_id: int) -> list[CardReport]:
    return queries.list_reports(session, learner_id)


def remove_report(session: Session, learner_id: int, report_id: int) -> None:
    """Raises NotFound."""
    found = queries.find_report(session, learner_id, report_id)
    if found is None:
        raise NotFound(f"There is no report {report_id}.")
    session.delete(found)
    session.flush()


def reports_text(reports: Sequence[CardReport]) -> str:
    """Reported errors as JSON lines, oldest first."""
    return "".join(
        json.dumps(
            {
                "card_id": each.card_id,
                "revision": each.revision,
                "text": each.text,
                "reported_at": each.created_at.isoformat(),
            },
            ensure_ascii=False,
        )
        + "\n"
        for each in reversed(reports)
    )
