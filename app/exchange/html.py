"""HTML from a note's field as the Markdown our own cards are written in. Pure.

It is sanitised first, by a real HTML parser: what reaches the writer below is well-formed and holds known tags only.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import nh3

from app.content.outside import formula_problem
from app.exchange.writer import Converted, Writer, code

BLANK_OPEN, BLANK_CLOSE = "\ue010", "\ue011"  # the blank of a cloze, until it is written [[...]]
_KEPT_OPEN, _KEPT_CLOSE = "\ue012", "\ue013"  # a formula or sound that was taken out, by number
_PRIVATE = re.compile("[\ue000\ue001\ue010-\ue013]")

_KNOWN = """p div br hr b strong i em u s strike del ins sub sup mark small code pre tt kbd samp blockquote ul ol li dl
    dt dd h1 h2 h3 h4 h5 h6 table thead tbody tfoot tr th td a img ruby rt rp"""
_TAGS = set(_KNOWN.split())
_ATTRIBUTES = {"a": {"href"}, "img": {"src"}, "ol": {"start"}}
_FORMULAS = (
    (r"\(", r"\)", "$"),
    (r"\[", r"\]", "$$"),
    ("[$$]", "[/$$]", "$$"),
    ("[$]", "[/$]", "$"),
    ("[latex]", "[/latex]", "$"),
)
_MATHJAX = re.compile(r"<anki-mathjax(?P<how>[^>]{0,200})>", re.IGNORECASE)
_SOUND = re.compile(r"\[sound:([^\]]{1,300})\]|\[anki:play:[^\]]{1,50}\]")


def to_markdown(source: str) -> Converted:
    """`source` as Markdown. Pictures and sounds are left out and named, formulas that cannot be set become code."""
    found = Converted()
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return f"{_KEPT_OPEN}{len(kept) - 1}{_KEPT_CLOSE}"

    text = _without_private(source)
    text, sounds = _SOUND.subn("", text)
    found.sounds = sounds
    text = _take_formulas(text, keep, found)
    writer = Writer(found)
    writer.feed(nh3.clean(text, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"}))
    writer.close()
    written = writer.text()
    written = re.sub(f"{_KEPT_OPEN}(\\d+){_KEPT_CLOSE}", lambda m: kept[int(m.group(1))], written)
    found.text = written.replace(BLANK_OPEN, "[[").replace(BLANK_CLOSE, "]]")
    return found


def _without_private(text: str) -> str:
    """Only our own marks may be what they look like."""
    opened = text.count(BLANK_OPEN) == text.count(BLANK_CLOSE)
    return _PRIVATE.sub(lambda m: m.group() if opened and m.group() in (BLANK_OPEN, BLANK_CLOSE) else "", text)


def _take_formulas(text: str, keep: Callable[[str], str], converted: Converted) -> str:
    text = _take_mathjax(text, keep, converted)
    for opening, closing, marks in _FORMULAS:
        text = _take_between(text, opening, closing, lambda inner, marks=marks: keep(_formula(inner, marks, converted)))  # type: ignore[misc]
    return text


def _take_mathjax(text: str, keep: Callable[[str], str], converted: Converted) -> str:
    made, at = [], 0
    while (start := _MATHJAX.search(text, at)) is not None:
        end = text.find("</anki-mathjax>", start.end())
        if end < 0:
            break
        marks = "$$" if "true" in start.group("how") else "$"
        made += [text[at : start.start()], keep(_formula(text[start.end() : end], marks, converted))]
        at = end + len("</anki-mathjax>")
    return "".join([*made, text[at:]])


def _take_between(text: str, opening: str, closing: str, take: Callable[[str], str]) -> str:
    """Replace what stands between the two marks; an opening without an end is text, and is looked for only once."""
    made, at = [], 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        made += [text[at:start], take(text[start + len(opening) : end])]
        at = end + len(closing)
    return "".join([*made, text[at:]])


def _formula(inner: str, marks: str, converted: Converted) -> str:
    """LaTeX as it is written here, or as code where the converter does not know it."""
    plain = html.unescape(re.sub(r"<[^>]{0,500}>", " ", inner)).replace("\xa0", " ")
    plain = re.sub(f"[{BLANK_OPEN}{BLANK_CLOSE}]", "", plain)
    latex = " ".join(plain.split()).strip("$ ")
    if not latex:
        return ""
    if "$" in latex or latex.endswith("\\") or formula_problem(latex):
        converted.formulas += 1
        return code(latex)
    return f"{marks}{latex}{marks}"
