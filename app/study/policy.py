"""How a learner wants to be scheduled: daily shares, desired retention, and the parameters of the memory model.

It follows from what they chose, and from what a plan and fitted parameters change in that. Asked at every review: one
statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import BindParameter, bindparam, func, select
from sqlalchemy.orm import Session

from app.core.days import today as today_of
from app.core.errors import DomainError, Violation
from app.core.models import Learner
from app.core.moment import Moment
from app.study.fsrs.parameters import DEFAULT, DEFAULT_ID
from app.study.fsrs.scheduling import Rules
from app.study.models import InterviewPlan, ParameterFit, StudySettings

NEW_PER_DAY = 12
DESIRED_RETENTION = 0.90
MOST_PER_DAY = 9999
LOWEST_RETENTION, HIGHEST_RETENTION = 0.70, 0.97

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
_CHOSEN = (
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
_PLAN_OF_LEARNER = select(*_OF_PLAN).where(_PLAN.learner_id == _LEARNER)


@dataclass(frozen=True)
class Policy:
    """What decides which cards come today and when they come again.

    `reviews_per_day` of None means all that are due. `order` introduces its cards first, in this order; `deadline` is
    the day that counts, if there is one; `is_unplanned` while nothing chose this study day's cards for it yet.
    """

    new_per_day: int = NEW_PER_DAY
    reviews_per_day: int | None = None
    desired_retention: float = DESIRED_RETENTION
    parameters: tuple[float, ...] = DEFAULT
    parameters_id: str = DEFAULT_ID
    order: tuple[str, ...] | None = None
    deadline: date | None = None
    is_unplanned: bool = False


PLAIN = Policy()


@dataclass(frozen=True)
class Plan:
    """What a learner prepares for, as `InterviewPlan` has it."""

    day: date
    set_at: datetime
    minutes_per_day: int
    strategy: Mapping[str, object] | None
    planned_day: int | None
    new_today: int
    card_order: Sequence[str]


class _Chosen(NamedTuple):
    """All a policy follows from: the settings, the parameters fitted last, the plan; None for what there is not.

    `settings` are new cards per day, reviews per day (None for all) and desired retention.
    """

    settings: tuple[int, int | None, float] | None
    fitted: tuple[str, tuple[float, ...]] | None
    plan: Plan | None


def policy_for(session: Session, learner_id: int, moment: Moment) -> Policy:
    """The learner's policy now: their settings, else the defaults, and what a plan or fitted parameters change."""
    chosen = _read(session, learner_id)
    return replace(_of_settings(chosen), **_changes(chosen, moment))


def settings_and_plan(session: Session, learner_id: int, moment: Moment) -> tuple[Policy, Mapping[str, Any]]:
    """The learner's own settings, and the fields a plan sets instead of them now, by name; empty without one."""
    chosen = _read(session, learner_id)
    return _of_settings(chosen), _changes(chosen._replace(fitted=None), moment)


def _of_settings(chosen: _Chosen) -> Policy:
    return PLAIN if chosen.settings is None else Policy(*chosen.settings)


def find_plan(session: Session, learner_id: int) -> Plan | None:
    found = session.connection().execute(_PLAN_OF_LEARNER, {"learner_id": learner_id}).one_or_none()
    return None if found is None else Plan(*found)


def rules_of(policy: Policy, zone: ZoneInfo) -> Rules:
    """The policy as the arithmetic needs it, in the learner's zone."""
    return Rules(zone, policy.desired_retention, policy.parameters)


def save_settings(
    session: Session,
    learner_id: int,
    now: datetime,
    *,
    new_per_day: int,
    reviews_per_day: int | None,
    desired_retention: float,
) -> None:
    """Keep the learner's settings. Raises DomainError with everything that is out of range."""
    wrong = list(_violations(new_per_day, reviews_per_day, desired_retention))
    if wrong:
        raise DomainError("The settings were not saved.", wrong)
    session.merge(
        StudySettings(
            learner_id=learner_id,
            new_per_day=new_per_day,
            reviews_per_day=reviews_per_day,
            desired_retention=desired_retention,
            updated_at=now,
        )
    )
    session.flush()


def _violations(new_per_day: int, reviews_per_day: int | None, desired_retention: float) -> list[Violation]:
    counted = f"a whole number from 0 to {MOST_PER_DAY}"
    share = f"{LOWEST_RETENTION:.0%} to {HIGHEST_RETENTION:.0%}"
    found = []
    if not 0 <= new_per_day <= MOST_PER_DAY:
        found.append(Violation("new_per_day", new_per_day, "It is out of range.", counted))
    if reviews_per_day is not None and not 0 <= reviews_per_day <= MOST_PER_DAY:
        found.append(Violation("reviews_per_day", reviews_per_day, "It is out of range.", f"{counted}, or empty"))
    if not LOWEST_RETENTION <= desired_retention <= HIGHEST_RETENTION:  # also false for NaN
        found.append(Violation("desired_retention", desired_retention, "It is out of range.", share))
    return found


def _read(session: Session, learner_id: int) -> _Chosen:
    """What a learner chose, in one statement."""
    found = session.connection().execute(_CHOSEN, {"learner_id": learner_id}).one_or_none()
    if found is None:
        return _Chosen(None, None, None)
    new_per_day, reviews_per_day, retention, fit_id, fit, *plan = found
    return _Chosen(
        None if new_per_day is None else (new_per_day, reviews_per_day, retention),
        None if fit_id is None or fit_id == DEFAULT_ID else (fit_id, tuple(fit)),
        None if plan[0] is None else Plan(*plan),
    )


def _changes(chosen: _Chosen, moment: Moment) -> dict[str, Any]:
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
