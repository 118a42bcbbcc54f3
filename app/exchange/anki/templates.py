"""A card's two sides as HTML, from its note's fields and the templates of its note type. Pure.

Of Anki's template language what decides which fields a side shows: fields, sections, clozes. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.exchange.html import BLANK_CLOSE, BLANK_OPEN

MOST_TAGS = 500  # in one template
LONGEST_TEMPLATE = 100_000
_TAG = re.compile(r"\{\{([^{}]{1,300})\}\}")
_ANSWER_RULE = re.compile(r"<hr[^<>]{0,100}id=[\"']?answer[^<>]{0,100}>", re.IGNORECASE)
_CLOZE_MARK = re.compile(r"\{\{c([\d,]{1,20})::|\}\}|::")


@dataclass(frozen=True)
class Sides:
    """The front, and the back without the front it repeats."""

    front: str
    back: str
    has_blank: bool = False


def render_sides(
    front: str, back: str, fields: Mapping[str, str], number: int | None, always: Mapping[str, str] | None = None
) -> Sides:
    """Both sides; `number` is the cloze that the card asks for, None where the note type is no cloze."""
    values = {**fields, **(always or {})}
    shown = _Side(values, number, is_front=True)
    question = shown.render(front)
    answer = _Side(values, number, is_front=False).render(_ANSWER_RULE.sub("", back))
    return Sides(question, answer, BLANK_OPEN in question)


class _Side:
    """Renders one side of a card."""

    def __init__(self, fields: Mapping[str, str], number: int | None, *, is_front: bool) -> None:
        self.fields = fields
        self.number = number
        self.is_front = is_front

    def render(self, template: str) -> str:
        """Sections are left out where their field is empty (or, for ^, where it is not)."""
        made: list[str] = []
        hidden: list[tuple[str, bool]] = []  # open sections, and whether each hides what is in it
        at = 0
        for count, tag in enumerate(_TAG.finditer(template[:LONGEST_TEMPLATE])):
            if count >= MOST_TAGS:
                break
            visible = not any(hides for _, hides in hidden)
            if visible:
                made.append(template[at : tag.start()])
            at = tag.end()
            mark, name = tag.group(1)[:1], tag.group(1)[1:].strip()
            if mark in "#^":
                hidden.append((name, self._is_filled(name) != (mark == "#")))
            elif mark == "/":
                if hidden and hidden[-1][0] == name:
                    hidden.pop()
            elif visible:
                made.append(self._field(tag.group(1).strip()))
        made.append(template[at:LONGEST_TEMPLATE])
        return "".join(made)

    def _is_filled(self, name: str) -> bool:
        found = re.fullmatch(r"c(\d{1,3})", name)
        if found:
            return self.number == int(found.group(1))
        return bool(re.sub(r"<[^>]{0,200}>|&nbsp;|\s", "", self.fields.get(name, "")))

    def _field(self, tag: str) -> str:
        *filters, name = tag.split(":")
        filters, value = [each.strip() for each in filters], self.fields.get(name.strip(), "")
        if name.strip() == "FrontSide":
            return ""
        if any(each == "type" for each in filters) and self.is_front:
            return ""
        if "cloze" in filters or (self.number is not None and "cloze-only" in filters):
            return cloze(value, self.number) if self.is_front and self.number is not None else ""
        return value


def cloze(text: str, number: int | None) -> str:
    """`text` with the clozes of `number` as blanks and the others as their text."""
    made: list[str] = []
    stack: list[tuple[bool, list[str]]] = []  # open clozes: whether each is asked for, and its hint
    at = 0
    for mark in _CLOZE_MARK.finditer(text):
        _append(made, stack, text[at : mark.start()])
        at = mark.end()
        if mark.group(1):
            asked = str(number) in mark.group(1).split(",")
            stack.append((asked, []))
            made.append(BLANK_OPEN if asked else "")
        elif mark.group() == "::" and stack and not stack[-1][1]:
            stack[-1][1].append("")  # what follows is the hint
        elif mark.group() == "}}" and stack:
            asked, hint = stack.pop()
            made.append(BLANK_CLOSE if asked else "")
            said = "".join(hint).strip()
            made.append(f" ({said})" if asked and said else "")
        else:
            _append(made, stack, mark.group())
    _append(made, stack, text[at:])
    made += [BLANK_CLOSE for asked, _ in stack if asked]
    return "".join(made)


def _append(made: list[str], stack: list[tuple[bool, list[str]]], piece: str) -> None:
    """To the text, or to the hint of the innermost cloze where one began."""
    (stack[-1][1] if stack and stack[-1][1] else made).append(piece)
