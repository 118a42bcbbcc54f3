"""What a learner did wrong last, by its name: of an experiment, a problem or an interview, in its newest try."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.evidence import Evidence, Kind
from app.core import times
from app.core.moment import Moment
from app.interview import service as interview
from app.lab.predictions import list_newest
from app.practice import service as practice
from app.words import lowered


@dataclass(frozen=True)
class Mistake:
    """A miss of `concepts`, which `says` names as a sentence goes on, with {when} in it; `cards` answer it. A problem's
    has its `slip`."""

    kind: Kind
    item_id: str
    at: datetime
    says: str
    concepts: tuple[str, ...]
    cards: tuple[str, ...]
    slip: practice.Slip | None = None

    def sentence(self, moment: Moment) -> str:
        """Without its full stop, in small letters: what follows on a concept's name."""
        return self.says.format(when=when(self.at, moment))


Mistakes = Mapping[tuple[Kind, str], Mistake]


def when(at: datetime, moment: Moment) -> str:
    """The time of today, or the day."""
    day = times.day(at, moment)
    return f"at {times.clock(at, moment.zone)}" if day == "today" else day


def mistakes_of(session: Session, learner_id: int, content: Catalogue, now: datetime) -> Mistakes:
    """By kind and id of the item: only what the newest try of it did wrong."""
    every = (
        *_of_runs(session, learner_id, content, now),
        *_of_problems(session, learner_id, content, now),
        *_of_interviews(session, learner_id, content, now),
    )
    return {(each.kind, each.item_id): each for each in every}


def open_cards(
    mistakes: Mistakes, every: Iterable[Evidence], content: Catalogue, most: int
) -> list[tuple[str, Mistake]]:
    """The first card of each mistake, the newest first, while it was not answered since; `most` of them, each once."""
    answered = {each.item_id: each.at for each in every if each.kind == "card"}
    found: dict[str, Mistake] = {}
    for mistake in sorted(mistakes.values(), key=lambda each: each.at, reverse=True):
        card = next((each for each in mistake.cards if each in content.cards), None)
        if card is not None and (card not in answered or answered[card] < mistake.at):
            found.setdefault(card, mistake)
    return list(found.items())[:most]


def by_idea(mistakes: Mistakes) -> dict[str, Mistake]:
    """The newest mistake of each concept that one is of, the newest first."""
    found: dict[str, Mistake] = {}
    for mistake in sorted(mistakes.values(), key=lambda each: each.at, reverse=True):
        for concept in mistake.concepts:
            found.setdefault(concept, mistake)
    return found


def _of_runs(session: Session, learner_id: int, content: Catalogue, now: datetime) -> Iterator[Mistake]:
    for run in list_newest(session, learner_id, content, now - practice.MISSED_FOR):
        if run.cures and run.experiment_id is not None:
            said = lowered(run.title)
            says = f"{said} in {run.experiment_id}" if said.startswith("you ") else f"in {run.experiment_id}, {said}"
            concepts = _about(content, run.cures, content.experiments[run.experiment_id].concepts)
            yield Mistake("run", run.experiment_id, run.ended_at, f"{_plain(says)} {{when}}", concepts, run.cures)


def _of_problems(session: Session, learner_id: int, content: Catalogue, now: datetime) -> Iterator[Mistake]:
    for slip in practice.list_slips(session, learner_id, content, now):
        said = _plain(slip.says)
        says = (
            f"your slip in {slip.problem.id} {{when}} was “{said}”"
            if slip.is_named
            else (f"in {slip.problem.id} {{when}}, {lowered(said)}")
        )
        concepts = _about(content, slip.cards, slip.problem.concepts)
        yield Mistake("problem", slip.problem.id, slip.at, says, concepts, slip.cards, slip)


def _of_interviews(session: Session, learner_id: int, content: Catalogue, now: datetime) -> Iterator[Mistake]:
    for false in interview.list_false_claims(session, learner_id, now - practice.MISSED_FOR):
        name = false.interview_id if content.interview(false.interview_id) else "a generated sitting"
        says = f"in {name} {{when}} you said something false about {_plain(false.topic)}, and did not take it back"
        concepts = _about(content, (false.cure,), ())
        yield Mistake("interview", false.item_id, false.at, says, concepts, (false.cure,))


def _about(content: Catalogue, cards: Iterable[str], item: tuple[str, ...]) -> tuple[str, ...]:
    """What was missed: the main concept of each card that answers it, of those that an `item` is about; else the
    item's own."""
    main = (content.cards[card].head.concepts[0] for card in cards if card in content.cards)
    return tuple(dict.fromkeys(each for each in main if each in item or not item)) or item[:1]


def _plain(text: str) -> str:
    """As it stands, in a text that is formatted."""
    return text.replace("{", "{{").replace("}", "}}")
