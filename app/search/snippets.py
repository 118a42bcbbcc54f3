"""The few words around what was found, with the found words told apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from app.search.index import words

SNIPPET_WORDS = 26
_TOKEN = re.compile(r"\w+(?:[-.,]\w+)*")


@dataclass(frozen=True)
class Piece:
    """A part of a snippet; `is_hit` where it is what was asked for."""

    text: str
    is_hit: bool


def highlight(text: str, matched: frozenset[str]) -> list[Piece]:
    """`text` cut into what was found and what stands between."""
    pieces: list[Piece] = []
    at = 0
    for token in _TOKEN.finditer(text):
        if _is_hit(token.group(), matched):
            pieces += [Piece(text[at : token.start()], False), Piece(token.group(), True)]
            at = token.end()
    pieces.append(Piece(text[at:], False))
    return [piece for piece in pieces if piece.text]


def snippet(text: str, matched: frozenset[str]) -> list[Piece]:
    """The stretch of `text` with most of the found words, highlighted; nothing where none of them is in it."""
    tokens = text.split()
    hits = [index for index, token in enumerate(tokens) if _is_hit(token, matched)]
    if not hits:
        return highlight(_joined(tokens, 0), matched)
    start = max(hits, key=lambda hit: (_different(tokens[hit : hit + SNIPPET_WORDS - 4], matched), -hit))
    return highlight(_joined(tokens, max(0, min(start - 4, len(tokens) - SNIPPET_WORDS))), matched)


def _joined(tokens: list[str], start: int) -> str:
    shown = " ".join(tokens[start : start + SNIPPET_WORDS])
    return ("… " if start else "") + shown + (" …" if start + SNIPPET_WORDS < len(tokens) else "")


@lru_cache(maxsize=16384)  # the same few thousand words stand in all texts
def _words(token: str) -> tuple[str, ...]:
    found = words(token)
    return (*found, "".join(found))


def _is_hit(token: str, matched: frozenset[str]) -> bool:
    return any(word in matched for word in _words(token))


def _different(tokens: list[str], matched: frozenset[str]) -> int:
    return len({word for token in tokens for word in _words(token) if word in matched})
