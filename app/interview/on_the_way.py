"""A reply that says the number which was asked for on the way, and not the one that is wanted in the end. Pure.

Who is asked "How many nodes do you order for that?" about a number of GPUs says "62 nodes". That is no wrong number of
GPUs, and is not taken as one: the interviewer goes on from it.
"""

from __future__ import annotations

from app.content.live import ExpressionError, Expressions
from app.content.schemas import Figure
from app.grading.numbers import within
from app.grading.quantities import Unreadable, read_quantity
from app.interview.parts import Part, Values, unlinked
from app.interview.prompts import asked_on_the_way
from app.interview.questions import number_of
from app.units import SCALES, UNITS, scaled

ABOUT = 0.02  # relative: how near what was asked for on the way has to be met
FAR = 1e4  # times as large or small as what is wanted and as what was said first: it is a number of something else

THEN = "Go on from there to the number that I asked for at first."


def on_the_way(part: Part, known: Values, text: str) -> str:
    """What the interviewer says to `text`, a reply to `part`, where it is not yet the number asked for; empty where it
    is one, right or wrong, or none at all."""
    if part.role != "again" or part.kind != "number" or part.reaction is None or part.reaction.yours is None:
        return ""
    number = number_of(part, known)
    found = number.grade(text)
    if found.status == "correct" or (found.value is not None and within(found.value, part.reaction.yours, ABOUT)):
        return ""
    figure = asked_on_the_way(part, part.reaction)
    if figure is not None and (said := _met(figure, known, text)):
        return f"{said}: that answers what I asked you on the way. {THEN}"
    near = (number.by_own.key, number.key, part.reaction.yours)
    if found.value and all(_is_far(abs(found.value), abs(each)) for each in near):
        return f"{scaled(found.value, number.unit)} is too far off to be meant. {THEN}"
    return ""


def _is_far(value: float, other: float) -> bool:
    return not value or not other or max(value / other, other / value) > FAR


def _met(figure: Figure, known: Values, text: str) -> str:
    """`figure` as it is written, where `text` says it."""
    dimension = SCALES[figure.unit][0]
    try:
        key = float(Expressions(unlinked(dict(known))).number(figure.key))
        value = read_quantity(text, dimension, figure.unit if figure.unit in UNITS else None).value
    except (ExpressionError, Unreadable):
        return ""
    return scaled(key, figure.unit) if within(value, key, ABOUT) else ""
