"""Problems and experiments to do next, and why: the one choice that Today, practice and the lab all show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeVar

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.content.evidence import Evidence
from app.content.problem_schemas import Problem
from app.content.schemas import Experiment
from app.core.moment import Moment
from app.first import service as first
from app.practice.service import Slip
from app.progress import evidence
from app.progress.checkpoints import Stand, up_to_next
from app.progress.mistakes import Mistakes, mistakes_of, open_cards
from app.progress.planning import list_stands
from app.study import api as study
from app.today.day import Offer, ranked
from app.today.reasons import Known, Reasons
from app.words import capital

Item = TypeVar("Item")
MOST_CARDS = 3  # on mistakes, beside the cards of the day


@dataclass(frozen=True)
class Offers:
    """Problems and experiments in the order in which they are best done, each with its reason; the cards on what was
    done wrong last, while they are not answered; and what that was in problems, by their ids."""

    problems: Sequence[Offer[Problem]]
    experiments: Sequence[Offer[Experiment]]
    cards: Sequence[Offer[Card]]
    slips: Mapping[str, Slip]


def offers(session: Session, learner_id: int, content: Catalogue, moment: Moment) -> Offers:
    """The problems and experiments to do next, which the rooms of both ask for."""
    since = study.day_start(study.today(moment), moment.zone)
    checkpoints = checkpoints_of(session, learner_id, content, moment)
    every, mistakes = evidence.gather(session, learner_id), mistakes_of(session, learner_id, content, moment.now)
    return offers_from(content, every, mistakes, checkpoints, since, moment)


def begins_with(session: Session, learner_id: int) -> str:
    """The deck that a learner's first cards are of: for who has only guessed how much memory training takes, the one
    that goes on from it; else none in particular, empty."""
    guess = first.find_guess(session, learner_id)
    is_new = guess is not None and guess.guess_bytes is not None and not study.has_studied(session, learner_id)
    return first.DECK if is_new else ""


def offers_from(
    content: Catalogue,
    every: Sequence[Evidence],
    mistakes: Mistakes,
    checkpoints: Sequence[Stand],
    since: datetime,
    moment: Moment,
) -> Offers:
    known = Known(every, evidence.concepts_of_items(content), content.concepts, mistakes, moment)

    def reasons(item: Problem | Experiment) -> Reasons:
        return known.reasons(item.concepts)

    asked = asked_for(checkpoints, "problem", content.problem)
    return Offers(
        ranked(list(content.problems.values()), asked, "problem", every, since, moment, reasons),
        ranked(list(content.experiments.values()), None, "run", every, since, moment, reasons),
        [
            Offer(content.cards[card], f"{capital(mistake.sentence(moment))}.")
            for card, mistake in open_cards(mistakes, every, content, MOST_CARDS)
        ],
        {mistake.item_id: mistake.slip for mistake in mistakes.values() if mistake.slip},
    )


def checkpoints_of(session: Session, learner_id: int, content: Catalogue, moment: Moment) -> Sequence[Stand]:
    """Those of the plan up to the next one; none without a plan, or after its day."""
    plan, day = study.find_plan(session, learner_id), date.fromordinal(study.today(moment))
    if plan is None or plan.day < day:
        return []
    return up_to_next(list_stands(session, learner_id, content, plan.started_on, plan.day, moment), day)


def concept_titles(content: Catalogue) -> Mapping[str, str]:
    return {key: each.title for key, each in content.concepts.items()}


def asked_for(checkpoints: Iterable[Stand], kind: str, find: Callable[[str], Item | None]) -> Item | None:
    """What the plan's checkpoints ask for first."""
    keys = (gate.key for stand in checkpoints for gate in stand.waiting if gate.kind == kind)
    return next((item for key in keys if (item := find(key)) is not None), None)
