"""Where a template's line is wrapped does not reach the page: wrapped text comes out as one line, block by block."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

_BLOCKS = (
    "article|aside|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h1|h2|h3|h4|header|legend|li|main"
    "|nav|ol|optgroup|option|p|section|select|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_WRAPPED = re.compile(r"[ \t]*\n[ \t]+|^[ \t]{2,}")  # Jinja takes away the newline after a statement itself
_AFTER_OPENING = re.compile(rf"(<(?:{_BLOCKS})\b[^<>]*>)[ \t]*\n[ \t]+")
_BEFORE_CLOSING = re.compile(rf"[ \t]*\n[ \t]+(</(?:{_BLOCKS})>)")
_LEFT_OPEN = re.compile(rf"<(?:{_BLOCKS})\b[^<>]*\Z")
_STILL_OPEN = re.compile(r"[^<>]*\Z")
_REST_OF_OPENING = re.compile(r"\A([^<>]*>)[ \t]*\n[ \t]+")
_AS_WRITTEN = re.compile(r"</?(?:pre|textarea|script|style)\b")


class FoldWrappedLines(Extension):
    """Fold a newline with the indentation after it into one space, or into nothing at the edges of a block.

    What stands in `pre`, `textarea`, `script` and `style` stays as it is written. Done once, when a template is loaded.
    """

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        as_written = in_opening = False  # inside pre; inside the opening tag of a block that has an expression in it
        for token in stream:
            if token.type != "data":
                yield token
                continue
            text = _REST_OF_OPENING.sub(r"\1", token.value) if in_opening else token.value
            in_opening = bool(_LEFT_OPEN.search(text) or (in_opening and _STILL_OPEN.match(text)))
            folded, at = [], 0
            for tag in _AS_WRITTEN.finditer(text):
                part = text[at : tag.start()]
                folded.append(part if as_written else fold(part))
                as_written, at = not tag[0].startswith("</"), tag.start()
            folded.append(text[at:] if as_written else fold(text[at:]))
            yield Token(token.lineno, token.type, "".join(folded))


def fold(text: str) -> str:
    """`text` of a page with its wrapped lines joined."""
    text = _BEFORE_CLOSING.sub(r"\1", _AFTER_OPENING.sub(r"\1", text))
    return _WRAPPED.sub(" ", text)
