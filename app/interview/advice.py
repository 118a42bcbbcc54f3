"""A point of a rubric as it is said to somebody: what they would do, or what there was to say. Pure."""

from __future__ import annotations

import re

from app.words import capital

# Points say what a full answer does ("Plans for failures"); others say what is so ("Buckets must be the same").
_DOES = re.compile(
    "add|announce|ask|change|check|close|commit|compare|compute|conclude|decide|end|expect|explain|give|go|interleave|"
    "justify|look|measure|name|note|plan|prevent|put|read|replay|rule|say|separate|state|take|test|try|use"
)


def is_done(point: str) -> bool:
    """Whether a point says what somebody does."""
    return _verb(point) is not None


def as_advice(point: str) -> str:
    """What to do, of a point that says what somebody does: “Plan for failures”."""
    verb = _verb(point) or ""
    return " ".join((capital(verb), *point.split()[1:]))


def lowered(text: str) -> str:
    """`text` as a sentence goes on with it: a name keeps its capitals."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return text if any(map(str.isupper, first[1:])) or first == "I" else text[:1].lower() + text[1:]


def _verb(point: str) -> str | None:
    """The verb that a point begins with, as one is told to do it."""
    first = (point.split(maxsplit=1) or [""])[0].rstrip(":,").lower()
    forms = (first.removesuffix("ies") + "y", first.removesuffix("es"), first.removesuffix("s"))
    return next((each for each in forms if each != first and _DOES.fullmatch(each)), None)
