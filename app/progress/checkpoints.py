"""Where the learner stands with each checkpoint of a preparation.

The checkpoints are content (cards/preparation.yaml). A gate is met by what the learner did, never by a tick of their
own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.preparation_schemas import Checkpoint
from app.grading import levels
from app.interview import service as interview
from app.practice import service as practice

FIRM = 0.8
TIMED = timedelta(minutes=15)
SET_SIZE, SET_TIME = 5, timedelta(minutes=60)


@dataclass(frozen=True)
class Gate:
    """One thing a checkpoint asks for. `key` is the deck, problem or interview it is about."""

    label: str
    href: str
    says: str
    is_met: bool
    kind: Literal["deck", "problem", "interview", "set"]
    key: str = ""


@dataclass(frozen=True)
class Stand:
    """A checkpoint of this learner's plan."""

    checkpoint: Checkpoint
    day: date
    gates: Sequence[Gate]

    @property
    def waiting(self) -> list[Gate]:
        """What is yet to be met."""
        return [gate for gate in self.gates if not gate.is_met]

    @property
    def open(self) -> int:
        return len(self.waiting)


@dataclass(frozen=True)
class Done:
    """What gates look at: chance of recall by card (missing where never met), settled problems, best interviews."""

    recall: Mapping[str, float]
    variants: Sequence[practice.Settled]
    interviews: Mapping[str, float]


def done_by(session: Session, learner_id: int, recall: Mapping[str, float]) -> Done:
    """What the rooms know of this learner."""
    return Done(recall, practice.list_settled(session, learner_id), interview.best_scores(session, learner_id))


def standings(catalogue: Catalogue, done: Done, start: date, end: date) -> list[Stand]:
    """Every checkpoint with its day, in proportion, between `start` and `end`."""
    preparation, length = catalogue.preparation, max(0, (end - start).days)

    def day_of(checkpoint: Checkpoint) -> date:
        return start + timedelta(days=round(checkpoint.day * length / preparation.days))

    return [
        Stand(checkpoint, day_of(checkpoint), _gates(catalogue, done, checkpoint))
        for checkpoint in preparation.checkpoints
    ]


def up_to_next(stands: Sequence[Stand], today: date) -> list[Stand]:
    """What to work at: the checkpoints with something to be met, those that are late and the next one to come."""
    waiting = [each for each in stands if each.open]
    late = [each for each in waiting if each.day < today]
    return late + [each for each in waiting if each.day >= today][:1]


def _gates(catalogue: Catalogue, done: Done, asked: Checkpoint) -> list[Gate]:
    found = [_deck(catalogue, done, deck, introduced=True) for deck in asked.met]
    found += [_deck(catalogue, done, deck, introduced=False) for deck in asked.firm]
    found += [_problem(catalogue, done, each, "solved") for each in asked.solved]
    found += [_problem(catalogue, done, each, "solved without a hint", unaided=True) for each in asked.unaided]
    found += [_problem(catalogue, done, each, "solved in 15 min", TIMED) for each in asked.timed]
    found += [_interview(catalogue, done, each) for each in asked.interviews]
    return [*found, _timed_set(done)] if asked.timed_set else found


def _deck(catalogue: Catalogue, done: Done, deck: str, introduced: bool) -> Gate:
    cards = [card.id for card in catalogue.cards.values() if card.deck.id == deck]
    title, href = catalogue.decks[deck].title if deck in catalogue.decks else deck, f"/study?deck={deck}"
    met = sum(each in done.recall for each in cards)
    if introduced:
        is_met = bool(cards) and met == len(cards)
        return Gate(f"{title}: every card met", href, f"{met} of {len(cards)}", is_met, "deck", deck)
    mean = sum(done.recall.get(each, 0.0) for each in cards) / max(1, len(cards))
    says = f"{100 * mean:.0f} %, {met} of {len(cards)} met"
    return Gate(f"{title}: recall of {100 * FIRM:.0f} %", href, says, mean >= FIRM, "deck", deck)


def _problem(
    catalogue: Catalogue, done: Done, key: str, how: str, within: timedelta = timedelta.max, unaided: bool = False
) -> Gate:
    problem = catalogue.problem(key)
    title, href = (problem.title, f"/practice/{problem.slug}") if problem else (key, "/practice")
    tried = [variant for variant in done.variants if variant.problem_id == key]
    right = any(practice.solves(variant, unaided=unaided) and _took(variant) <= within for variant in tried)
    best = max((variant.score for variant in tried), default=None)
    says = "done" if right else "not tried" if best is None else f"best {100 * best:.0f} %"
    return Gate(f"{key} {title}: {how}", href, says, right, "problem", key)


def _interview(catalogue: Catalogue, done: Done, key: str) -> Gate:
    found = catalogue.interview(key)
    if found is None:
        return Gate(f"{key}: a mock interview", "/interview", "not among the interviews yet", False, "interview", key)
    share = done.interviews.get(found.id)
    says = "not sat" if share is None else f"best {levels.percent(share)} %"
    label = f"{key} {found.title}: {levels.least_percent('hire')} or more"
    return Gate(
        label, f"/interview/{found.slug}", says, share is not None and levels.reaches(share, "hire"), "interview", key
    )


def _timed_set(done: Done) -> Gate:
    """Five problems, all right, within an hour from the first one's issue to the last one's answer."""
    right = sorted(
        (variant for variant in done.variants if practice.solves(variant, unaided=True)),
        key=lambda variant: variant.at,
    )
    most = 0
    for index, first in enumerate(right):
        end = first.issued_at + SET_TIME
        within = {variant.problem_id for variant in right[index:] if variant.at <= end}
        most = max(most, len(within))
    says = f"{min(most, SET_SIZE)} of {SET_SIZE}"
    return Gate("Five problems right within 60 min", "/practice", says, most >= SET_SIZE, "set")


def _took(variant: practice.Settled) -> timedelta:
    return variant.at - variant.issued_at
