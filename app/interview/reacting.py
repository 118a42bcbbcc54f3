"""How the interviewer reacts to an answer: what is wrong and not in words is questioned once, a heavy point that was
not said is asked for, and who got every number of a question right at once is asked a harder one. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from app.content.interview_schemas import PROBED_FROM, OwnLayout, ProbedPoint
from app.content.live import ExpressionError, Expressions
from app.grading.numbers import within
from app.grading.questions import NumberQuestion
from app.grading.questions.plan_doubts import doubt
from app.grading.rubrics.points import PointGrade
from app.interview.board_doubts import board_doubt
from app.interview.challenging import Held, held_in
from app.interview.discounting import hear_what_is_left
from app.interview.going_back import goes_by_first, replaced_before, said_again
from app.interview.keeping import nearest_in
from app.interview.parts import (
    Answers,
    Part,
    Reaction,
    Reactions,
    Values,
    again_id,
    built_on,
    challenge_id,
    contradicted_by,
    harder_id,
    known_to,
    layout_said,
    own_id,
    probe_id,
    read,
)
from app.interview.picking_up import answered, few_words, picked_up, repeats, subject_of
from app.interview.prompts import WORKED_OUT, probe_question
from app.interview.questions import (
    choice_of,
    configuration_of,
    layout_of,
    leads_somewhere,
    number_of,
    order_of,
    rubric_of,
)
from app.interview.repeats import repeated
from app.interview.replies import Reply, denied_in, heard_in_replies, is_taken_back
from app.units import scaled

SPOKEN_TOLERANCE = 0.05  # relative, of a number that somebody says in a sentence
_WITH_UNIT = re.compile(r"\d[\d,]*(?:\.\d+)? ?(?:[A-Za-zµ]+(?:/s)?|%)")
MOST_PROBES = 2  # of one answer, as a person would ask


def react(
    part: Part, parts: Collection[Part], values: Values, answers: Answers, reactions: Reactions
) -> Reaction | None:
    """What is asked on account of the answer given to `part`, one of `parts`; None where the interviewer goes on.

    `answers` are all that were given, this one too.
    """
    known = known_to(part, values, built_on(answers, reactions))
    if known is None or not leads_somewhere(part, known):
        return None
    try:
        found = _to(part, parts, known, answers, reactions, _numbers_before(part, parts, values, answers))
        is_doubted = found is not None and found.asks == again_id(part.id)
        if found and (remark := _remark(found, part, parts, values, answers, reactions)):
            return replace(found, remark=remark)
        return repeated(found, part, parts, values, answers, reactions) if found and is_doubted else found
    except ExpressionError:
        if part.goes_by_own_numbers:
            return None  # their figure has no consequence, as nothing divides by 0
        raise


def _remark(
    reaction: Reaction, part: Part, parts: Collection[Part], values: Values, answers: Answers, reactions: Reactions
) -> str:
    """What is said first: of a number that was changed when it was questioned and comes up as it was at first, or of a
    board that says something else than the words beside it."""
    if reaction.asks == again_id(part.id) and part.kind == "number" and part.own is None:
        back = goes_by_first(part, parts, values, answers, reactions)
        return back.says if back else ""
    if part.kind != "text" or part.role != "asked":
        return ""
    back = said_again(answers[part.id], list(replaced_before(part, parts, answers, reactions)))
    if back:
        return f"{back.says} I take that one."
    return board_doubt(
        part.id, answers, rubric_of(part, known_to(part, values, built_on(answers, reactions)) or values)
    )


def _to(
    part: Part,
    parts: Collection[Part],
    known: Values,
    answers: Answers,
    reactions: Reactions,
    asked: Sequence[NumberQuestion],
) -> Reaction | None:
    if part.kind == "number" and part.own is None:
        return _to_number(part, parts, known, answers, reactions)
    if part.question.kind == "layout":
        return _to_layout(part, known, answers, asked)
    if part.question.kind == "text":
        return _to_words(part, parts, known, answers, asked)
    to = {"order": _to_order, "choice": _to_choice, "set": _to_choice, "configuration": _to_plan}.get(part.kind)
    return to(part, known, answers) if to and part.role == "asked" else None


def _to_number(
    part: Part, parts: Collection[Part], known: Values, answers: Answers, reactions: Reactions
) -> Reaction | None:
    question = part.question
    if part.role != "asked":
        return None
    number = number_of(part, known)
    found = number.grade(answers[part.id])
    if found.status == "wrong" and found.value is not None:
        said = scaled(found.value, number.unit)
        as_in = _said_before(part, parts, said, answers)
        return Reaction(again_id(part.id), said=said, slip=found.misconception, picked=as_in, yours=found.value)
    was_questioned = question.id in reactions
    if question.harder and is_last_number(part) and not was_questioned and found.status == "correct":
        return Reaction(harder_id(part))
    return None


def _said_before(part: Part, parts: Collection[Part], said: str, answers: Answers) -> str:
    """The title of an earlier question that was answered with the same number; empty where there is none."""
    before = takewhile(lambda each: each.id != part.id, parts)
    numbers = (each for each in before if each.kind == "number" and each.own is None and each.source.unit)
    for each in numbers:
        value = read(answers.get(each.id, ""), each.source.unit or "")
        if value is not None and scaled(value, each.source.unit or "") == said:
            return each.question.title
    return ""


def _to_order(part: Part, known: Values, answers: Answers) -> Reaction | None:
    early = order_of(part, known).too_early(answers[part.id])
    return Reaction(again_id(part.id), said=str(early.text.striptags()), slip=early.id) if early else None


def _to_choice(part: Part, known: Values, answers: Answers) -> Reaction | None:
    """A wrong option that was chosen first; else one that is missing, which is not named."""
    question = choice_of(part, known)
    found, chosen = question.grade(answers[part.id]), question.chosen(answers[part.id]) or ()
    if found.status != "wrong":
        return None
    wrong = next((each for each in chosen if each.id == found.misconception and not each.correct), None)
    said = str(wrong.text.striptags()).rstrip(".") if wrong else ""
    return Reaction(again_id(part.id), said=said, slip=found.misconception)


def _to_plan(part: Part, known: Values, answers: Answers) -> Reaction | None:
    text = answers[part.id]
    found = doubt(configuration_of(part, known), text)
    return Reaction(again_id(part.id), said=text, slip=found.mistake, comes_to=found.comes_to) if found else None


def _to_layout(part: Part, known: Values, answers: Answers, asked: Sequence[NumberQuestion]) -> Reaction | None:
    """A number about the layout first, and who sees then what it comes to may change it."""
    text = answers[part.question.id]
    if part.role == "asked" and (own := about_layout(part, known, text, asked)):
        return Reaction(own_id(part, own))
    question = layout_of(part, known)
    found = question.grade(text)
    if part.role == "again" or found.status == "correct":
        return None
    slip = found.misconception or ""
    # who has just worked out what it comes to is asked what follows from that
    is_it = part.own is not None and part.own.id == WORKED_OUT.get(slip)
    is_right = is_it and number_of(part, known).grade(answers[part.id]).status == "correct"
    worked_out = answers[part.id] if is_right else ""
    mine = _instead(part, known, answers) if part.own is not None else ""
    return Reaction(again_id(part.question.id), said=question.said(text), slip=slip, picked=worked_out, comes_to=mine)


def _instead(part: Part, known: Values, answers: Answers) -> str:
    """What is said to a wrong number about the own layout, which is not asked for again."""
    number = number_of(part, known)
    grade = number.grade(answers[part.id])
    if grade.status != "wrong" or grade.value is None:
        return ""
    return f"Where you have {scaled(grade.value, number.unit)} I get {number.key_text}."


def is_last_number(part: Part) -> bool:
    """Whether nothing follows up on it."""
    return part.is_follow_up or part.question.follow_up is None


def _to_words(
    part: Part, parts: Collection[Part], known: Values, answers: Answers, before: Sequence[NumberQuestion]
) -> Reaction | None:
    """What is asked next, after the answer and the replies to what was asked before: about something false in it, about
    the own layout, then for what was not said."""
    false = held_in(part, answers[part.question.id], known)
    asked_about = [each for each in parts if each.question is part.question and each.challenge]
    if part.role in ("asked", "challenge") and (held := _not_asked_yet(false, asked_about)):
        return Reaction(challenge_id(part, held.challenge), quote=held.said)
    if part.role in ("asked", "challenge") and (own := about_layout(part, known, answers[part.question.id], before)):
        return Reaction(own_id(part, own))
    rubric = rubric_of(part, known)
    said_first = answers[part.question.id]
    heard = hear_what_is_left(rubric, part.question.rubric, said_first, false, quickly=True).points
    probes = [each for each in parts if each.question is part.question and each.role in ("probe", "challenge")]
    replies = heard_in_replies(rubric, probes, known, answers, denied_in(heard))
    asked = {each.point.id for each in probes if each.point}
    owns = [each.own for each in parts if each.question is part.question and each.own]  # as much as a probe each
    challenges = [each.challenge for each in asked_about if each.challenge]  # and these
    asked |= {each.id for each in owns} | {each.id for each in challenges}
    said = (
        {each.instead_of for each in owns if each.instead_of}
        | {each.id for each in heard if each.credit}
        | {point for point, reply in replies.items() if reply.credit}
        | {point for each in challenges for point in contradicted_by(each, part)}  # asked about
    )
    opposed = {each.id for each in heard if each.verdict == "contradicted"}
    near = {each.id: each.evidence for each in heard if each.verdict == "unsure"}
    near |= _answered_already(part, known, answers[part.question.id], (each.id for each in heard if _is_missed(each)))
    point = next_point(part.question.rubric, said, asked, opposed, near)
    if point is None:
        return None
    verdict = next(each for each in heard if each.id == point.id)
    against = verdict.evidence if verdict.verdict == "contradicted" else ()
    quote = min(against, key=lambda each: nearest_in(rubric, point.id, each).lean, default="")
    found = Reaction(probe_id(part, point), quote=quote, astray=not asked and all(map(_is_missed, heard)))
    if point.id in near:
        words = max(near[point.id], key=lambda each: nearest_in(rubric, point.id, each).share)
        is_doubted = nearest_in(rubric, point.id, words).lean < 0
        found = replace(found, quote=words) if is_doubted else replace(found, picked=words, is_near=True)
    if part.own is not None:
        found = replace(found, remark=_instead(part, known, answers))
    return _gone_on(found, part, point, probes, known, answers, replies, denied_in(heard).values())


def _not_asked_yet(false: Iterable[Held], asked_about: Sequence[Part]) -> Held | None:
    """The first of what is false whose sentence was not asked about, while there is a turn for it."""
    asked = {each.reaction.quote for each in asked_about if each.reaction}
    return next((each for each in false if each.said not in asked and len(asked) < MOST_PROBES), None)


def _gone_on(
    reaction: Reaction,
    part: Part,
    point: ProbedPoint,
    probes: Sequence[Part],
    known: Values,
    answers: Answers,
    replies: Mapping[str, Reply],
    opposed: Collection[str],
) -> Reaction:
    """`reaction` with the candidate's own words that it goes on from: of the answer, and of the reply before; none
    twice, and none of what was `opposed` to a point, which is questioned where it is said back."""
    subject, is_heard = subject_of(part.question, part.wordings), False
    if part.challenge is not None:
        is_heard = is_taken_back(part, answers, known)
    elif part.role == "probe" and part.point is not None:
        is_heard = part.point.id in replies and replies[part.point.id].credit > 0
    # what was not heard as right is not said back: it would be taken for agreement
    noted = few_words(answers[part.id], subject) if is_heard else ""
    asked_from = [each.reaction for each in probes if each.reaction]
    gone_from = [noted, *(words for each in asked_from for words in (each.picked, each.quote) if words)]
    if any(words and words in reaction.quote for words in gone_from):
        reaction = replace(reaction, quote="")  # it was asked about before
    ask = probe_question(point, Expressions(known))
    if reaction.quote and answered(ask, reaction.quote, subject):
        reaction = replace(reaction, is_answered=True)
    if not noted and not reaction.is_near:  # one quote is enough
        not_again = (*gone_from, *opposed)
        words = picked_up(point, ask, answers[part.question.id], subject, not_again, reaction.astray)
        reaction = replace(reaction, picked=words or "")
    noted = "" if repeats(noted, reaction.quote) else noted
    return replace(reaction, noted=noted, noted_as_said=bool(noted))


def _answered_already(part: Part, known: Values, said: str, missed: Iterable[str]) -> Iterator[tuple[str, tuple[str]]]:
    """The points that were not heard, and what was said in the words in which they would be asked for."""
    subject, points = subject_of(part.question, part.wordings), {each.id: each for each in part.question.rubric}
    for each in missed:
        if words := answered(probe_question(points[each], Expressions(known)), said, subject):
            yield each, (words,)


def _numbers_before(part: Part, parts: Collection[Part], values: Values, answers: Answers) -> list[NumberQuestion]:
    """The numbers that were asked for before `part`, where it may be asked about an own layout."""
    if not part.question.own:
        return []
    before = [each for each in takewhile(lambda each: each.id != part.id, parts) if each.kind == "number"]
    numbers = ((each, known_to(each, values, answers)) for each in before if each.role in ("asked", "own"))
    return [number_of(each, known) for each, known in numbers if known and leads_somewhere(each, known)]


def about_layout(part: Part, known: Values, text: str, asked: Iterable[NumberQuestion] = ()) -> OwnLayout | None:
    """What is asked about the layout that an answer places or commits to: the first of its questions that holds, unless
    its number was `asked` for in this sitting or stands in the answer. None where there is none."""
    layout = layout_said(part, known, text) if part.question.own else None
    if layout is None:
        return None
    known = {**known, "layout": layout}
    for own in part.question.own:
        if not Expressions(known).truth(own.when):
            continue
        number = number_of(replace(part, own=own), known)
        was_asked = any(each.unit == number.unit and within(each.key, number.key, number.tolerance) for each in asked)
        if not was_asked and not _is_said(number, text):
            return own
    return None


def _is_said(number: NumberQuestion, text: str) -> bool:
    """Whether an answer in words has the number, about as exact as somebody speaks; a bare count may be anything."""
    if number.dimension == "count":
        return False
    said = (read(each, number.unit) for each in _WITH_UNIT.findall(text))
    return any(value is not None and within(value, number.key, SPOKEN_TOLERANCE) for value in said)


def _is_missed(grade: PointGrade) -> bool:
    return grade.verdict == "missed"


def next_point(
    points: Iterable[ProbedPoint],
    said: Iterable[str],
    asked: Iterable[str],
    opposed: Collection[str] = (),
    near: Collection[str] = (),
) -> ProbedPoint | None:
    """The heaviest point that was neither said nor asked for, the first of several, those first of which the opposite
    was said, and last those that something said was near; None once enough was asked."""
    said, asked = set(said), set(asked)
    if len(asked) >= MOST_PROBES:
        return None
    unsaid = [each for each in points if each.ask and each.weight >= PROBED_FROM and each.id not in said | asked]
    return max(unsaid, key=lambda each: (each.id in opposed, each.id not in near, each.weight), default=None)
