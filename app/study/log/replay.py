"""The review log replayed: every memory computed again and compared bit for bit, or every state rebuilt from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import Text, cast, select
from sqlalchemy.orm import Session

from app.study import queries
from app.study.fsrs import parameters
from app.study.fsrs.parameters import Parameters
from app.study.fsrs.scheduling import KNOWN
from app.study.log import recording
from app.study.log.replaying import Checker, Entry, Mismatch
from app.study.models import CardState, Review

MOST_NAMED = 100
ROWS_AT_ONCE = 2000


class _State(NamedTuple):
    """A card's state as it is compared."""

    card_id: str
    revision: int
    memory: object
    is_learning: bool
    due_at: datetime | None
    last_review_at: datetime | None
    reviews: int
    lapses: int
    parameters_id: str | None
    last_review_id: int | None


@dataclass
class Report:
    """What a replay found. `told` holds the first of the mismatches."""

    reviews: int = 0
    cards: int = 0
    mismatches: int = 0
    named: list[Mismatch] = field(default_factory=list)

    def add(self, mismatch: Mismatch) -> None:
        self.mismatches += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(mismatch)


def verify(session: Session, learner_id: int) -> Report:
    """Check every entry of the log against those before it, and every state against the log. Changes nothing."""
    known: dict[str, Parameters | None] = {parameters.DEFAULT_ID: parameters.DEFAULT}

    def parameters_of(name: str) -> Parameters | None:
        if name not in known:
            found = queries.find_parameters(session, learner_id, name)
            known[name] = found if found and parameters.identify(found) == name else None
        return known[name]

    report, checker = Report(), Checker(parameters_of)
    states = {state.card_id: state for state in _states(session, learner_id)}
    for card_id, group in groupby(_entries(session, learner_id), key=attrgetter("card_id")):
        entries = list(group)
        report.reviews += len(entries)
        report.cards += 1
        for mismatch in checker.check_card(entries):
            report.add(mismatch)
        for mismatch in _check_state(states.pop(card_id, None), card_id, entries):
            report.add(mismatch)
    for state in states.values():
        if state.memory is not None:
            report.add(Mismatch(state.card_id, None, "memory", state.memory, "none: the log has no review of it"))
    return report


def rebuild(session: Session, learner_id: int) -> int:
    """Bring every state to what the log says; marks on cards stay. Returns how many states were not so before."""
    states = {state.card_id: state for state in queries.list_states(session, learner_id)}
    changed = 0
    for card_id, group in groupby(_standing_reviews(session, learner_id), key=attrgetter("card_id")):
        history = list(group)
        state = states.pop(card_id, None)
        if state is None:
            state = CardState(learner_id=learner_id, card_id=card_id)
            session.add(state)
        recording.rebuild(state, history)
        changed += session.is_modified(state)
    for state in states.values():
        recording.rebuild(state, [])
        changed += session.is_modified(state)
    session.flush()
    return changed


def _check_state(state: _State | None, card_id: str, entries: list[Entry]) -> Iterator[Mismatch]:
    standing = [entry for entry in entries if entry.undone_at is None]
    if not standing:
        if state is not None and state.memory is not None:
            yield Mismatch(card_id, None, "memory", state.memory, "none: every review was undone")
        return
    if state is None:
        yield Mismatch(card_id, None, "state", "none", f"that of review {standing[-1].id}")
        return
    last = standing[-1]
    lapses = sum(entry.phase == KNOWN and entry.rating == 1 for entry in standing)
    expected = _State(
        card_id,
        last.revision,
        last.memory_after,
        f'"state": {KNOWN},' not in last.memory_after,
        last.due_at,
        last.reviewed_at,
        len(standing),
        lapses,
        last.parameters_id,
        last.id,
    )
    if state != expected:
        for name, stored, wanted in zip(_State._fields, state, expected, strict=True):
            if stored != wanted:
                yield Mismatch(card_id, None, name, stored, wanted)


def _entries(session: Session, learner_id: int) -> Iterator[Entry]:
    """The log, card by card, each in the order it was written."""
    log = Review.__table__.c
    memories = ("memory_before", "memory_after")  # compared as the text that is stored, bit for bit
    columns = [cast(log[name], Text) if name in memories else log[name] for name in Entry._fields]
    query = select(*columns).where(log.learner_id == learner_id).order_by(log.card_id, log.id)
    rows = session.connection().execute(query, execution_options={"yield_per": ROWS_AT_ONCE})
    return map(Entry._make, rows)


def _states(session: Session, learner_id: int) -> Iterator[_State]:
    table = CardState.__table__.c
    columns = [cast(table.memory, Text) if name == "memory" else table[name] for name in _State._fields]
    return map(_State._make, session.connection().execute(select(*columns).where(table.learner_id == learner_id)))


def _standing_reviews(session: Session, learner_id: int) -> Iterator[Review]:
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.undone_at.is_(None))
        .order_by(Review.card_id, Review.id)
    )
    return iter(session.scalars(query))
