"""The small language evidence is written in.

    tp | tensor & innode | nvlink          all parts (&) in one sentence, each in any of its wordings (|)
    state [total GB] && [each GB ±5%]      a number in any notation; && also reaches into the next sentence
    not shard activation | no bubble       a wording that is denied: "activations are never sharded"
    `2(n-1)/n` | n_minus_1_over_n          a formula, written any way; words in this very order
    @more latency                          a set of words that mean one direction
    raise timeout unless debug | short     not where the sentence also says this

Words stand for their stems, in any order, close together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from app.grading.rubrics.lexicon import ALTERNATIVES, aliased, stem
from app.grading.rubrics.numerals import with_digits
from app.grading.rubrics.stated_numbers import formula_form

# Sets of words for one direction or relation.
SETS = {
    "more": "more|increase|raise|grow|larger|longer|higher|bigger|rise|enlarge|double|greater|extend|scale",
    "less": "less|decrease|reduce|lower|smaller|shorter|fewer|shrink|drop|fall|cut|halve|shorten|decline|save",
    "cut": "split|cut|divide|slice|shard|partition",
    "same": "same|equal|identical|unchanged|constant",
    "slow": "slow|slowest|slower|straggler|weakest",
    "serve": "serve|inference|deploy|deployment|production|query|request|generate|generation|lifetime",
    "measure": "measure|profile|trace|nsys|nsight|breakdown|benchmark|timeline|instrument",
}

# Expression and unit → value, dimension, factor of the unit, the words of what it is a number of, those of its rivals
Quantity = tuple[float, str, float] | tuple[float, str, float, frozenset[str], frozenset[str]]
Numbers = Callable[[str, str], Quantity]


@dataclass(frozen=True)
class Words:
    """Stems that must stand close together; in order when `ordered`, denied when `denied`."""

    stems: tuple[str | frozenset[str], ...]
    ordered: bool = False
    denied: bool = False


@dataclass(frozen=True)
class Value:
    """A number, `value` base units of `dimension`, within a relative `tolerance`; `scale` is its unit.

    It is that of one of several things, such as one stage of ZeRO: `of` are that one's words, `rivals` the others'.
    """

    value: float
    dimension: str
    scale: float
    tolerance: float
    of: frozenset[str] = frozenset()
    rivals: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Formula:
    """A formula in the form that `formula_form` brings text into."""

    pattern: re.Pattern[str]


Atom = Words | Value | Formula
Group = tuple[Atom, ...]  # any of them


@dataclass(frozen=True)
class Pattern:
    """Evidence: `places` are sentences at most one apart, each with groups that must all be in it."""

    source: str
    places: tuple[tuple[Group, ...], ...]
    unless: Group = ()

    @cached_property
    def subject(self) -> tuple[Group, frozenset[int]] | None:
        """The one part that names a subject, and which of ALTERNATIVES it names; None where no part or several do."""
        named = [(group, alternatives(group)) for groups in self.places for group in groups]
        found = [(group, each) for group, each in named if each]
        return found[0] if len(found) == 1 and len(named) > 1 else None

    @cached_property
    def has_numbers(self) -> bool:
        """Whether a number or a formula is among what it looks for."""
        return any(not isinstance(atom, Words) for groups in self.places for group in groups for atom in group)

    @cached_property
    def first_words(self) -> tuple[frozenset[str], ...]:
        """For each part of its first sentence with nothing but words, those that they begin with: one must stand."""
        groups = (group for group in self.places[0] if all(isinstance(atom, Words) for atom in group))
        return tuple(frozenset(_first_words(group)) for group in groups)

    @cached_property
    def denies(self) -> bool:
        """Whether it looks for something that is denied."""
        atoms = (atom for groups in self.places for group in groups for atom in group)
        return any(isinstance(atom, Words) and atom.denied for atom in atoms)

    def may_stand(self, stems: frozenset[str]) -> bool:
        """Whether a sentence of these stems can have its first sentence: of most it cannot, and to ask is quick."""
        return not any(words.isdisjoint(stems) for words in self.first_words)

    @cached_property
    def stems(self) -> frozenset[str]:
        """All words that it looks for."""
        return _stems_of(atom for groups in self.places for group in groups for atom in group)


def _first_words(group: Group) -> Iterator[str]:
    for atom in group:
        if isinstance(atom, Words):
            yield from (atom.stems[0],) if isinstance(atom.stems[0], str) else atom.stems[0]


def _stems_of(atoms: Iterable[Atom]) -> frozenset[str]:
    words = (word for atom in atoms if isinstance(atom, Words) for word in atom.stems)
    return frozenset(each for word in words for each in ({word} if isinstance(word, str) else word))


def alternatives(group: Group) -> frozenset[int]:
    """Which of ALTERNATIVES a part names, by number."""
    stems = _stems_of(group)
    return frozenset(number for number, each in enumerate(ALTERNATIVES) if not stems.isdisjoint(each))


class BadPattern(ValueError):
    """Evidence that cannot be read; the message says which and why."""


def parse(source: str, numbers: Numbers) -> Pattern:
    """Read one line of evidence; `numbers` gives the value of a number's expression. Raises BadPattern."""
    body, _, unless = " ".join(source.split()).partition(" unless ")
    places = tuple(
        tuple(_group(group, source, numbers) for group in place.split(" & ")) for place in body.split(" && ")
    )
    if len(places) > MOST_PLACES:
        raise BadPattern(f"{source!r}: {len(places)} sentences. Accepted: one or two, so one && at most")
    return Pattern(source, places, _group(unless, source, numbers) if unless else ())


def _group(text: str, source: str, numbers: Numbers) -> Group:
    atoms = tuple(_atom(each.strip(), source, numbers) for each in text.split("|"))
    if not atoms:
        raise BadPattern(f"{source!r}: an empty part")
    return atoms


_VALUE = re.compile(r"\[(?P<expression>.+?)(?: (?P<unit>[A-Za-z%_]+(?:/[a-z]+)?))?(?: ±(?P<percent>[\d.]+)%)?\]")
DEFAULT_TOLERANCE = 0.03
MOST_PLACES = 2  # sentences that evidence may need


def _atom(text: str, source: str, numbers: Numbers) -> Atom:
    value = _VALUE.fullmatch(text)
    if value:
        tolerance = float(value["percent"]) / 100 if value["percent"] else DEFAULT_TOLERANCE
        number, dimension, scale, *bound = numbers(value["expression"], (value["unit"] or "").replace("_", " "))
        return Value(number, dimension, scale, tolerance, *bound)
    if text.startswith("`") and text.endswith("`") and len(text) > 2:
        return Formula(re.compile(rf"(?<![\w.+/^√-]){re.escape(formula_form(text[1:-1].lower()))}(?!\d)"))
    return _words(text, source)


def _words(text: str, source: str) -> Words:
    if "[" in text:
        raise BadPattern(f"{source!r}: a number stands by itself between & and |, not among words")
    denied = text.startswith(("not ", "no "))
    body = text.removeprefix("not ").removeprefix("no ")
    ordered = "_" in body
    found: list[str | frozenset[str]] = []
    for word in body.replace("_", " ").split():
        if word.startswith("@"):
            if word[1:] not in SETS:
                raise BadPattern(f"{source!r}: there is no set {word}. Accepted: {', '.join(SETS)}")
            found.append(frozenset(map(stem, SETS[word[1:]].split("|"))))
        else:
            found += _stems(word)
    if not found:
        raise BadPattern(f"{source!r}: an empty wording")
    return Words(tuple(found), ordered, denied)


@cache
def _stems(word: str) -> tuple[str, ...]:
    """The stems of one word of evidence. All evidence there is has a few thousand."""
    return tuple(stem(each) for each in aliased(with_digits(word.lower())).split())
