"""The fields of preparation.yaml: the checkpoints on the way to an interview, and the order of new decks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from app.content.schemas import DeckId, InterviewId, ProblemId, Strict, Text

FEWEST_MINUTES, MOST_MINUTES = 5, 480  # a day, of any preparation
FURTHEST_DAYS = 365

Day = Annotated[int, Field(ge=0, le=FURTHEST_DAYS)]


class Checkpoint(Strict):
    """What to be able to do by `day`, as `tasks` to try, and what a learner must have done to have passed it.

    Of a deck every card was `met`, or is recalled (`firm`); a problem was `solved`, `unaided` by hints or `timed`
    by a clock; an interview ended in a hire; a `timed_set` is several problems in one go.
    """

    day: Day
    title: Text
    tasks: Annotated[tuple[Text, ...], Field(min_length=1)]
    met: tuple[DeckId, ...] = ()
    firm: tuple[DeckId, ...] = ()
    solved: tuple[ProblemId, ...] = ()
    unaided: tuple[ProblemId, ...] = ()
    timed: tuple[ProblemId, ...] = ()
    interviews: tuple[InterviewId, ...] = ()
    timed_set: bool = False

    @property
    def decks(self) -> tuple[str, ...]:
        return (*self.met, *self.firm)


class Preparation(Strict):
    """A preparation of `days`: its checkpoints, the order of new decks, and the time a day that it starts from."""

    days: Annotated[int, Field(ge=1, le=FURTHEST_DAYS)] = 21
    minutes_per_day: Annotated[int, Field(ge=FEWEST_MINUTES, le=MOST_MINUTES)] = 30
    decks: tuple[DeckId, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()

    @model_validator(mode="after")
    def _checkpoints_follow_each_other(self) -> Preparation:
        days = [checkpoint.day for checkpoint in self.checkpoints]
        if days != sorted(set(days)):
            raise ValueError("checkpoints stand in the order of their days, one a day")
        if days and days[-1] > self.days:
            raise ValueError(f"the checkpoint of day {days[-1]} comes after the preparation's {self.days} days")
        return self
