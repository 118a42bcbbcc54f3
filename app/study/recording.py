"""Writing the review log and the states that follow from it: an answer, and taking it back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from app.content.cards import Card
from app.core.errors import DomainError, Stale
from app.core.zone import learner_zone
from app.study import parameters, plans, queries, roster, scheduling, spreading
from app.study.days import DAY_STARTS_HOUR
from app.study.models import CardState, ParameterSet, Review
from app.study.policy import Policy
from app.study.replaying import recompute

ANSWER, PLACEMENT, IMPORT = "review", "placement", "import"


def must_be_shown(state: CardState | None, card_id: str, version: int) -> None:
    """Raises Stale where `version` is not how the card stands."""
    if (state.version if state else 0) != version:
        raise Stale(f"{card_id} was already answered, here or in another tab. Nothing was counted twice.")


def memory_of(session: Session, state: CardState | None, card: Card, policy: Policy) -> Mapping[str, Any] | None:
    """What is remembered of the card as it reads now and by the parameters in force.

    A new revision means something else and is learned anew. Where the parameters changed since the last review, the
    memory is computed again from the card's history.
    """
    if state is None or state.memory is None or state.revision != card.head.revision:
        return None
    if state.parameters_id == policy.parameters_id:
        return state.memory
    history = queries.list_history(session, state.learner_id, card.id)
    return recompute([each for each in history if each.revision == state.revision], policy.parameters)


def record(
    session: Session,
    learner_id: int,
    card: Card,
    state: CardState | None,
    review: Review,
    memory: Mapping[str, Any] | None,
    outcome: scheduling.Outcome,
    policy: Policy,
    now: datetime,
    kind: str = ANSWER,
) -> Review:
    """Append `review` to the log, completed with all it takes to replay it, and bring the state to it.

    Raises Stale where another tab was faster.
    """
    _keep_parameters(session, learner_id, policy, now)
    review.learner_id, review.card_id, review.revision = learner_id, card.id, card.head.revision
    review.kind, review.cluster, review.rating = kind, card.head.cluster, outcome.rating
    review.phase = scheduling.phase_of(memory) if kind == ANSWER else scheduling.NOT_REVIEWED
    review.repetition = state.reviews if state else 0
    review.previous_id = state.last_review_id if state and memory is not None else None
    review.reviewed_at, review.due_at = now, outcome.due_at
    review.memory_before = None if memory is None else dict(memory)
    review.memory_after = outcome.memory
    review.time_zone, review.day_starts_hour = str(learner_zone()), DAY_STARTS_HOUR
    review.scheduler = scheduling.scheduler_name()
    review.parameters_id, review.desired_retention = policy.parameters_id, policy.desired_retention
    session.add(review)
    try:
        session.flush()
        _advance(session, state, review, outcome.lapsed)
        session.flush()
        if memory is None:
            roster.note_met(session, learner_id, card.id)
    except (IntegrityError, StaleDataError):
        raise Stale(f"{card.id} was already answered in another tab. Nothing was counted twice.") from None
    return review


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
    planned = plans.find_plan(session, learner_id) is not None
    for each in together:
        state = queries.find_state(session, learner_id, each.card_id)
        assert state is not None, "a review without a state cannot have been stored"
        rebuild(state, queries.list_history(session, learner_id, each.card_id))
        if planned and state.available_at is not None and not state.buried_until:
            state.available_at = min(state.available_at, now)  # the plan may have brought it forward: show it again
    try:
        session.flush()
    except StaleDataError:
        raise Stale(f"{review.card_id} changed in another tab just now. Nothing was taken back.") from None
    roster.forget(session, learner_id)
    return review.card_id


def rebuild(state: CardState, history: list[Review]) -> None:
    """Bring a state to what its card's standing reviews say; marks stay."""
    state.reviews = len(history)
    state.lapses = sum(scheduling.is_lapse(each.memory_before, each.rating) for each in history)
    if history:
        _adopt(state, history[-1])
        return
    state.memory = state.due_at = state.available_at = state.last_review_at = None
    state.last_review_id = state.parameters_id = None
    state.is_learning, state.position = False, 0


def set_available(state: CardState) -> None:
    """When it may be shown follows from when it is due and from what the learner hung on it."""
    if state.due_at is None or state.suspended_at is not None:
        state.available_at = None
    else:
        state.available_at = max(state.due_at, state.buried_until) if state.buried_until else state.due_at


def _advance(session: Session, state: CardState | None, review: Review, lapsed: bool) -> None:
    """The state after `review`, written where the version still is what was read."""
    if state is None:
        state = CardState(learner_id=review.learner_id, card_id=review.card_id, reviews=0, lapses=0)
        session.add(state)
    state.reviews += 1
    state.lapses += int(lapsed)
    state.buried_until = None
    _adopt(state, review)


def _adopt(state: CardState, review: Review) -> None:
    """The memory `review` left."""
    state.revision = review.revision
    state.memory = review.memory_after
    state.is_learning = scheduling.is_learning(review.memory_after)
    state.due_at = review.due_at
    state.last_review_at = review.reviewed_at
    state.last_review_id = review.id
    state.parameters_id = review.parameters_id
    state.position = spreading.seed(review.card_id, review.repetition)[1]
    set_available(state)


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
