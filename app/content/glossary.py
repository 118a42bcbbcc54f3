"""The glossary, and marking its terms where they first stand in a text: once, when the content is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from app.content.page_schemas import Term

# Text inside these stays as it is: they lead somewhere, are read letter by letter, or are drawn.
_LEFT_ALONE = frozenset(
    {
        "a",
        "button",
        "code",
        "pre",
        "math",
        "svg",
        "figure",
        "figcaption",
        "h1",
        "h2",
        "h3",
        "h4",
        "th",
        "summary",
    }
)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*>")
_WORD = re.compile(r"[A-Za-z0-9][\w-]*")
_CLOSING = re.compile(r"[.,;:!?)”’]+")
_BUTTON = Markup('<button type="button" class="gloss" title="{}">{}</button>')
_CLOSED = Markup('<span class="nobr">{}{}</span>')  # a browser breaks lines after a button, before its full stop too


def anchor(text: str) -> str:
    """`text` as the end of an address: "All-reduce (ring)" is "all-reduce-ring"."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass(frozen=True)
class _Phrase:
    term: Term
    pattern: re.Pattern[str]
    length: int


def _phrase(term: Term, text: str) -> _Phrase:
    # MFU is an acronym only in capitals; a gradient may start a sentence
    flags = re.IGNORECASE if text[1:].islower() or not any(map(str.isalpha, text)) else re.NOFLAG
    return _Phrase(term, re.compile(re.escape(text) + r"(?:s|es)?(?![\w-])", flags), len(text))


class Marker:
    """Finds terms in rendered HTML by their first word, so that a text costs a look-up a word."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._by_first_word: dict[str, list[_Phrase]] = {}
        for term in terms:
            for text in (term.term, *term.also) if term.mark else ():
                first = _WORD.search(text)
                if first:
                    self._by_first_word.setdefault(first.group().lower(), []).append(_phrase(term, text))
        for phrases in self._by_first_word.values():
            phrases.sort(key=lambda phrase: -phrase.length)

    def mark(self, html: Markup, seen: set[str] | None = None) -> Markup:
        """`html` with the first occurrence of each term marked; `seen` are the terms that were, and grows."""
        met = set[str]() if seen is None else seen
        return Markup("".join(self._pieces(str(html), met)))  # noqa: S704 - our own HTML, with escaped buttons in it

    def _pieces(self, html: str, seen: set[str]) -> Iterator[str]:
        inside, at = 0, 0
        for tag in _TAG.finditer(html):
            yield html[at : tag.start()] if inside else self._text(html[at : tag.start()], seen)
            yield tag.group()
            at = tag.end()
            if tag.group(2).lower() in _LEFT_ALONE and not tag.group().endswith("/>"):
                inside += -1 if tag.group(1) else 1
        yield html[at:] if inside else self._text(html[at:], seen)

    def _text(self, text: str, seen: set[str]) -> str:
        made, at = "", 0
        for word in _WORD.finditer(text):
            if word.start() < at:
                continue
            found = self._at(text, word, seen)
            if found:
                phrase, end = found
                seen.add(phrase.term.term)
                shown = Markup(text[word.start() : end])  # noqa: S704 - escaped already, as it stood
                button, closing = _BUTTON.format(phrase.term.says, shown), _CLOSING.match(text, end)
                if closing:
                    button, end = _CLOSED.format(button, closing.group()), closing.end()
                made += text[at : word.start()] + str(button)  # added to a Markup, text is escaped
                at = end
        return made + text[at:]

    def _at(self, text: str, word: re.Match[str], seen: set[str]) -> tuple[_Phrase, int] | None:
        first = word.group().lower()
        for key in (first, first.removesuffix("s"), first.removesuffix("es")):
            for phrase in self._by_first_word.get(key, ()):
                found = phrase.pattern.match(text, word.start())
                if found and phrase.term.term not in seen:
                    return phrase, found.end()
        return None
