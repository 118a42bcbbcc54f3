"""Reading what was chosen: ids in a text, in any of the notations people use."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_WORDS = re.compile(r"[^\s,;>→]+")


def read_ids(text: str) -> list[str]:
    """The words of `text`, in lower case: "b, a", "b > a" or "b a"."""
    return [word.lower() for word in _WORDS.findall(text)]


def incomplete(given: Sequence[str], offered: Collection[str], noun: str) -> str | None:
    """What keeps `given` from naming each of `offered` exactly once; None where nothing does."""
    unknown = next((each for each in given if each not in offered), None)
    if unknown is not None:
        return f"{unknown!r} is not offered. Accepted: {', '.join(offered)}."
    twice = next((each for each in given if given.count(each) > 1), None)
    if twice is not None:
        return f"{twice} is chosen twice; each {noun} has one of its own."
    if len(given) < len(offered):
        return f"Every {noun} needs an answer; {len(given)} of {len(offered)} have one."
    return None
