"""Whether every challenge is reached by what it is about, asked at any numbers, taken back by who knows alone, and
heard in nothing that is right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from app.content.catalogue import Catalogue
from app.content.challenges import Challenge, Misbelief
from app.content.checks import Finding
from app.content.interview_schemas import Interview
from app.content.live import ExpressionError, Expressions
from app.content.rubric_schemas import MISCONCEPTIONS
from app.grading.rubrics.grader import false_claims
from app.grading.rubrics.reading import NO_WORDINGS
from app.grading.rubrics.wordings import Wordings
from app.interview.challenging import SAID_AGAIN, TAKEN_BACK, asked_of, heard_reply, what_is_so
from app.interview.drawing import draw, values_of
from app.interview.parts import NOTHING_ASKED, Part, Values, challenge_id, known_to, parts_of
from app.interview.probe_checks import EMPTY_REPLIES
from app.interview.questions import right_answer, said_of
from app.interview.reacting import react

# Figures that are names, or bytes of a number format: all others of a question are computed.
_NAMES = re.compile(
    r"ZeRO-\d|1F1B|6ND|fp16|fp32|bf16|\bA100\b|\bH100\b|tensor (?:8|16)|the (?:8|16) |4 \+ 4 \+ 8"
    r"|2 \+ 2 \+ 4 \+ 8|2\(n − 1\)/n"
)
_COMPUTED = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_GOOD = ("strong hire", "hire")  # exemplars that say nothing false


def check_challenges(catalogue: Catalogue) -> Iterator[Finding]:
    """Each challenge by itself, and after every question in words that it is asked about."""
    shared = next((each.challenges for each in catalogue.interviews.values()), ())
    wordings = next((each.wordings for each in catalogue.interviews.values()), NO_WORDINGS)
    questioned = _questioned(shared, catalogue, wordings)
    points = {
        f"{interview.id}.{question.id}.{point.id}"
        for interview in catalogue.interviews.values()
        for question in interview.questions
        for point in question.rubric
    }
    reached = _reached(catalogue)
    for each in shared:
        try:
            found = [*_alone(each), *(f"it contradicts {name}, which is no point" for name in _unknown(each, points))]
        except ExpressionError as error:
            found = [str(error)]
        if each.id not in reached:
            found.append("no answer in words leads to it")
        elif wrong := reached[each.id]:
            found.append(wrong)
        found += _also_heard(each, shared, wordings)
        found += (f"what is right is heard to say it: “{text}”" for text in questioned.get(each.id, ()))
        source, number = each.stands
        for reason in found:
            yield source, ("challenges", number), f"{each.id}: {reason}"


def check_misbeliefs(catalogue: Catalogue) -> Iterator[Finding]:
    """Misconceptions that are heard in exemplars and right claims of a question whose answers are heard for them."""
    places = {each.id: index for index, each in enumerate(catalogue.knowledge.misconceptions)}
    told = set[tuple[str, str]]()
    for interview in catalogue.interviews.values():
        for part, known, _, _ in _asked_in_words(interview):
            misbeliefs = [each.false for each in part.challenges if isinstance(each, Misbelief)]
            right = [each.text for each in said_of(part, known) if each.truth == "right"]
            for text in (_exemplar(part, known), *right):
                for false, said in false_claims(misbeliefs, text, part.wordings):
                    if (false.id, said) not in told:
                        told.add((false.id, said))
                        reason = f"{false.id}: what is right in {interview.id}.{part.id} is heard to say it: “{said}”"
                        yield MISCONCEPTIONS, ("misconceptions", places[false.id], "says"), reason


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


def _also_heard(challenge: Challenge, shared: tuple[Challenge, ...], wordings: Wordings) -> Iterator[str]:
    """What is heard beside it in what says it, so that something else might be asked."""
    for text in (challenge.file.example, challenge.file.stays):
        for false, _ in false_claims((each.false for each in shared), text, wordings):
            if false.id != challenge.id:
                yield f"“{text}” is heard to say {false.id} as well"


def _questioned(shared: tuple[Challenge, ...], catalogue: Catalogue, wordings: Wordings) -> Mapping[str, list[str]]:
    """What content holds for right and would be questioned all the same, by the challenge that is heard in it."""
    found: dict[str, list[str]] = {}
    for text in dict.fromkeys((*_beside(shared), *_right_in_rubrics(catalogue), *_right_in_interviews(catalogue))):
        for false, said in false_claims((each.false for each in shared), text, wordings):
            found.setdefault(false.id, []).append(said)
    return found


def _beside(shared: Iterable[Challenge]) -> Iterator[str]:
    for each in shared:
        yield from (*each.file.passes, each.file.learn)


def _right_in_rubrics(catalogue: Catalogue) -> Iterator[str]:
    for rubric in catalogue.rubrics.values():
        claims = rubric.knowledge.claims.get(rubric.id)
        yield from (each.text for each in (claims.claims() if claims else ()) if each.truth == "right")
        yield from (" ".join(rubric.exemplar(each.kind).split()) for each in rubric.exemplars if each.kind in _GOOD)


def _right_in_interviews(catalogue: Catalogue) -> Iterator[str]:
    """Exemplars and right claims at the numbers of one sitting."""
    for interview in catalogue.interviews.values():
        for part, known, _, _ in _asked_in_words(interview):
            yield _exemplar(part, known)
            yield from (each.text for each in said_of(part, known) if each.truth == "right")


def _asked_in_words(interview: Interview) -> Iterator[tuple[Part, Values, Values, dict[str, str]]]:
    """The questions in words of a sitting, with what is known by then, its values, and what was answered: what is right
    to all that they build on. Those of a round build on nothing."""
    if all(each.kind != "text" for each in interview.questions):
        return
    values, answers = values_of(interview, draw(interview, 0)), dict[str, str]()
    for part in parts_of(interview):
        if part.kind != "text":
            answers[part.id] = "" if interview.is_round else right_answer(part, values, answers)
            continue
        answers[part.id] = "words"
        known = known_to(part, values, answers)
        assert known is not None, "all before it was answered"
        yield part, known, values, answers


def _exemplar(part: Part, known: Values) -> str:
    expressions = Expressions(known)
    return " ".join(expressions.text(expressions.fill(part.question.exemplar or "")).split())


def _reached(catalogue: Catalogue) -> dict[str, str]:
    """What is wrong with each challenge after the first question of each interview that it is asked about, by its id:
    empty where nothing is."""
    found: dict[str, str] = {}
    for interview in catalogue.interviews.values():
        heard = set[str]()  # at the numbers of this interview
        for part, known, values, answers in _asked_in_words(interview):
            asked_about = frozenset(part.question.concepts or interview.concepts)
            for challenge in part.challenges:
                if isinstance(challenge, Misbelief) or challenge.concepts.isdisjoint(asked_about):
                    continue
                if challenge.id in heard:
                    continue
                heard.add(challenge.id)
                if wrong := _after(challenge, part, known, values, answers):
                    found[challenge.id] = f"after {interview.id}.{part.id}: {wrong}"
                else:
                    found.setdefault(challenge.id, "")
    return found


def _after(challenge: Challenge, part: Part, known: Values, values: Values, answers: dict[str, str]) -> str:
    """What is wrong where an answer to `part` says it."""
    file = challenge.file
    reaction = react(part, [part], values, {**answers, part.id: file.example}, NOTHING_ASKED)
    if reaction is None or reaction.asks != challenge_id(part, challenge):
        return f"its example leads to {reaction.asks if reaction else 'nothing'}"
    if (heard := heard_reply(challenge, file.example, file.reply, part, known)) != TAKEN_BACK:
        return f"its reply is {heard}"
    if (heard := heard_reply(challenge, file.example, file.stays, part, known)) != SAID_AGAIN:
        return f"what stays with it is {heard}"
    given_away = (
        each for each in EMPTY_REPLIES if heard_reply(challenge, file.example, each, part, known) == TAKEN_BACK
    )
    return next((f"“{each}” takes it back" for each in given_away), "")
