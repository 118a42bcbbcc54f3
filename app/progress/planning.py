"""The interview date's page: the forecast, what does not fit, and the checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.core.moment import Moment
from app.progress import figures
from app.progress.checkpoints import Stand, done_by, standings
from app.progress.figures import Column
from app.study import api as study
from app.study.api import Forecast, policy_for

MOST_COLUMNS = 28
MOST_WEEKDAYS = 21  # columns named by weekday; more are named by the day of the month


@dataclass(frozen=True)
class LeftOut:
    """Cards of a deck that will not be met."""

    deck: str
    cards: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Planning:
    """The page: the plan's forecast if there is a plan, and what the form starts from."""

    today: date
    forecast: Forecast | None
    columns: Sequence[Column]
    column_days: int
    left_out: Sequence[LeftOut]
    stands: Sequence[Stand]
    day: date
    minutes: int

    @property
    def is_over(self) -> bool:
        return self.forecast is not None and self.forecast.day < self.today


def planning(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment) -> Planning:
    """Everything the page of the interview date shows."""
    today = date.fromordinal(study.today(moment))
    found = study.forecast(session, learner_id, catalogue, moment)
    plan, preparation = study.find_plan(session, learner_id), catalogue.preparation
    start, end = (plan.started_on, plan.day) if plan else (today, today + timedelta(days=preparation.days))
    stands = list_stands(session, learner_id, catalogue, start, end, moment)
    columns, width = _columns(found, today) if found else ([], 1)
    return Planning(
        today,
        found,
        columns,
        width,
        _left_out(catalogue, found.left_out if found else ()),
        stands,
        end,
        plan.minutes_per_day if plan else preparation.minutes_per_day,
    )


def list_stands(
    session: Session, learner_id: int, catalogue: Catalogue, start: date, end: date, moment: Moment
) -> list[Stand]:
    """Where the learner stands with each checkpoint of a preparation from `start` to `end`."""
    decay = policy_for(session, learner_id, moment).parameters[20]
    recall = figures.recalls(study.memories(session, learner_id, moment.now, moment.zone), decay)
    return standings(catalogue, done_by(session, learner_id, recall), start, end)


def _columns(forecast: Forecast, today: date) -> tuple[list[Column], int]:
    """Minutes of each day, or of each stretch of days where there are many."""
    width = max(1, -(-len(forecast.minutes) // MOST_COLUMNS))
    most = max([*forecast.minutes, 1.0])
    found = []
    for start in range(0, len(forecast.minutes), width):
        some = forecast.minutes[start : start + width]
        mean, day = sum(some) / len(some), today + timedelta(days=start)
        label = f"{day:%a}"[:2] if len(forecast.minutes) <= MOST_WEEKDAYS else f"{day.day}"
        name = f"{day:%A} {day.day} {day:%B}" + (f" and the {len(some) - 1} days after" if len(some) > 1 else "")
        found.append(Column(f"{100 * mean / most:.1f}", round(mean), label, name, start == 0))
    return found, width


def _left_out(catalogue: Catalogue, ids: Sequence[str]) -> list[LeftOut]:
    by_deck: dict[str, list[tuple[str, str]]] = {}
    for card_id in ids:
        card = catalogue.cards.get(card_id)
        title = card.deck.title if card else "Your own cards"
        by_deck.setdefault(title, []).append((card_id, card.head.title if card else card_id))
    return [LeftOut(deck, cards) for deck, cards in by_deck.items()]
