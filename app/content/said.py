"""What the content itself says, text by text: the sentences that its checks read.

What others claim is left alone: quotations, shorthands, wrong options, what was done in a slip, and exemplars of weak
answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.content.catalogue import Catalogue
from app.content.handbook import ERRATA, GLOSSARY
from app.content.live import ExpressionError, Expressions
from app.content.rubric_schemas import MISCONCEPTIONS
from app.content.sentences import Location

# Fields of items that say what is wrong, what must be matched, or how it computes.
_WRONG = ("critical", "against", "weak")
_MATCHED = ("met", "partly", "when", "of", "floor")
_COMPUTED = (
    "id",
    "slug",
    "concepts",
    "key",
    "value",
    "let",
    "where",
    "plan",
    "fields",
    "levels",
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "temporary",
    "related",
    "figure",
    "source",
)
_NOT_SAID = frozenset((*_WRONG, *_MATCHED, *_COMPUTED))
_MISTAKEN = frozenset({"slips", "options"})  # what is chosen or done wrong: what we say of it is the message
_WEAK = ("lean no hire", "no hire", "stuffed", "fluent but wrong")
_SECTIONS = ("Answer", "Precise", "Trap")
_OTHERS = re.compile(
    r"“[^”]*”|^:::(?:shorthand|answer)\n.*?^---$|```.*?```|`[^`\n]*`|\$[^$\n]+\$", re.DOTALL | re.MULTILINE
)
_SPOKEN = re.compile(r"“([^“”]*)”")  # a text that is quoted whole is ours, to be said aloud
_WRAPPED = re.compile(r"(?<!\n)\n(?![\n|#:*-])")  # a line that goes on, and begins no row, heading or point
_SPACE = re.compile(r"[^\S\n]+|[\u00a0\u2060]+")
_LIVE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_UNKNOWN = " □ "


def said(catalogue: Catalogue) -> Iterator[tuple[str, Location, str]]:
    """What the content itself says: the key of its source, the place, and the text with its live numbers filled in."""
    for card in catalogue.cards.values():
        yield from _in(card.id, card.head.model_dump(), {})
        for name in _SECTIONS:
            if name in card.source.sections:
                yield card.id, (f"# {name}",), _own_words(card.source.sections[name], {})
    for page in catalogue.pages.values():
        key = f"reference/{page.slug}"
        yield from _in(key, page.head.model_dump(), {})
        yield key, ("# body",), _own_words(page.source.sections["body"], {})
    yield from _in_single(catalogue)
    for rubric in catalogue.rubrics.values():
        yield from _in(f"rubrics/{rubric.id}", rubric.model_dump(), rubric.values())
    for kind in (catalogue.problems, catalogue.interviews, catalogue.experiments):
        for identity, item in kind.items():
            yield from _in(identity, item.model_dump(), {})


def _in_single(catalogue: Catalogue) -> Iterator[tuple[str, Location, str]]:
    """What stands in files of which there is one, and in code labs."""
    for index, term in enumerate(catalogue.handbook.terms.values()):
        yield GLOSSARY, ("terms", index, "says"), _own_words(term.says, {})
    for index, erratum in enumerate(catalogue.handbook.errata.values()):
        yield ERRATA, ("errata", index, "correct"), _own_words(erratum.head.correct, {})
    for index, concept in enumerate(catalogue.concepts.values()):
        yield "concepts.yaml", ("concepts", index, "says"), concept.says
    for index, false in enumerate(catalogue.knowledge.misconceptions):
        yield MISCONCEPTIONS, ("misconceptions", index, "so"), _own_words(false.so, {})
    for challenge in catalogue.challenges:
        name, place = challenge.stands
        yield name, ("challenges", place, "so"), _own_words(challenge.file.so, {})
    for lab in catalogue.labs.values():
        yield from _in(lab.id, lab.head.model_dump(include={"about", "hints", "interview_line", "mistakes"}), {})
        yield lab.id, (), _own_words(lab.statement_text, {})


def _in(identity: str, value: object, values: Mapping[str, float], location: Location = ()) -> Iterator[Any]:
    """The texts in the fields of an item, but for those that say what is wrong."""
    if isinstance(value, str):
        yield identity, location, _own_words(value, values)
    elif isinstance(value, Mapping):
        if value.get("kind") in _WEAK:
            return
        for name, each in value.items():
            if name in _MISTAKEN and isinstance(each, list | tuple):
                messages = [{"message": one["message"]} for one in each if one.get("message")]
                yield from _in(identity, messages, values, (*location, name))
            elif name not in _NOT_SAID and not (name == "parts" and _is_evidence(each)):
                yield from _in(identity, each, values, (*location, name))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _in(identity, each, values, (*location, index))


def _is_evidence(parts: object) -> bool:
    """Whether parts are those of a rubric's point, wordings in lists, and not those of a problem."""
    return isinstance(parts, list | tuple) and not any(isinstance(each, Mapping) for each in parts)


def _own_words(text: str, values: Mapping[str, float]) -> str:
    """`text` without what it quotes, its live numbers as they are shown where they can be computed."""
    known = Expressions(values)

    def shown(match: re.Match[str]) -> str:
        try:
            return known.text(known.fill(match.group()))
        except ExpressionError:
            return _UNKNOWN

    spoken = _SPOKEN.fullmatch(text.strip())
    own = _OTHERS.sub(_UNKNOWN, spoken[1] if spoken else text)
    return _SPACE.sub(" ", _WRAPPED.sub(" ", _LIVE.sub(shown, own)))
