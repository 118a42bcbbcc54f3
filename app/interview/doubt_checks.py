"""Whether every wrong number, choice, set and plan is questioned, in words that do not say what is right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product

from markupsafe import Markup

from app.content.interview_schemas import Interview
from app.content.live import Expressions
from app.grading.questions import ChoiceQuestion
from app.grading.questions.plan_doubts import doubt
from app.grading.rubrics.quotes import topic
from app.interview.on_the_way import on_the_way
from app.interview.parts import NOTHING_ASKED, Answers, Part, Values, known_to, parts_of, unlinked
from app.interview.prompts import CAN_IT_BE, asked_on_the_way, prompt
from app.interview.questions import choice_of, configuration_of, number_of
from app.interview.reacting import react
from app.units import SCALES

_FIGURE = re.compile(r"\d[\d,.]*")
GIVEN_AWAY = 0.5  # of the words of a right option: a question with more of them names it
LONGER = 1.25  # times the longest wrong option: a longer one is right, as everybody knows who has sat a test
TRIED = 12  # plans, of all that can be put together


def doubt_findings(part: Part, interview: Interview, values: Values, answers: Answers) -> Iterator[str]:
    """What is wrong with what is asked about an answer to `part` that is wrong."""
    known = known_to(part, values, answers)
    assert known is not None, "asked, so it is known"
    if part.kind == "configuration":
        yield from _planned(part, interview, values, answers)
        return
    question = choice_of(part, known)
    if not question.several and (longer := _stands_out(question)):
        yield f"{part.id}: {longer}"
    for option, said in _misjudged(question):
        asked = _asked(part, interview, values, {**answers, part.id: said})
        if asked is None or asked[0] != option:
            yield f"{part.id}: nobody is asked about {option}: {asked}"
            continue
        named = [each.id for each in question.right if each.id not in said and _names(asked[1], each.text.striptags())]
        if named:
            yield f"{part.id}: what is asked about {option} names what is right, {', '.join(named)}"


def number_doubt_findings(part: Part, interview: Interview, values: Values, said: Answers) -> Iterator[str]:
    """What is wrong with what is asked about the wrong number that is `said` for `part`, which no slip explains: it
    must be said by theory, without the right number, and what it asks for on the way must be a number that it knows
    again, and that is not taken for the number itself."""
    found = react(part, parts_of(interview), values, said, NOTHING_ASKED)
    again = next(
        (each for each in parts_of(interview, {part.id: found} if found else {}) if each.role == "again"), None
    )
    if found is None or again is None:
        yield f"{part.id}: nobody is asked about {said[part.id]}"
        return
    if part.source.doubt is None:
        yield f"{part.id} needs doubt, what is asked about a wrong number that is no slip"
        return
    if any(each.id == found.slip for each in part.source.slips):
        return
    known = known_to(again, values, said) or {}
    asked, number = prompt(again, values, said) or Markup(), number_of(again, known)
    if CAN_IT_BE in asked:
        yield f"the doubt of {part.id} cannot be said of {said[part.id]}"
    if "data-live" in asked:
        yield f"the doubt of {part.id} links to a formula: name the value in let"
    right = re.compile(rf"(?<![\d.,]){re.escape(number.by_own.key_text)}(?![\d.,])")
    if number.dimension != "count" and right.search(asked.striptags()):
        yield f"what is asked about {said[part.id]} says the right number, {number.key_text}"
    figure = asked_on_the_way(again, found)
    if figure is None:
        return
    value = float(Expressions(unlinked(known)).number(figure.key))
    if value <= 0:
        yield f"the number on the way to {part.id} is {value}"
    text = f"{value / SCALES[figure.unit][1]!r} {figure.unit}"
    if number.grade(text).status != "correct" and not on_the_way(again, known, text):
        yield f"{text}, which the doubt of {part.id} asks for, is not known again"


def _stands_out(question: ChoiceQuestion) -> str:
    """How the right option can be told from the others without knowing; empty where it cannot."""
    right, wrong = (
        [str(each.text.striptags()) for each in question.options if each.correct is is_right]
        for is_right in (True, False)
    )
    longest, figures = max(map(len, wrong)), max(len(_FIGURE.findall(each)) for each in wrong)
    if any(len(each) > LONGER * longest + 8 for each in right):
        return f"the right option has {max(map(len, right))} letters, and the longest wrong one {longest}"
    if any(len(_FIGURE.findall(each)) > figures + 1 for each in right):
        return f"the right option alone has figures; of the wrong ones none has more than {figures}"
    return ""


def _misjudged(question: ChoiceQuestion) -> Iterator[tuple[str, str]]:
    """Each option that can be misjudged, and an answer that misjudges it alone."""
    for option in question.options:
        if not question.several:
            if not option.correct:
                yield option.id, option.id
            continue
        chosen = [each for each in question.key if each != option.id] + ([] if option.correct else [option.id])
        if chosen:
            yield option.id, ", ".join(chosen)


def _names(asked: str, right: str) -> bool:
    """Whether most words of what is right stand in a question."""
    words = topic(right)
    return len(words & topic(asked)) > GIVEN_AWAY * len(words)


def _planned(part: Part, interview: Interview, values: Values, answers: Answers) -> Iterator[str]:
    question = configuration_of(part, known_to(part, values, answers) or {})
    plans = list(product(*question.fields.values()))
    best = question.best().text
    for chosen in islice(plans, 0, None, max(1, len(plans) // TRIED)):
        said = ", ".join(f"{name} {value}" for name, value in zip(question.fields, chosen, strict=True))
        wrong, asked = doubt(question, said), _asked(part, interview, values, {**answers, part.id: said})
        if (question.grade(said).status == "wrong") != (asked is not None):
            yield f"{part.id}: {said} is {'not asked about' if asked is None else 'right, and asked about'}"
        elif asked and wrong and (wrong.comes_to not in asked[1] or best in asked[1]):
            yield f"{part.id}: what is asked about {said} names {best}, or not what it comes to"


def _asked(part: Part, interview: Interview, values: Values, answers: Answers) -> tuple[str | None, str] | None:
    """The slip that is found in an answer, and what is asked about it; None where nothing is."""
    found = react(part, parts_of(interview), values, answers, NOTHING_ASKED)
    if found is None:
        return None
    again = next(each for each in parts_of(interview, {part.id: found}) if each.role == "again")
    asked = (prompt(again, values, answers) or Markup()).striptags()
    return found.slip, asked.replace(found.said, "") if found.said else asked
