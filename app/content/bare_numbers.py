"""Numbers with a unit that are typed into a text instead of computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import isclose

# What makes a number one that may follow from others, and how many base units it is. Counts without a unit are left
# to the author, and so is a B for billions, which names a model.
FACTORS = {
    "B/s": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "PB": 1e15,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "bytes": 1.0,
    "byte": 1.0,
    "%": 0.01,
    "per cent": 0.01,
    "percent": 0.01,
    "×": 1.0,
    "times": 1.0,
    "ns": 1e-9,
    "µs": 1e-6,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hours": 3600.0,
    "days": 86400.0,
    "weeks": 604800.0,
    "months": 2629800.0,
    "years": 31557600.0,
    "FLOPs": 1.0,
    "TFLOPs": 1e12,
    "TFLOP/s": 1e12,
    "PFLOP/s": 1e15,
    "tokens": 1.0,
    "MB/s": 1e6,
    "GB/s": 1e9,
    "TB/s": 1e12,
    "Gb/s": 1.25e8,
    "Tb/s": 1.25e11,
    "GPU-hours": 3600.0,
}
MAGNITUDES = {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "million": 1e6, "billion": 1e9, "trillion": 1e12}

_UNIT = "|".join(sorted(map(re.escape, FACTORS), key=len, reverse=True))
_FIGURE = re.compile(
    r"(?<![\w.,−-])(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
    rf"\s?(?:(?P<magnitude>{'|'.join(MAGNITUDES)})(?=\s))?[ \u00a0-]?(?P<unit>{_UNIT})"
    r"(?![\w/])(?!(?<=×)\s*(?:[\d(·∞]|inf\b|[A-Za-z]\b))"  # 8 × 16 is a product, 1.5 × as long a figure
)
_SET = re.compile(r"\{\{.*?\}\}|^```.*?^```|`[^`\n]*`|\$[^$\n]+\$", re.MULTILINE | re.DOTALL)
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_LITERAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


def bare_numbers(text: str, known: Iterable[str] = ()) -> Iterator[str]:
    """The numbers with units typed in `text`, each once, that nothing accounts for.

    One is accounted for when it stands in a text of `known` as well, or is an input of an expression in `text`.
    Programs and formulas in `$` do not count.
    """
    inputs = [float(n) for each in _EXPRESSION.findall(text) for n in _LITERAL.findall(each)]
    allowed = {_plain(match.group()) for each in known for match in _FIGURE.finditer(each)}
    told: set[str] = set()
    for match in _FIGURE.finditer(_SET.sub(" · ", text)):
        figure, value = _plain(match.group()), _value(match)
        if figure not in allowed | told and not any(isclose(value, each, rel_tol=1e-9) for each in inputs):
            told.add(figure)
            yield match.group()


def _value(match: re.Match[str]) -> float:
    """The figure in base units."""
    magnitude = MAGNITUDES.get(match["magnitude"] or "", 1.0)
    return float(match["number"].replace(",", "")) * magnitude * FACTORS[match["unit"]]


def _plain(figure: str) -> str:
    return re.sub(r"[\s\u00a0-]+", " ", figure).replace(",", "")
