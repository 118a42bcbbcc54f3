"""How the planner's fields read what was typed: each returns the value, or raises SpecError with what is accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

from app.core.errors import SpecError, Violation
from app.grading.quantities import Unreadable, evaluate_quantity, read_quantity
from app.theory.planner import Measured
from app.theory.planner.fields import Module
from app.theory.planner.space import GATHERS
from app.units import BYTES, FLOP, NONE, SECONDS, TOKENS, count_text
from labs.spec import parse

ALIKE = 0.7  # of two names' letters
Reader = Callable[[str, str], Any]
Spent = Literal["flops", "gpu_seconds", "seconds", "tokens"]


@dataclass(frozen=True)
class Choice:
    """One of a list, which the form shows as such."""

    known: tuple[str, ...]
    means: Callable[[str], Any] = str

    def __call__(self, name: str, text: str) -> Any:
        if text not in self.known:
            near = _meant(text, self.known)
            message = f"“{text}” is not known{f': {near} is nearest' if near else ''}."
            raise SpecError([Violation(name, text, message, ", ".join(self.known))])
        return self.means(text)


_SIZE = re.compile(r"\d+(?:\.\d+)?[mbt]\b")  # of a model, in its name


def _meant(text: str, known: tuple[str, ...]) -> str:
    """The one of a list that a name is like, as an older release or somebody else has it; none of another size."""
    name = text.lower()
    alike = [each for each in known if _SIZE.findall(each) == _SIZE.findall(name)]
    return next(iter(get_close_matches(name, alike, 1, ALIKE)), "")


def choice(*known: str) -> Choice:
    """One of these, as it is typed."""
    return Choice(known)


_EXAMPLES = {
    "bytes": "such as 80 GB",
    "bytes_per_second": "such as 50 GB/s",
    "seconds": "such as 60 s",
    "tokens": "such as 2T tokens",
    "fraction": "such as 40 %",
}


def number(low: float, high: float, dimension: str = "count", is_whole: bool = True) -> Reader:
    """A quantity of a dimension between two bounds."""
    accepted = _EXAMPLES.get(dimension) or f"{count_text(low)} to {count_text(high)}"

    def read(name: str, text: str) -> Any:
        try:
            value = read_quantity(text, dimension).value
        except Unreadable as error:
            raise SpecError([Violation(name, text, str(error), accepted)]) from None
        if not low <= value <= high or (is_whole and value != int(value)):
            raise SpecError([Violation(name, text, f"“{text}” is out of range.", accepted)])
        return int(value) if is_whole else value

    return read


_OF_A_NODE = re.compile(r"(?:per|a|/|each)\s*(?:node|host|server|machine)\b", re.I)


def rate_of_a_gpu(name: str, text: str) -> float:
    """Bytes a second of one GPU; what is said of a whole node is refused, for its cards are shared out otherwise."""
    if _OF_A_NODE.search(text):
        message = f"“{text}” is of a node."
        accepted = "what one GPU has, such as 6.25 GB/s of 400 Gb/s for a node of 8"
        raise SpecError([Violation(name, text, message, accepted)])
    return float(number(1, 1e15, "bytes_per_second", is_whole=False)(name, text))


@dataclass(frozen=True)
class Tokens:
    """A global batch said in tokens; the sequences follow from the plan's sequence."""

    value: float

    def sequences(self, sequence: int, least: int, unit: int) -> int:
        """As the nearest number of sequences that is a multiple of `unit`, and `least` or more."""
        return max(least, round(self.value / sequence / unit) * unit)


def batch(name: str, text: str) -> int | Tokens:
    """Sequences of a step, or with the word, tokens."""
    if "tok" in text.lower():
        return Tokens(number(1, 1e15, "tokens", is_whole=False)(name, text))
    return int(number(1, 1e7)(name, text))


@dataclass(frozen=True)
class Budget:
    """What a training may take: FLOPs, time of one GPU, time of all of them, or tokens."""

    kind: Spent
    amount: float


_OF = {FLOP: "flops", SECONDS: "seconds", TOKENS: "tokens"}
_MOST: dict[Spent, tuple[float, float]] = {
    "flops": (1e12, 1e32),
    "gpu_seconds": (1.0, 1e15),
    "seconds": (1.0, 1e10),
    "tokens": (1e3, 1e18),
}
_LEAST_MEMORY, _MOST_MEMORY, _LEAST_SHARE = 1e6, 1e15, 0.01  # bytes, bytes and a share
_PLAIN = 1e15  # a bare number from here on can only be FLOPs


def budget(name: str, text: str) -> Budget:
    """By its unit: "1e21 FLOPs", "100k GPU-hours", "90 days", "2T tokens"."""
    accepted = "1e24 FLOPs, 100k GPU-hours, 90 days or 2T tokens"
    try:
        found = evaluate_quantity(text.replace("GPU hour", "GPU-hour"))
    except Unreadable as error:
        raise SpecError([Violation(name, text, str(error), accepted)]) from None
    kind = _OF.get(found.dimension)
    if kind is None and found.dimension == NONE and found.value >= _PLAIN:
        kind = "flops"
    if kind == "seconds" and re.search("gpu", text, re.I):
        kind = "gpu_seconds"
    if kind is None:
        raise SpecError([Violation(name, text, f"“{text}” has no unit of a budget.", accepted)])
    low, high = _MOST[kind]  # type: ignore[index]
    if not low <= found.value <= high:
        raise SpecError([Violation(name, text, f"“{text}” is out of range.", accepted)])
    return Budget(kind, found.value)  # type: ignore[arg-type]


def gathers(text: str) -> bool:
    """What FSDP calls reshard_after_forward: weights let go of are gathered again."""
    return text == GATHERS


def modules(name: str, text: str) -> list[str]:
    """Modules of a layer, joined by + as a search writes them."""
    known = choice(*get_args(Module))
    return [known(name, each.strip()) for each in text.split("+")]


def measured(name: str, text: str) -> dict[str, Any]:
    """What `rankzero measure` prints."""
    accepted = "what rankzero measure prints"
    try:
        data = json.loads(text)
        return parse(Measured, data, lambda _: []).model_dump(exclude_none=True)
    except (ValueError, RecursionError) as error:
        why = "; ".join(map(str, error.violations)) if isinstance(error, SpecError) else "This is no JSON."
        raise SpecError([Violation(name, text, why, accepted)]) from None


@dataclass(frozen=True)
class Span:
    """What a search may look at on an axis: listed values, or from a least to a most."""

    listed: tuple[int, ...] | None = None
    least: int | None = None
    most: int | None = None


_FROM_TO = re.compile(r"(\d+)\s*(?:to|-|–)\s*(\d+)")
_AT_MOST = re.compile(r"(?:up to|at most|≤|<=)\s*(\d+)")
_AT_LEAST = re.compile(r"(?:at least|from|≥|>=)\s*(\d+)|(\d+)\s*or more")
_LISTED = re.compile(r"\d+(?:\s*(?:,|or|and)\s*\d+)*")


def span(low: int, high: int) -> Reader:
    """Whole numbers between two bounds: "8", "1, 2, 4", "up to 8", "at least 2" or "2 to 8"."""

    def read(name: str, text: str) -> Span:
        found = _span(text.lower().strip())
        given = [] if found is None else [*(found.listed or ()), *filter(None, (found.least, found.most))]
        if found is None or not all(low <= value <= high for value in given):
            message = f"“{text}” is out of range." if found else f"“{text}” says no values."
            accepted = f"{low:,} to {high:,}, such as 2, “1, 2, 3” or “up to 2”"
            raise SpecError([Violation(name, text, message, accepted)])
        return found

    return read


def _span(text: str) -> Span | None:
    if match := _FROM_TO.fullmatch(text):
        return Span(least=int(match[1]), most=int(match[2]))
    if match := _AT_MOST.fullmatch(text):
        return Span(most=int(match[1]))
    if match := _AT_LEAST.fullmatch(text):
        return Span(least=int(match[1] or match[2]))
    return Span(tuple(map(int, re.findall(r"\d+", text)))) if _LISTED.fullmatch(text) else None


@dataclass(frozen=True)
class Memory:
    """What a plan may take of a GPU's memory: bytes, or a share of them."""

    bytes: float | None = None
    share: float | None = None


def memory(name: str, text: str) -> Memory:
    """Bytes or a share: "72 GB", "90 %"."""
    accepted = "such as 72 GB, or 1 % to 100 %"
    try:
        found = evaluate_quantity(text)
    except Unreadable as error:
        raise SpecError([Violation(name, text, str(error), accepted)]) from None
    if found.dimension == BYTES and _LEAST_MEMORY <= found.value <= _MOST_MEMORY:
        return Memory(bytes=found.value)
    if found.dimension == NONE and _LEAST_SHARE <= found.value <= 1:
        return Memory(share=found.value)
    raise SpecError([Violation(name, text, f"“{text}” is no part of a GPU's memory.", accepted)])


def flag(_name: str, text: str) -> bool:
    """A box that is ticked."""
    return text not in ("", "off")
