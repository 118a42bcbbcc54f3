"""What a learner chose, and what a plan and fitted parameters change in it. Asked at every review: one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, bindparam, func, select
from sqlalchemy.orm import Session

from app.core.models import Learner
from app.core.moment import Moment
from app.study.days import today as today_of
from app.study.fsrs.parameters import DEFAULT_ID
from app.study.models import InterviewPlan, ParameterFit, StudySettings

_PLAN, _FIT, _SETTINGS = InterviewPlan.__table__.c, ParameterFit.__table__.c, StudySettings.__table__.c
_LEARNER: BindParameter[int] = bindparam("learner_id")
_OF_PLAN = (
    _PLAN.day,
    _PLAN.set_at,
    _PLAN.minutes_per_day,
    _PLAN.strategy,
    _PLAN.planned_day,
    _PLAN.new_today,
    _PLAN.card_order,
)
_NEWEST_FIT = (
    select(func.max(_FIT.id))
    .where(_FIT.learner_id == _LEARNER, _FIT.finished_at.is_not(None), _FIT.is_used)
    .scalar_subquery()
)
# One statement for what a review asks every time, though most learners have none of it.
_READ = (
    select(
        _SETTINGS.new_per_day,
        _SETTINGS.reviews_per_day,
        _SETTINGS.desired_retention,
        _FIT.parameters_id,
        _FIT.parameters,
        *_OF_PLAN,
    )
    .select_from(Learner.__table__)
    .outerjoin(StudySettings.__table__, _SETTINGS.learner_id == _LEARNER)
    .outerjoin(ParameterFit.__table__, _FIT.id == _NEWEST_FIT)
    .outerjoin(InterviewPlan.__table__, _PLAN.learner_id == _LEARNER)
    .where(Learner.__table__.c.id == _LEARNER)
)
_READ_PLAN = select(*_OF_PLAN).where(_PLAN.learner_id == _LEARNER)


@dataclass(frozen=True)
class Plan:
    """What a learner prepares for, as `InterviewPlan` has it."""

    day: date
    set_at: datetime
    minutes_per_day: int
    strategy: Mapping[str, Any] | None
    planned_day: int | None
    new_today: int
    card_order: Sequence[str]


class Chosen(NamedTuple):
    """All a policy follows from: the settings, the parameters fitted last, the plan; None for what there is not.

    `settings` are new cards per day, reviews per day (None for all) and desired retention.
    """

    settings: tuple[int, int | None, float] | None
    fitted: tuple[str, tuple[float, ...]] | None
    plan: Plan | None


def read(session: Session, learner_id: int) -> Chosen:
    """What a learner chose, in one statement."""
    found = session.connection().execute(_READ, {"learner_id": learner_id}).one_or_none()
    if found is None:
        return Chosen(None, None, None)
    new_per_day, reviews_per_day, retention, fit_id, fit, *plan = found
    return Chosen(
        None if new_per_day is None else (new_per_day, reviews_per_day, retention),
        None if fit_id is None or fit_id == DEFAULT_ID else (fit_id, tuple(fit)),
        None if plan[0] is None else Plan(*plan),
    )


def find_plan(session: Session, learner_id: int) -> Plan | None:
    found = session.connection().execute(_READ_PLAN, {"learner_id": learner_id}).one_or_none()
    return None if found is None else Plan(*found)


def changes(chosen: Chosen, moment: Moment) -> dict[str, Any]:
    """Fields of the policy that a plan or fitted parameters set, by name; what they leave alone is missing."""
    fitted = {} if chosen.fitted is None else dict(zip(("parameters_id", "parameters"), chosen.fitted, strict=True))
    return {**fitted, **_planned(chosen.plan, moment)}


def _planned(plan: Plan | None, moment: Moment) -> dict[str, Any]:
    if plan is None:
        return {}
    today = today_of(moment)
    if today >= plan.day.toordinal():
        return {"is_unplanned": plan.planned_day != today}
    found: dict[str, Any] = {
        "is_unplanned": plan.planned_day != today,
        "deadline": plan.day,
        "order": tuple(plan.card_order),
    }
    if plan.planned_day == today:
        found["new_per_day"] = plan.new_today
    if plan.strategy is not None:
        found["desired_retention"] = plan.strategy["retention"]
    return found
