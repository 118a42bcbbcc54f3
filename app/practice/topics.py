"""Where a learner stands with each problem and topic. Pure: results come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.content.problem_schemas import Problem
from app.content.schemas import Concept
from app.core import times
from app.core.moment import Moment
from app.core.share import EIGHTY_PERCENT, Share
from app.practice.desk import is_solved, is_unaided
from app.practice.queries import Settled
from app.words import capital, number_in_words

NEWEST_TRIES = 5  # of a topic: what somebody could do a month ago says little
FEWEST = 3  # tries of a topic that say anything of it
MASTERED = 0.8

State = Literal["solved", "hinted", "missed", "new"]
WORDS: Mapping[State, str] = {"solved": "solved", "hinted": "with a hint", "missed": "not yet", "new": "not tried"}


@dataclass(frozen=True)
class Stand:
    """A problem and its settled variants, oldest first. Trying again can only raise the state."""

    problem: Problem
    tries: tuple[Settled, ...]

    @property
    def state(self) -> State:
        if any(is_unaided(each.score, each.hints_opened) for each in self.tries):
            return "solved"
        if any(is_solved(each.score, each.hints_opened) for each in self.tries):
            return "hinted"
        return "missed" if self.tries else "new"

    @property
    def word(self) -> str:
        return WORDS[self.state]

    @property
    def best(self) -> float | None:
        return max((each.score for each in self.tries), default=None)

    def says(self, moment: Moment) -> str:
        """How it went, and when it was tried last."""
        if not self.tries:
            return WORDS["new"]
        how = {"solved": "solved", "hinted": "solved with a hint", "missed": "missed"}[self.state]
        return f"{how}, last tried {times.day(self.tries[-1].at, moment)}"


@dataclass(frozen=True)
class Topic:
    """Problems about one group of concepts."""

    title: str
    stands: tuple[Stand, ...]

    @property
    def share(self) -> Share:
        """Of the newest tries, those solved without a hint."""
        tries = sorted((each for stand in self.stands for each in stand.tries), key=lambda each: each.at)[
            -NEWEST_TRIES:
        ]
        return Share(sum(is_unaided(each.score, each.hints_opened) for each in tries), len(tries))

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share probably lies: the 80 % interval, wide after few tries."""
        return self.share.wilson(EIGHTY_PERCENT)

    def next_of(self, order: Sequence[str]) -> Stand | None:
        """Its problem that comes first in `order`, of ids; None where none of its is in there."""
        stands = {stand.problem.id: stand for stand in self.stands}
        return next((stands[problem] for problem in order if problem in stands), None)


def topics_of(problems: Iterable[Problem], concepts: Mapping[str, Concept], settled: Iterable[Settled]) -> list[Topic]:
    """Every problem under the group of the first concept it names, in the order of the concepts."""
    tries: dict[str, list[Settled]] = {}
    for each in settled:
        tries.setdefault(each.problem_id, []).append(each)
    titles = dict.fromkeys(concept.group for concept in concepts.values())
    found: dict[str, list[Stand]] = {title: [] for title in titles}
    for problem in problems:
        found[concepts[problem.concepts[0]].group].append(Stand(problem, tuple(tries.get(problem.id, ()))))
    return [Topic(title, tuple(stands)) for title, stands in found.items() if stands]


def weakest_first(topics: Sequence[Topic]) -> list[Topic]:
    """The smallest share first, the better supported one before it; topics without a try come last, as taught."""
    return sorted(topics, key=lambda topic: (not topic.share.count, topic.share.value, -topic.share.count))


def finding(topics: Sequence[Topic]) -> str | None:
    """What the tries say, as a title; None before the first one."""
    tried = [topic for topic in weakest_first(topics) if topic.share.count]
    if not tried:
        return None
    if all(topic.share.count < FEWEST for topic in tried):
        return f"{capital(number_in_words(len(tried)))} {'topic' if len(tried) == 1 else 'topics'} tried so far"
    tried = [topic for topic in tried if topic.share.count >= FEWEST]
    weak = [topic.title for topic in tried if topic.share.value < MASTERED]
    if not weak:
        return "Nothing you tried holds you back"
    return (
        f"{weak[0]} holds you back"
        if len(weak) == 1
        else f"{weak[0]} and {weak[1][0].lower()}{weak[1][1:]} hold you back"
    )
