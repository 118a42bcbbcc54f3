"""How a learner wants to be scheduled: daily shares, desired retention, and the parameters of the memory model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.core.errors import DomainError, Violation
from app.core.moment import Moment
from app.study import plans
from app.study.fsrs.parameters import DEFAULT, DEFAULT_ID
from app.study.fsrs.scheduling import Rules
from app.study.models import StudySettings

NEW_PER_DAY = 12
DESIRED_RETENTION = 0.90
MOST_PER_DAY = 9999
LOWEST_RETENTION, HIGHEST_RETENTION = 0.70, 0.97


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


def policy_for(session: Session, learner_id: int, moment: Moment) -> Policy:
    """The learner's policy now: their settings, else the defaults, and what a plan or fitted parameters change."""
    chosen = plans.read(session, learner_id)
    return replace(_of_settings(chosen), **plans.changes(chosen, moment))


def settings_and_plan(session: Session, learner_id: int, moment: Moment) -> tuple[Policy, Mapping[str, Any]]:
    """The learner's own settings, and the fields a plan sets instead of them now, by name; empty without one."""
    chosen = plans.read(session, learner_id)
    return _of_settings(chosen), plans.changes(chosen._replace(fitted=None), moment)


def _of_settings(chosen: plans.Chosen) -> Policy:
    return PLAIN if chosen.settings is None else Policy(*chosen.settings)


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
