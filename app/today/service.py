"""What today offers: cards due, one problem, one experiment, and a first step for somebody who has none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.problem_schemas import Problem
from app.content.schemas import Experiment
from app.core.zone import learner_zone
from app.interview import service as interview
from app.lab import service as lab
from app.practice import service as practice
from app.study import service as study
from app.study.days import day_number
from app.study.plans import find_plan


@dataclass(frozen=True)
class Today:
    """Everything the front page shows."""

    is_new: bool
    due: int
    minutes: int
    problem: Problem | None
    experiment: Experiment | None
    active_runs: list[Any]
    open_sitting: Any
    study: study.Desk
    interview_day: date | None
    days_left: int


def today(session: Session, learner_id: int, content: Catalogue, now: datetime) -> Today:
    """The learner's day."""
    desk = study.study(session, learner_id, content, now)
    problem = practice.suggest(session, learner_id, content)
    experiment = lab.suggest(session, learner_id, content)
    minutes = desk.progress.minutes_left if desk.progress.left else 0
    minutes += (problem.minutes if problem else 0) + (experiment.minutes if experiment else 0)
    plan = find_plan(session, learner_id)
    days_left = plan.day.toordinal() - day_number(now, learner_zone()) if plan else 0
    return Today(
        not study.has_studied(session, learner_id),
        desk.progress.left,
        minutes,
        problem,
        experiment,
        lab.list_under_way(session, learner_id),
        interview.find_running(session, learner_id, now),
        desk,
        plan.day if plan and days_left >= 0 else None,
        days_left,
    )
