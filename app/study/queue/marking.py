"""What a learner hangs on a card: suspended, buried until tomorrow, flagged, a note. None of it touches a memory."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from app.content.cards import Card
from app.core.days import study_day
from app.core.errors import DomainError, Stale, Violation
from app.core.moment import Moment
from app.core.texts import storable
from app.study import queries
from app.study.log import recording
from app.study.models import CardState

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

LONGEST_NOTE = 2000
ACTIONS = ("suspend", "unsuspend", "bury", "unbury", "flag", "unflag", "note")


def mark(
    session: Session, learner_id: int, catalogue: Catalogue, card_id: str, action: str, moment: Moment, note: str = ""
) -> str:
    """Do `action` to a card; returns what to say about it. Raises NotFound, DomainError."""
    card = queries.find_card(session, learner_id, catalogue, card_id)
    if action not in ACTIONS:
        accepted = ", ".join(ACTIONS)
        raise DomainError("Nothing was changed.", [Violation("action", action, "There is no such action.", accepted)])
    state = queries.load_state(session, learner_id, card_id) or _untouched(session, learner_id, card)
    if action in ("flag", "unflag", "note"):
        return _annotate(session, state, action, note, moment.now)
    if action == "suspend":
        state.suspended_at = moment.now
    elif action == "unsuspend":
        state.suspended_at = None
    else:
        state.buried_until = study_day(moment)[1] if action == "bury" else None
    recording.set_available(state)
    try:
        session.flush()
    except StaleDataError:
        raise Stale(f"{card_id} changed in another tab just now. Nothing was changed here.") from None
    return {
        "suspend": f"{card_id} is suspended and will not come until you bring it back.",
        "unsuspend": f"{card_id} comes again when it is due.",
        "bury": f"{card_id} waits until tomorrow.",
        "unbury": f"{card_id} may come today.",
    }[action]


def _annotate(session: Session, state: CardState, action: str, note: str, now: datetime) -> str:
    """Flags and notes leave the version as it is: a page that shows the card may still rate it."""
    text = storable(note).replace("\r\n", "\n").strip()
    if len(text) > LONGEST_NOTE:
        accepted = f"up to {LONGEST_NOTE:,} characters"
        raise DomainError("The note was not kept.", [Violation("note", "…", f"It has {len(text):,}.", accepted)])
    values = {"note": text or None} if action == "note" else {"flagged_at": now if action == "flag" else None}
    session.execute(
        update(CardState)
        .where(CardState.learner_id == state.learner_id, CardState.card_id == state.card_id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    session.refresh(state)
    if action == "note":
        return f"The note on {state.card_id} is {'kept' if text else 'gone'}."
    return f"{state.card_id} is {'flagged' if action == 'flag' else 'not flagged any more'}."


def _untouched(session: Session, learner_id: int, card: Card) -> CardState:
    """A card that was never answered gets a state to hang marks on: of version 0, as it is shown now."""
    table = CardState.__table__
    values = {
        "learner_id": learner_id,
        "card_id": card.id,
        "revision": card.head.revision,
        "version": 0,
        "is_learning": False,
        "reviews": 0,
        "lapses": 0,
        "position": 0,
    }
    try:
        with session.begin_nested():
            session.connection().execute(table.insert().values(**values))  # type: ignore[attr-defined]
    except IntegrityError:
        pass  # another tab was faster: there is a state now
    state = session.get(CardState, (learner_id, card.id), populate_existing=True)
    assert state is not None
    return state
