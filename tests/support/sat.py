"""A sitting without a database: answers are given part by part, and the interviewer reacts as the service has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.content.live import Expressions
from app.interview import scorecards, scoring
from app.interview.drawing import draw, values_of
from app.interview.parts import Part, Reaction, Values, built_on, known_to, parts_of, scope_of
from app.interview.prompts import prompt
from app.interview.questions import right_answer
from app.interview.reacting import react


@dataclass
class Sat:
    """A sitting as the service keeps it: what was given, what was asked on account of it, and each prompt as text."""

    interview: Interview
    values: Mapping[str, Any]
    given: dict[str, str] = field(default_factory=dict)
    reactions: dict[str, Reaction] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)

    @property
    def own(self) -> dict[str, str]:
        return built_on(self.given, self.reactions)

    def next(self) -> Part | None:
        """The first part that is asked and not answered."""
        open_parts = (each for each in parts_of(self.interview, self.reactions) if each.id not in self.given)
        return next((each for each in open_parts if prompt(each, self.values, self.own) is not None), None)

    def give(self, part: Part, text: str) -> None:
        self.asked[part.id] = str(prompt(part, self.values, self.own) or "").strip()
        self.given[part.id] = text
        found = react(part, parts_of(self.interview, self.reactions), self.values, self.given, self.reactions)
        if found:
            self.reactions[part.id] = found

    def card(self) -> scorecards.Scorecard:
        return scoring.scorecard(self.interview, self.values, self.given, {}, self.reactions)


def sit(content: Catalogue, identity: str, seed: int = 1) -> Sat:
    interview = content.interviews[identity]
    return Sat(interview, values_of(interview, draw(interview, seed)))


def right_sitting(interview: Interview, seed: int) -> scorecards.Scorecard:
    """A sitting that answers everything in full at once: keys, and exemplars."""
    sat = Sat(interview, values_of(interview, draw(interview, seed)))
    while (part := sat.next()) is not None:
        if part.kind == "text":
            known = Expressions(known_to(part, sat.values, sat.own) or scope_of(part.question, sat.values))
            sat.give(part, " ".join(known.text(known.fill(part.question.exemplar or "")).split()))
        else:
            sat.give(part, right_answer(part, sat.values, sat.own))
    return sat.card()


def asked(content: Catalogue, identity: str, name: str) -> tuple[Part, Values]:
    """A question in words with what is known when it is asked, after right answers."""
    interview = content.interviews[identity]
    values, answers = values_of(interview, draw(interview, 0)), dict[str, str]()
    for part in parts_of(interview):
        known = known_to(part, values, answers)
        if part.id == name:
            assert known is not None
            return part, known
        answers[part.id] = "words" if part.kind == "text" else right_answer(part, values, answers)
    raise AssertionError(name)
