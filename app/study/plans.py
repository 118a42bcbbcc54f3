"""What an interview plan and fitted parameters change in a learner's policy. Asked at every review: cheap reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, bindparam, select
from sqlalchemy.orm import Session

from app.core.zone import learner_zone
from app.study.days import day_number
from app.study.parameters import DEFAULT_ID
from app.study.plan_models import InterviewPlan, ParameterFit

if TYPE_CHECKING:
    from app.study.policy import Policy

_PLAN, _FIT = InterviewPlan.__table__.c, ParameterFit.__table__.c
_LEARNER: BindParameter[int] = bindparam("learner_id")
_READ_PLAN = select(
    _PLAN.day, _PLAN.set_at, _PLAN.minutes_per_day, _PLAN.strategy, _PLAN.planned_day, _PLAN.new_today
).where(_PLAN.learner_id == _LEARNER)
_READ_ORDER = select(_PLAN.card_order).where(_PLAN.learner_id == _LEARNER)
_READ_FIT = (
    select(_FIT.parameters_id, _FIT.parameters)
    .where(_FIT.learner_id == _LEARNER, _FIT.finished_at.is_not(None), _FIT.is_used)
    .order_by(_FIT.id.desc())
    .limit(1)
)
_orders: dict[tuple[int, datetime], tuple[str, ...]] = {}


@dataclass(frozen=True)
class Plan:
    """A plan without its order: what a review needs of it."""

    day: date
    set_at: datetime
    minutes_per_day: int
    strategy: Mapping[str, Any] | None
    planned_day: int | None
    new_today: int


def find_plan(session: Session, learner_id: int) -> Plan | None:
    found = session.connection().execute(_READ_PLAN, {"learner_id": learner_id}).one_or_none()
    return None if found is None else Plan(*found)


def changes(session: Session, learner_id: int, now: datetime) -> dict[str, Any]:
    """Fields of the policy that a plan or fitted parameters set, by name; what they leave alone is missing."""
    return {**_fitted(session, learner_id), **_planned(session, learner_id, now)}


def adjusted(session: Session, learner_id: int, policy: Policy, now: datetime) -> Policy:
    """The policy with what a plan and fitted parameters change in it."""
    return replace(policy, **changes(session, learner_id, now))


def _fitted(session: Session, learner_id: int) -> dict[str, Any]:
    found = session.connection().execute(_READ_FIT, {"learner_id": learner_id}).one_or_none()
    if found is None or found[0] == DEFAULT_ID:
        return {}
    return {"parameters_id": found[0], "parameters": tuple(found[1])}


def _planned(session: Session, learner_id: int, now: datetime) -> dict[str, Any]:
    plan = find_plan(session, learner_id)
    today = day_number(now, learner_zone())
    if plan is None or today >= plan.day.toordinal():
        return {}
    found: dict[str, Any] = {"deadline": plan.day, "order": _order(session, learner_id, plan.set_at)}
    if plan.planned_day == today:
        found["new_per_day"] = plan.new_today
    if plan.strategy is not None:
        found["desired_retention"] = plan.strategy["retention"]
    return found


def _order(session: Session, learner_id: int, set_at: datetime) -> tuple[str, ...]:
    """The order of introduction; it changes only when the plan is set again."""
    key = (learner_id, set_at)
    if key not in _orders:
        if len(_orders) > 256:
            _orders.clear()
        order = session.connection().execute(_READ_ORDER, {"learner_id": learner_id}).scalar_one()
        _orders[key] = tuple(order)
    return _orders[key]


def forget(learner_id: int) -> None:
    """Drop what this process keeps of a learner's plans."""
    for key in [each for each in _orders if each[0] == learner_id]:
        del _orders[key]
