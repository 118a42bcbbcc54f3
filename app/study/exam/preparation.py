"""Preparing for the day of an interview: setting it, choosing each day's cards, and what to expect.

A plan never touches the review log or a due date. It says which cards may be shown today: it brings cards forward or
holds them until tomorrow through `card_state.available_at`. When nobody plans a day, everything held is available
again and FSRS goes on alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sqlalchemy import Table, bindparam, delete, select, update
from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.preparation_schemas import FEWEST_MINUTES, FURTHEST_DAYS, MOST_MINUTES
from app.core.days import day_number, study_day
from app.core.days import today as today_of
from app.core.errors import DomainError, Violation
from app.core.moment import Moment
from app.study import queries
from app.study.exam.forecast import Course
from app.study.exam.order import introduction_order, left_out_last
from app.study.exam.search import choose_strategy, live, rule_of
from app.study.exam.strategy import Cards, Strategy
from app.study.fsrs import memory_model
from app.study.models import CardState, InterviewPlan
from app.study.policy import policy_for
from app.study.queue import queues

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

SECONDS_PER_ANSWER = 25.0


@dataclass(frozen=True)
class Forecast:
    """What to expect of a plan from today on. Days count from today; recall is 0..1, over every card."""

    day: date
    days_left: int
    minutes_per_day: int
    recall_now: float
    recall_on_the_day: float
    cards: int
    met: int
    met_on_the_day: int
    answers: Sequence[float]
    new: Sequence[float]
    left_out: Sequence[str]
    retention: float
    card_recall: Mapping[str, float]

    @property
    def minutes(self) -> list[float]:
        """Expected minutes of each day from today."""
        return [each * SECONDS_PER_ANSWER / 60 for each in self.answers]


@dataclass(frozen=True)
class _Standing:
    """The learner's cards as arrays, in the order of introduction."""

    ids: tuple[str, ...]
    cards: Cards
    is_learning: np.ndarray[Any, Any]


@dataclass(frozen=True)
class Draft:
    """A plan that was not set yet. Finding one takes a second or two and only reads."""

    day: date
    minutes_per_day: int
    strategy: dict[str, object] | None
    order: Sequence[str]


@dataclass(frozen=True)
class ChosenDay:
    """A study day of a plan: how many new cards, the known ones to review today, and those to hold until tomorrow."""

    new: int
    brought: Sequence[str]
    held: Sequence[str]


def draft(
    session: Session, learner_id: int, catalogue: Catalogue, day: date, minutes_per_day: int, moment: Moment
) -> Draft:
    """The best way to prepare for `day` from today on. Raises DomainError with everything that is out of range."""
    today = today_of(moment)
    wrong = list(_violations(day, minutes_per_day, date.fromordinal(today)))
    if wrong:
        raise DomainError("The interview date was not set.", wrong)
    cards = queries.all_cards(session, learner_id, catalogue)
    order = introduction_order(cards, catalogue.preparation.decks)
    standing = _standing(session, learner_id, cards, order, moment)
    days, answers = day.toordinal() - today, answers_per_day(minutes_per_day)
    if days == 0 or not standing.ids:
        return Draft(day, minutes_per_day, None, order)
    w = memory_model.parameters(policy_for(session, learner_id, moment).parameters)
    choice = choose_strategy(w, standing.cards, days, answers)
    fits = round(float(choice.course.met.mean()))
    if fits < len(order):
        met = {each for each, known in zip(standing.ids, standing.cards.met[0], strict=True) if known}
        unmet = [each for each in order if each not in met]
        order = left_out_last(unmet, cards, catalogue.concepts, max(0, fits - len(met)))
    strategy = None if choice.strategy is None else asdict(choice.strategy)
    return Draft(day, minutes_per_day, strategy, order)


def set_plan(session: Session, learner_id: int, catalogue: Catalogue, chosen: Draft, moment: Moment) -> None:
    """Prepare as drafted, from today on; other minutes for the same day keep the start."""
    before = session.get(InterviewPlan, learner_id)
    today = date.fromordinal(today_of(moment))
    started_on = before.started_on if before and before.day == chosen.day else today
    values = {
        "day": chosen.day,
        "minutes_per_day": chosen.minutes_per_day,
        "started_on": started_on,
        "set_at": moment.now,
        "strategy": chosen.strategy,
        "card_order": list(chosen.order),
        "planned_day": None,
        "new_today": 0,
    }
    if before is None:
        session.add(InterviewPlan(learner_id=learner_id, **values))
    else:
        for name, value in values.items():
            setattr(before, name, value)
    session.flush()
    plan_day(session, learner_id, catalogue, moment)


def drop_plan(session: Session, learner_id: int, now: datetime) -> None:
    """Go on without a date: what was held or brought forward comes back when it is due."""
    session.execute(delete(InterviewPlan).where(InterviewPlan.learner_id == learner_id))
    session.expire_all()
    _release(session, learner_id, now)


def find(session: Session, learner_id: int) -> InterviewPlan | None:
    return session.get(InterviewPlan, learner_id)


def list_unplanned(session: Session, moment: Moment) -> list[int]:
    """Learners whose day was not planned yet."""
    today = today_of(moment)
    query = select(InterviewPlan.learner_id).where(
        InterviewPlan.planned_day.is_(None) | (InterviewPlan.planned_day != today)
    )
    return list(session.scalars(query))


def plan_day(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment) -> None:
    """Choose today's cards, once a study day: bring forward what is to be reviewed, hold the rest until tomorrow."""
    plan = session.get(InterviewPlan, learner_id)
    today = today_of(moment)
    if plan is None or plan.planned_day == today:
        return
    chosen = choose_day(session, learner_id, catalogue, moment)
    plan.planned_day, plan.new_today = today, chosen.new
    _release(session, learner_id, moment.now)
    begins, ends = study_day(moment)
    _move(session, _BRING, learner_id, chosen.brought, begins, moment.now)
    _move(session, _HOLD, learner_id, chosen.held, ends, moment.now)
    session.flush()


def choose_day(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment) -> ChosenDay:
    """Today's cards as the plan has them. Only reads: a page shows them before anything was written."""
    plan = session.get(InterviewPlan, learner_id)
    today = today_of(moment)
    if plan is None or today >= plan.day.toordinal():
        return ChosenDay(0, (), ())
    policy = policy_for(session, learner_id, moment)
    cards = queries.all_cards(session, learner_id, catalogue)
    standing = _standing(session, learner_id, cards, plan.card_order, moment)
    done = queues.read_day(session, learner_id, *study_day(moment))
    if not standing.ids:
        return ChosenDay(0, (), ())
    left = max(0.0, answers_per_day(plan.minutes_per_day) - done.done)
    days = plan.day.toordinal() - today
    rule = rule_of(_strategy(plan), standing.cards, days, plan.started_on.toordinal() - today)
    chosen = rule(memory_model.parameters(policy.parameters), standing.cards, 0, days, left)
    may_move = standing.cards.met[0] & ~standing.is_learning & (standing.cards.last_day[0] < 0)
    asked = chosen.reviews[0] & may_move
    return ChosenDay(
        int(chosen.new[0]) + done.introduced,
        [each for each, yes in zip(standing.ids, asked, strict=True) if yes],
        [each for each, yes in zip(standing.ids, may_move & ~asked, strict=True) if yes],
    )


def forecast(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment) -> Forecast | None:
    """What the plan leads to from today on, None without one."""
    plan = session.get(InterviewPlan, learner_id)
    if plan is None:
        return None
    today = today_of(moment)
    policy = policy_for(session, learner_id, moment)
    w = memory_model.parameters(policy.parameters)
    cards = queries.all_cards(session, learner_id, catalogue)
    standing = _standing(session, learner_id, cards, plan.card_order, moment)
    days = max(0, plan.day.toordinal() - today)
    strategy = _strategy(plan)
    rule = rule_of(strategy, standing.cards, days, plan.started_on.toordinal() - today)
    course = live(rule, w, standing.cards, days, answers_per_day(plan.minutes_per_day))
    return _forecast(plan, standing, course, days, float(standing.cards.recall(w, 0).mean()) if standing.ids else 0.0)


def answers_per_day(minutes: float) -> float:
    return minutes * 60 / SECONDS_PER_ANSWER


def _forecast(plan: InterviewPlan, standing: _Standing, course: Course, days: int, now: float) -> Forecast:
    recall = course.card_recall.tolist()
    met_now = standing.cards.met[0]
    met_then = round(float(course.met.mean())) if standing.ids else 0
    unmet = [each for each, known in zip(standing.ids, met_now, strict=True) if not known]
    new = max(0, met_then - int(met_now.sum()))
    strategy = _strategy(plan)
    return Forecast(
        plan.day,
        days,
        plan.minutes_per_day,
        now,
        float(np.mean(recall)) if recall else 0.0,
        len(standing.ids),
        int(met_now.sum()),
        met_then,
        course.answers.mean(axis=0).tolist(),
        course.new.mean(axis=0).tolist(),
        unmet[new:],
        strategy.retention if strategy else 0.9,
        dict(zip(standing.ids, recall, strict=True)),
    )


def _violations(day: date, minutes: int, today: date) -> list[Violation]:
    found = []
    furthest = today + timedelta(days=FURTHEST_DAYS)
    if not today <= day <= furthest:
        says = "That day is over." if day < today else "That is too far ahead to plan for."
        found.append(Violation("day", day.isoformat(), says, f"a day from {today} to {furthest}"))
    if not FEWEST_MINUTES <= minutes <= MOST_MINUTES:
        accepted = f"{FEWEST_MINUTES} to {MOST_MINUTES} minutes"
        found.append(Violation("minutes_per_day", minutes, "No day can be planned with that.", accepted))
    return found


def _strategy(plan: InterviewPlan) -> Strategy | None:
    return None if plan.strategy is None else Strategy(**plan.strategy)


def _standing(
    session: Session, learner_id: int, cards: Mapping[str, Card], order: Sequence[str], moment: Moment
) -> _Standing:
    """What is remembered of each card. Suspended cards are no target; days count from today."""
    known = {each: None for each in order if each in cards}
    states = {each.card_id: each for each in queries.list_states(session, learner_id)}
    ids = [each for each in [*known, *(each for each in cards if each not in known)] if not _is_away(states.get(each))]
    today, shape = today_of(moment), (1, len(ids))
    found = Cards(np.ones(shape), np.full(shape, 5.0), np.zeros(shape), np.zeros(shape, dtype=bool))
    learning = np.zeros(len(ids), dtype=bool)
    for index, card_id in enumerate(ids):
        state = states.get(card_id)
        if state is None or state.memory is None or state.revision != cards[card_id].head.revision:
            continue
        assert state.last_review_at is not None, "a memory comes from a review"
        found.met[0, index] = True
        found.stability[0, index], found.difficulty[0, index] = state.memory["stability"], state.memory["difficulty"]
        found.last_day[0, index] = day_number(state.last_review_at, moment.zone) - today
        learning[index] = state.is_learning
    return _Standing(tuple(ids), found, learning)


def _is_away(state: CardState | None) -> bool:
    return state is not None and state.suspended_at is not None


_ROW = cast(Table, CardState.__table__)
_KNOWN = (
    _ROW.c.learner_id == bindparam("learner"),
    _ROW.c.suspended_at.is_(None),
    _ROW.c.is_learning.is_(False),
    _ROW.c.buried_until.is_(None) | (_ROW.c.buried_until <= bindparam("now")),
)
# Plain updates, not the ORM's: a page that shows the card stays valid, so `version` must not rise.
_BRING = update(_ROW).where(*_KNOWN, _ROW.c.card_id == bindparam("card")).values(available_at=bindparam("at"))
_HOLD = (
    update(_ROW)
    .where(*_KNOWN, _ROW.c.card_id == bindparam("card"), _ROW.c.available_at < bindparam("at"))
    .values(available_at=bindparam("at"))
)
_RELEASE = update(_ROW).where(*_KNOWN, _ROW.c.due_at.is_not(None)).values(available_at=_ROW.c.due_at)


def _move(session: Session, statement: Any, learner_id: int, ids: Sequence[str], at: datetime, now: datetime) -> None:
    if ids:
        values = [{"learner": learner_id, "card": each, "at": at, "now": now} for each in ids]
        session.connection().execute(statement, values)


def _release(session: Session, learner_id: int, now: datetime) -> None:
    """Every known card back to its due date, but what the learner buried."""
    session.flush()
    session.connection().execute(_RELEASE, {"learner": learner_id, "now": now})
    session.expire_all()
