"""Numbers with a unit that are typed into a text instead of computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import isclose

from app.units import MAGNITUDES, factor_of

# What makes a number one that may follow from others, and how many base units it is. Counts without a unit are left
# to the author, and so is a B for billions, which names a model.
_LABELS = (
    *("kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "bytes", "byte"),
    *("B/s", "MB/s", "GB/s", "TB/s", "Gb/s", "Tb/s", "%", "percent", "×", "times"),
    *("ns", "µs", "us", "ms", "s", "seconds", "min", "minutes", "h", "hours", "days", "weeks", "months", "years"),
    *("FLOPs", "TFLOPs", "TFLOP/s", "PFLOP/s", "tokens", "GPU-hours"),
)
FACTORS = {label: factor_of(label) for label in _LABELS} | {"per cent": factor_of("percent")}
_SAID = ("k", "M", "B", "T", "million", "billion", "trillion")

_UNIT = "|".join(sorted(map(re.escape, FACTORS), key=len, reverse=True))
_FIGURE = re.compile(
    r"(?<![\w.,−-])(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
    rf"\s?(?:(?P<magnitude>{'|'.join(_SAID)})(?=\s))?[ \u00a0-]?(?P<unit>{_UNIT})"
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
