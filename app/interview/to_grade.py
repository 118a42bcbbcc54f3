"""What there is to grade of a sitting: its answers, and what they go by. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.codelabs.service import Outcome
from app.content.interview_schemas import Interview
from app.interview.parts import Part, Reactions, Values
from app.interview.prompts import prompt
from app.interview.rows import UNPUSHED

Programs = Mapping[str, Outcome]  # what came of programs that were handed in, by the part they answer


@dataclass(frozen=True)
class ToGrade:
    """The parts of a sitting with what was said to them. `built_on` are the answers that later parts go by."""

    interview: Interview
    parts: Sequence[Part]
    values: Values
    answers: Mapping[str, str]
    built_on: Mapping[str, str]
    judged: Mapping[str, Mapping[str, bool]]
    programs: Programs
    reactions: Reactions

    def said(self, part: Part) -> str:
        return self.answers.get(part.id, "").strip()

    def pushed(self, part: Part) -> list[Part]:
        """What the interviewer asked about the answer to `part`."""
        if part.role in UNPUSHED:
            return []
        roles = ("again", "probe", "challenge")
        about = [each for each in self.parts if each.role in roles and each.question is part.question]
        return [each for each in about if each.is_follow_up == part.is_follow_up]

    def asked(self, part: Part) -> str:
        """What was asked, as HTML."""
        return str(prompt(part, self.values, self.built_on) or "")
