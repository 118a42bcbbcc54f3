"""Mathematics as a line of plain text, for titles and lists where no markup can stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

_DOLLARS = re.compile(r"(?<!\\)(\$\$?)(?!\s)([^$\n]+?)(?<![\s\\])\1")
_BETWEEN = set("=≤≥<>≈≠+−·×→←∈∼≪≫")  # spaced where it stands between two things
_CLOSES = set(")],;.!")  # stands close to what is before it
_INVISIBLE = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064"))


def plain_math(text: str, quoted: Callable[[str], str] = str) -> str:
    """`text` with each `$formula$` written out: `\\frac{2(n-1)}{n} S` becomes `2(n − 1)/n S`.

    What is no formula stays as it is. `quoted` is applied to what is written, for a `text` that is yet to be read on.
    """
    return _DOLLARS.sub(lambda found: quoted(_written(found[2])) or found[0], text)


def _written(latex: str) -> str:
    try:
        element = convert_to_element(latex)
    except Exception:  # the converter has one class for each mistake, and no common parent
        return ""
    return _text(element).strip()


def _text(element: Element) -> str:
    tag = element.tag.rpartition("}")[2]
    if len(element) == 0:
        said = unescape(element.text or "").translate(_INVISIBLE).replace("\xa0", " ")
        is_name = tag == "mi" and len(said) > 1 and said.isalpha()  # log, max: what follows stands apart
        return f"{said} " if is_name else said
    parts = [_text(child) for child in element]
    if element.get("linethickness") == "0":  # a fraction without its stroke
        return " choose ".join(parts)
    return _WRITERS.get(tag, _in_a_row)(parts)


def _in_a_row(parts: Sequence[str]) -> str:
    row = ""
    for part in parts:
        is_sign = part in _BETWEEN and row.strip() and row.rstrip()[-1] not in _BETWEEN and row.rstrip()[-1] not in "(["
        row = f"{row.rstrip()} {part} " if is_sign else (row.rstrip() if part[:1] in _CLOSES else row) + part
    return row


def _is_sum(part: str) -> bool:
    """Whether a sign stands in it outside of brackets."""
    depth = 0
    for char in part:
        depth += (char in "([") - (char in ")]")
        if not depth and char in _BETWEEN:
            return True
    return False


def _factor(part: str) -> str:
    return f"({part.strip()})" if _is_sum(part) else part.strip()


def _single(part: str) -> str:
    """What can stand behind a stroke, a ^ or a √ without brackets."""
    part = part.strip()
    return part if part.isalnum() or (part[:1] == "(" and part.find(")") == len(part) - 1) else f"({part})"


def _below(parts: Sequence[str]) -> str:
    return f"{parts[0].strip()}_{_single(parts[1])} "


_WRITERS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "mfrac": lambda parts: f"{_factor(parts[0])}/{_single(parts[1])} ",
    "msup": lambda parts: f"{parts[0].strip()}^{_single(parts[1])}",
    "msub": _below,
    "msubsup": lambda parts: f"{_below(parts).strip()}^{_single(parts[2])} ",
    "msqrt": lambda parts: f"√{_single(''.join(parts))}",
    "mroot": lambda parts: f"{_single(parts[0])}^(1/{_single(parts[1])})",
    "mover": lambda parts: parts[0],
    "mtr": ", ".join,
    "mtable": "; ".join,
}
