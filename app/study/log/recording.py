"""Writing the review log and the states that follow from it: an answer, and taking it back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, cast

from sqlalchemy import Table, bindparam, insert, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from app.content.cards import Card
from app.core.days import DAY_STARTS_HOUR
from app.core.errors import DomainError, Stale
from app.core.moment import Moment
from app.study import queries
from app.study.fsrs import parameters, scheduling
from app.study.log.replaying import recompute
from app.study.models import CardState, ParameterSet, Review
from app.study.policy import Policy, find_plan
from app.study.queries import State

ANSWER, PLACEMENT, IMPORT = "review", "placement", "import"

# Plain statements: the ORM's unit of work takes longer over an answer than the database takes to keep it.
_LOG, _STATE = cast(Table, Review.__table__), cast(Table, CardState.__table__)
_APPEND, _MEET = insert(_LOG), insert(_STATE)
_ADVANCE = update(_STATE).where(
    _STATE.c.learner_id == bindparam("of_learner"),
    _STATE.c.card_id == bindparam("of_card"),
    _STATE.c.version == bindparam("read_version"),
)


class Given(NamedTuple):
    """What the learner gave: the level they pressed, for which showing, and what was typed and found of it."""

    level: int
    version: int | None
    elapsed_milliseconds: int | None = None
    seed: int | None = None
    answer: str | None = None
    verdict: str | None = None
    request_key: str | None = None


class Recorded(NamedTuple):
    """A line of the log as it was written, and how often its card was forgotten with it."""

    id: int
    learner_id: int
    card_id: str
    revision: int
    level: int
    rating: int
    verdict: str | None
    repetition: int
    reviewed_at: datetime
    due_at: datetime
    memory_before: Mapping[str, object] | None
    memory_after: Mapping[str, object]
    parameters_id: str
    lapses: int


def must_be_shown(state: State | None, card_id: str, version: int) -> None:
    """Raises Stale where `version` is not how the card stands."""
    if (state.version if state else 0) != version:
        raise Stale(f"{card_id} was already answered, here or in another tab. Nothing was counted twice.")


def memory_of(
    session: Session, learner_id: int, state: State | None, card: Card, policy: Policy
) -> Mapping[str, object] | None:
    """What is remembered of the card as it reads now and by the parameters in force.

    A new revision means something else and is learned anew. Where the parameters changed since the last review, the
    memory is computed again from the card's history.
    """
    if state is None or state.memory is None or state.revision != card.head.revision:
        return None
    if state.parameters_id == policy.parameters_id:
        return state.memory
    history = queries.list_history(session, learner_id, card.id)
    return recompute([each for each in history if each.revision == state.revision], policy.parameters)


def record(
    session: Session,
    learner_id: int,
    card: Card,
    state: State | None,
    given: Given,
    memory: Mapping[str, object] | None,
    outcome: scheduling.Outcome,
    policy: Policy,
    moment: Moment,
    kind: str = ANSWER,
) -> Recorded:
    """Append what was `given` to the log, with all it takes to replay it, and bring the state to it.

    Raises Stale where another tab was faster.
    """
    entry = {
        **given._asdict(),
        "learner_id": learner_id,
        "card_id": card.id,
        "revision": card.head.revision,
        "kind": kind,
        "cluster": card.head.cluster,
        "rating": outcome.rating,
        "repetition": state.reviews if state else 0,
        "phase": scheduling.phase_of(memory) if kind == ANSWER else scheduling.NOT_REVIEWED,
        "previous_id": state.last_review_id if state and memory is not None else None,
        "reviewed_at": moment.now,
        "due_at": outcome.due_at,
        "memory_before": memory,
        "memory_after": outcome.memory,
        "time_zone": str(moment.zone),
        "day_starts_hour": DAY_STARTS_HOUR,
        "scheduler": scheduling.SCHEDULER_NAME,
        "parameters_id": policy.parameters_id,
        "desired_retention": policy.desired_retention,
    }
    lapses = (state.lapses if state else 0) + outcome.lapsed
    try:
        _keep_parameters(session, learner_id, policy, moment.now)
        appended = session.connection().execute(_APPEND, entry).inserted_primary_key
        assert appended is not None, "one row was inserted"
        fields = {name: entry[name] for name in Recorded._fields[1:-1]}
        made = Recorded(id=appended[0], lapses=lapses, **fields)
        _advance(session, state, made)
    except IntegrityError:
        raise _taken(card.id) from None
    return made


def undo(session: Session, learner_id: int, now: datetime) -> str:
    """Take back the newest review that stands; returns its card. Raises DomainError when there is none.

    A placement is taken back whole. The log keeps what was undone, marked; the state is what the log says without it.
    """
    review = queries.find_last_review(session, learner_id)
    if review is None:
        raise DomainError("There is no answer to take back.")
    together = [review] if review.kind != PLACEMENT else queries.list_made_together(session, review)
    ids = [each.id for each in together]
    marked = session.execute(update(Review).where(Review.id.in_(ids), Review.undone_at.is_(None)).values(undone_at=now))
    if marked.rowcount != len(ids):  # type: ignore[attr-defined]
        raise Stale("That answer was already taken back.")
    planned = find_plan(session, learner_id) is not None
    for each in together:
        state = queries.load_state(session, learner_id, each.card_id)
        assert state is not None, "a review without a state cannot have been stored"
        rebuild(state, queries.list_history(session, learner_id, each.card_id))
        if planned and state.available_at is not None and not state.buried_until:
            state.available_at = min(state.available_at, now)  # the plan may have brought it forward: show it again
    try:
        session.flush()
    except StaleDataError:
        raise Stale(f"{review.card_id} changed in another tab just now. Nothing was taken back.") from None
    return review.card_id


def rebuild(state: CardState, history: list[Review]) -> None:
    """Bring a state to what its card's standing reviews say; marks stay."""
    state.reviews = len(history)
    state.lapses = sum(scheduling.is_lapse(each.memory_before, each.rating) for each in history)
    if history:
        for name, value in _left_by(history[-1]).items():
            setattr(state, name, value)
        set_available(state)
        return
    state.memory = state.due_at = state.available_at = state.last_review_at = None
    state.last_review_id = state.parameters_id = None
    state.is_learning, state.position = False, 0


def set_available(state: CardState) -> None:
    """Bring `available_at` to what else the state says."""
    state.available_at = available_at(state.due_at, state.suspended_at is not None, state.buried_until)


def available_at(due_at: datetime | None, is_suspended: bool, buried_until: datetime | None) -> datetime | None:
    """When a card may be shown follows from when it is due and from what the learner hung on it."""
    if due_at is None or is_suspended:
        return None
    return max(due_at, buried_until) if buried_until else due_at


def _advance(session: Session, state: State | None, made: Recorded) -> None:
    """The state after a review, written where the version still is what was read."""
    values = _left_by(made) | {"lapses": made.lapses, "buried_until": None}
    is_suspended = state is not None and state.suspended_at is not None
    values["available_at"] = available_at(made.due_at, is_suspended, None)
    if state is None:
        key = {"learner_id": made.learner_id, "card_id": made.card_id}
        session.connection().execute(_MEET, {**key, **values, "reviews": 1, "version": 1})
        return
    read = {"of_learner": made.learner_id, "of_card": made.card_id, "read_version": state.version}
    values |= {"reviews": state.reviews + 1, "version": state.version + 1}
    if session.connection().execute(_ADVANCE, {**read, **values}).rowcount != 1:
        raise _taken(made.card_id)


def _left_by(review: Review | Recorded) -> dict[str, object]:
    """The columns of a state that say what memory a review left, but when it may be shown."""
    return {
        "revision": review.revision,
        "memory": review.memory_after,
        "is_learning": scheduling.is_learning(review.memory_after),
        "due_at": review.due_at,
        "last_review_at": review.reviewed_at,
        "last_review_id": review.id,
        "parameters_id": review.parameters_id,
        "position": scheduling.fuzz_seed(review.card_id, review.repetition)[1],
    }


def _taken(card_id: str) -> Stale:
    return Stale(f"{card_id} was already answered in another tab. Nothing was counted twice.")


def _keep_parameters(session: Session, learner_id: int, policy: Policy, now: datetime) -> None:
    """The values behind an id of the log stay reachable."""
    if policy.parameters_id == parameters.DEFAULT_ID:
        return
    if session.get(ParameterSet, (learner_id, policy.parameters_id)) is None:
        session.add(
            ParameterSet(
                learner_id=learner_id, id=policy.parameters_id, parameters=list(policy.parameters), created_at=now
            )
        )
        session.flush()
