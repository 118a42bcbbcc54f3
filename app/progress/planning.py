"""The interview date's page: the forecast, what does not fit, and the checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.concept_map import way_to
from app.content.schemas import Concept
from app.core.moment import Moment
from app.progress import figures
from app.progress.checkpoints import Stand, done_by, standings, up_to_next
from app.progress.evidence import Standing, by_concept
from app.progress.figures import Column
from app.study import api as study
from app.study.api import Forecast, policy_for

MOST_STEPS = 12  # of a way to an idea that are shown, the last ones
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


@dataclass(frozen=True)
class Way:
    """What leads to the idea that the next checkpoint is about: `ideas` in an order to learn them in, itself the last,
    each with how the learner stands with it. `following` is the first that is not firm."""

    checkpoint: str
    ideas: Sequence[tuple[Concept, Standing | None]]
    left_out: int  # ideas before the first that is shown

    @property
    def goal(self) -> Concept:
        return self.ideas[-1][0]

    @property
    def firm(self) -> int:
        return sum(is_firm(standing) for _, standing in self.ideas)

    @property
    def following(self) -> Concept:
        return next((concept for concept, standing in self.ideas if not is_firm(standing)), self.goal)


def is_firm(standing: Standing | None) -> bool:
    return standing is not None and standing.word == "firm"


def way_to_next(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment) -> Way | None:
    """The way to the next checkpoint of the plan, or of the content's own preparation; None where all is met."""
    today, plan = date.fromordinal(study.today(moment)), study.find_plan(session, learner_id)
    start = plan.started_on if plan else today
    end = plan.day if plan else today + timedelta(days=catalogue.preparation.days)
    stands = up_to_next(list_stands(session, learner_id, catalogue, start, end, moment), today)
    known = by_concept(session, learner_id, catalogue, moment.now)
    for stand in stands:
        about = _about(catalogue, [gate.key for gate in stand.waiting])
        asked = {each: count for each, count in about.items() if not is_firm(known.get(each))}
        if asked:
            goal = max(asked, key=lambda each: (asked[each], len(way_to(catalogue.concepts, each))))
            ids = way_to(catalogue.concepts, goal)
            shown = [(catalogue.concepts[each], known.get(each)) for each in ids[-MOST_STEPS:]]
            return Way(stand.checkpoint.title, shown, len(ids) - len(shown))
    return None


def _about(catalogue: Catalogue, keys: Sequence[str]) -> Counter[str]:
    """How often each concept is named by the cards of decks, and by problems, that gates are about."""
    items = [card.head.concepts for card in catalogue.cards.values() if card.deck.id in keys]
    items += [problem.concepts for problem in catalogue.problems.values() if problem.id in keys]
    return Counter(each for concepts in items for each in concepts if each in catalogue.concepts)


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
