"""Whether every challenge is reached by what it is about, asked at any numbers, and taken back by who knows alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.content.catalogue import Catalogue
from app.content.challenges import CHALLENGES, Challenge
from app.content.checks import Finding
from app.content.live import ExpressionError, Expressions
from app.interview.challenging import SAID_AGAIN, TAKEN_BACK, asked_of, heard_reply, held_in, what_is_so
from app.interview.drawing import draw, values_of
from app.interview.parts import NOTHING_ASKED, Part, Values, challenge_id, known_to, parts_of
from app.interview.probe_checks import EMPTY_REPLIES
from app.interview.questions import right_answer
from app.interview.reacting import react

# Figures that are names, or bytes of a number format: all others of a question are computed.
_NAMES = re.compile(
    r"ZeRO-\d|1F1B|fp32|bf16|\bA100\b|\bH100\b|tensor (?:8|16)|the (?:8|16) |4 \+ 4 \+ 8|2 \+ 2 \+ 4 \+ 8|2\(n − 1\)/n"
)
_COMPUTED = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def check_challenges(catalogue: Catalogue) -> Iterator[Finding]:
    """Each challenge by itself, and after every question in words that it is asked about."""
    shared = next((each.challenges for each in catalogue.interviews.values()), ())
    points = {
        f"{interview.id}.{question.id}.{point.id}"
        for interview in catalogue.interviews.values()
        for question in interview.questions
        for point in question.rubric
    }
    reached = _reached(catalogue)
    for index, each in enumerate(shared):
        try:
            found = [*_alone(each), *(f"it contradicts {name}, which is no point" for name in _unknown(each, points))]
        except ExpressionError as error:
            found = [str(error)]
        if each.id not in reached:
            found.append("no answer in words leads to it")
        elif wrong := reached[each.id]:
            found.append(wrong)
        for reason in found:
            yield CHALLENGES, ("challenges", index), f"{each.id}: {reason}"


def _unknown(challenge: Challenge, points: set[str]) -> Iterator[str]:
    yield from (each for each in challenge.file.contradicts if each not in points)


def _alone(challenge: Challenge) -> Iterator[str]:
    """What is wrong with its words, at the values that it gives itself."""
    file = challenge.file
    for field, text in (("ask", file.ask), ("so", file.so)):
        if figures := re.findall(r"\d[\d,.]*", _NAMES.sub("", _COMPUTED.sub("", text))):
            yield f"{field} says {', '.join(figures)}: compute it"
    if figures := [name for name in file.let if name not in file.ask + file.so + " ".join(file.let.values())]:
        yield f"{', '.join(figures)}: computed, and not said"
    asked_of(challenge, {})
    what_is_so(challenge, {})


def _reached(catalogue: Catalogue) -> dict[str, str]:
    """What is wrong with each challenge after the questions it is asked about, by its id: empty where nothing is."""
    found: dict[str, str] = {}
    for interview in (each for each in catalogue.interviews.values() if not each.is_round):
        values, answers = values_of(interview, draw(interview, 0)), dict[str, str]()
        heard = set[str]()  # at the numbers of this interview
        for part in parts_of(interview):
            if part.kind != "text":
                answers[part.id] = right_answer(part, values, answers) if part.kind != "coding" else ""
                continue
            answers[part.id] = "words"
            known = known_to(part, values, answers)
            assert known is not None, "all before it was answered"
            expressions = Expressions(known)
            full = " ".join(expressions.text(expressions.fill(part.question.exemplar or "")).split())
            for held in held_in(part, full, known):
                found[held.challenge.id] = f"the exemplar of {interview.id}.{part.id} is heard to say it"
            for challenge in part.challenges:
                is_new = challenge.id not in heard
                heard.add(challenge.id)
                wrong = _after(challenge, part, known, values, answers, is_new)
                if wrong:
                    found[challenge.id] = f"after {interview.id}.{part.id}: {wrong}"
                else:
                    found.setdefault(challenge.id, "")
    return found


def _after(
    challenge: Challenge, part: Part, known: Values, values: Values, answers: dict[str, str], hear_replies: bool
) -> str:
    """What is wrong where an answer to `part` says it."""
    file = challenge.file
    reaction = react(part, [part], values, {**answers, part.id: file.example}, NOTHING_ASKED)
    if reaction is None or reaction.asks != challenge_id(part, challenge):
        return f"its example leads to {reaction.asks if reaction else 'nothing'}"
    if not hear_replies:
        return ""
    if (heard := heard_reply(challenge, file.example, file.reply, part, known)) != TAKEN_BACK:
        return f"its reply is {heard}"
    if (heard := heard_reply(challenge, file.example, file.stays, part, known)) != SAID_AGAIN:
        return f"what stays with it is {heard}"
    given_away = (
        each for each in EMPTY_REPLIES if heard_reply(challenge, file.example, each, part, known) == TAKEN_BACK
    )
    return next((f"“{each}” takes it back" for each in given_away), "")
