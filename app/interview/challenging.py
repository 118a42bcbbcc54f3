"""What is surely false in an answer: it is read back and asked about once, and may be taken back. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.content.challenges import Challenge
from app.content.live import Expressions
from app.content.markdown import render_inline
from app.grading.rubrics.grader import Rubric, false_claims, grade
from app.grading.rubrics.wordings import Wordings
from app.interview.parts import Part, Values, contradicted_by, unlinked

TAKEN_BACK, SAID_AGAIN, LEFT_OPEN = "taken back", "said again", "left open"


@dataclass(frozen=True)
class Held:
    """Something false that an answer says, with its sentence."""

    challenge: Challenge
    said: str


def held_in(part: Part, text: str, known: Values) -> list[Held]:
    """What is false in an answer to `part`, each once, what stands against its points first; nothing that it says and
    takes back itself. Raises ExpressionError."""
    by_id = {each.id: each for each in part.challenges}
    claims = false_claims((each.false for each in by_id.values()), text, part.wordings)
    held = [
        Held(by_id[false.id], said)
        for false, said in claims
        if not _is_taken_back(by_id[false.id], text.replace(said, ""), known, part.wordings)
    ]
    return sorted(held, key=lambda each: not contradicted_by(each.challenge, part))


def heard_reply(challenge: Challenge, reply: str, known: Values, wordings: Wordings) -> str:
    """What a reply does with what was false: takes it back, says it again, or neither that could be heard."""
    if false_claims((challenge.false,), reply, wordings):
        return SAID_AGAIN
    return TAKEN_BACK if _is_taken_back(challenge, reply, known, wordings) else LEFT_OPEN


def _is_taken_back(challenge: Challenge, text: str, known: Values, wordings: Wordings) -> bool:
    if not text.strip():
        return False
    right = Rubric((challenge.right(known),), (), wordings=wordings)
    return grade(right, text).points[0].credit > 0


def asked_of(challenge: Challenge, known: Values) -> str:
    """The question about it, in plain words."""
    return _filled(challenge.file.ask, challenge, known)


def what_is_so(challenge: Challenge, known: Values) -> str:
    """What is so instead, in plain words."""
    return _filled(challenge.file.so, challenge, known)


def _filled(text: str, challenge: Challenge, known: Values) -> str:
    return str(render_inline(text, Expressions(unlinked(challenge.values(known)))).striptags())
