"""Markdown to HTML on the server, mathematics to MathML: pages read without script."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markupsafe import Markup, escape

from app.content.live import ExpressionError, Expressions, is_plain

_REFERENCE = re.compile(r"&amp;(#x[0-9A-Fa-f]+;)")
_MATH = re.compile(r"\$([^$\n]+)\$([.,;:?!)]*)")  # and the punctuation that no line begins with
_FENCED = re.compile(r"^(```[^\n]*\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\[\[(.+?)\]\]")
GAP = Markup('<span class="gap"><span class="visually-hidden">blank</span></span>')  # what a blank shows while asked
_RENDERER = MarkdownIt("commonmark", {"html": False, "typographer": True}).enable(
    ["table", "replacements", "smartquotes"]
)


def _program(renderer: RendererHTML, tokens: Any, index: int, *more: Any) -> str:
    """A program may be wider than the page: it scrolls in a box of its own, which the keyboard must reach."""
    return renderer.fence(tokens, index, *more).replace("<pre>", '<pre tabindex="0">', 1)


_RENDERER.add_render_rule("fence", _program)


@lru_cache(maxsize=4096)  # decks repeat their symbols, and one takes up to a millisecond
def mathml(latex: str, display: bool = False) -> Markup:
    """LaTeX as MathML. Raises ExpressionError."""
    try:
        element = convert_to_element(latex, display="block" if display else "inline")
    except Exception as error:  # the converter has one class for each mistake, and no common parent
        raise ExpressionError(f"${latex}$: {type(error).__name__} {error}".rstrip()) from None
    # Its own way to text unescapes everything, so that \text{<b>} would be markup. Only its character references may.
    return Markup(_REFERENCE.sub(r"&\1", tostring(element, encoding="unicode")))  # noqa: S704


def render(source: str, expressions: Expressions | None = None) -> Markup:
    """A block of Markdown with `$math$` and `{{ expressions }}`. Raises ExpressionError."""
    known = expressions or Expressions()
    return known.place(_RENDERER.render(_filled(source, known)))


def render_inline(source: str, expressions: Expressions | None = None) -> Markup:
    """The same for a single line: no paragraph around it."""
    return _plain_inline(source) if is_plain(source) else _render_inline(source, expressions or Expressions())


@lru_cache(maxsize=8192)  # what stands in no variant's numbers is the same in all of them
def _plain_inline(source: str) -> Markup:
    return _render_inline(source, Expressions())


def _render_inline(source: str, known: Expressions) -> Markup:
    return known.place(_inline(_filled(source, known)))


@lru_cache(maxsize=8192)
def _inline(filled: str) -> str:
    """Kept: a problem's lines are the same at every seed but for what is placed afterwards, as live numbers are."""
    return str(_RENDERER.renderInline(filled))


def render_cloze(source: str) -> Markup:
    """A block of Markdown whose `[[text]]` are blanks: each holds its gap and its text, and the page shows one."""
    known = Expressions()
    filled = _BLANK.sub(lambda m: known.keep(_blank(m.group(1), known)), _filled(source, known))
    return known.place(_RENDERER.render(filled))


def _filled(source: str, known: Expressions) -> str:
    """`source` with its expressions and mathematics set. A program keeps its braces and dollars."""
    kept = _FENCED.sub(lambda m: f"{m.group(1)}{known.keep(escape(m.group(2).rstrip()))}\n", source)
    return _MATH.sub(lambda m: known.keep(_closed(mathml(m.group(1)), m.group(2))), known.fill(kept))


def _closed(formula: Markup, punctuation: str) -> Markup:
    """A formula and what closes it, on one line."""
    return Markup('<span class="unbroken">{}{}</span>').format(formula, punctuation) if punctuation else formula


def _blank(text: str, known: Expressions) -> Markup:
    """What stands in a blank may hold numbers and mathematics that are set already."""
    return Markup('<span class="blank">{}<span class="fill">{}</span></span>').format(
        GAP, known.place(_RENDERER.renderInline(text))
    )


def render_plain(source: str, expressions: Expressions) -> str:
    """The Markdown itself with its expressions evaluated: for terminals, where tables and formulas read as typed."""
    return expressions.text(expressions.fill(source))
