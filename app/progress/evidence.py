"""What is known of a learner's grasp of each concept: every room's evidence, brought to the concepts of its items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.codelabs import service as codelabs
from app.content.catalogue import Catalogue
from app.content.composed import concepts_by_question
from app.content.evidence import Evidence, Kind
from app.first import service as first
from app.interview import service as interview
from app.lab import service as lab
from app.practice import service as practice
from app.rubrics import service as rubrics
from app.study import api as study

RECENT = 8  # results that the standing is the mean of: few enough to follow what was learnt last week
RECENT_FOR = timedelta(days=90)  # what is older says what was known then
FIRM, SHAKY = 0.8, 0.5  # from here on firm, below here shaky
FEWEST = 3  # results that a word rests on; one lucky answer is no standing

_ROOMS = (study, practice, rubrics, interview, lab, codelabs)


@dataclass(frozen=True)
class Standing:
    """How a learner stands with a concept. `recent` is the mean share right of the newest results, None without any.

    `count` counts everything that was done, `results` what is in `recent`; `kinds` splits the count by kind.
    """

    concept_id: str
    count: int
    last_at: datetime
    recent: float | None
    results: int
    kinds: Mapping[Kind, int]

    @property
    def word(self) -> str:
        """firm, getting there, shaky; or, where the results are few, that they are."""
        if self.recent is None or self.results < FEWEST:
            return "too little to say"
        return "firm" if self.recent >= FIRM else "getting there" if self.recent >= SHAKY else "shaky"


def by_concept(session: Session, learner_id: int, catalogue: Catalogue, now: datetime) -> Mapping[str, Standing]:
    """The standing of every concept there is evidence for, by its id.

    Cards, problems (issued seeds), free answers, interviews and runs count, each for the concepts its item names
    today; what was done with an item that is gone counts for none.
    """
    return standings_of(gather(session, learner_id), catalogue, now)


def weakest(session: Session, learner_id: int, catalogue: Catalogue, now: datetime) -> tuple[str, ...]:
    """The concepts that are not firm, weakest first: of what there are enough results to say so."""
    return weakest_of(by_concept(session, learner_id, catalogue, now).values())


def weakest_of(standings: Iterable[Standing]) -> tuple[str, ...]:
    """The same of standings that are known."""
    weak = [(each.recent, each.concept_id) for each in standings if each.recent is not None and each.results >= FEWEST]
    return tuple(concept for recent, concept in sorted(weak) if recent < FIRM)


def standings_of(every: Iterable[Evidence], catalogue: Catalogue, now: datetime) -> Mapping[str, Standing]:
    """The same from evidence that was gathered, oldest first."""
    named = concepts_of_items(catalogue)
    found: dict[str, list[Evidence]] = {}
    for each in every:
        for concept in named.get(each.item_id, ()):
            if concept in catalogue.concepts:
                found.setdefault(concept, []).append(each)
    return {concept: _standing(concept, found[concept], now) for concept in catalogue.concepts if concept in found}


def gather(session: Session, learner_id: int) -> list[Evidence]:
    """Everything the rooms know, oldest first."""
    every = (each for room in _ROOMS for each in room.list_evidence(session, learner_id))
    return sorted(every, key=lambda each: each.at)


def concepts_of_items(catalogue: Catalogue) -> Mapping[str, Sequence[str]]:
    """The concepts each card, problem, rubric, interview with its questions, and experiment names, by the item's id."""
    cards = {each.id: each.head.concepts for each in catalogue.cards.values()}
    rooms: tuple[Mapping[str, Any], ...] = (
        catalogue.problems,
        catalogue.rubrics,
        catalogue.interviews,
        catalogue.experiments,
        catalogue.labs,
    )
    named = {item.id: item.concepts for items in rooms for item in items.values()}
    return {**cards, **named, **concepts_by_question(catalogue)}


def log_records(session: Session, learner_id: int) -> Iterator[dict[str, object]]:
    """A learner's whole log, oldest first: the first guess, reviews, variants, attempts, free answers, sittings, runs.

    Each names its kind of record and the time it stands for, and holds every column the database does.
    """
    every = [each for room in (first, *_ROOMS) for each in room.list_records(session, learner_id)]
    yield from sorted(every, key=lambda each: (each["at"], each["record"]))


def _standing(concept: str, evidence: Iterable[Evidence], now: datetime) -> Standing:
    every = list(evidence)
    shares = [each.share for each in every if each.share is not None and now - each.at <= RECENT_FOR][-RECENT:]
    recent = sum(shares) / len(shares) if shares else None
    kinds = Counter(each.kind for each in every)
    return Standing(concept, len(every), every[-1].at, recent, len(shares), kinds)
