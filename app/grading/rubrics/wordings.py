"""One lexicon for all rubrics: wordings that mean the same, found in a sentence and known by each other's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from app.grading.rubrics.lexicon import aliased, stem
from app.grading.rubrics.numerals import with_digits

Stems = tuple[str, ...]
DENIAL = "not"


@dataclass(frozen=True)
class Wordings:
    """What else a sentence has said: for the first stem of each wording, longest first, the stems it stands for."""

    by_first: Mapping[str, tuple[tuple[Stems, Stems], ...]] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Quick, for what is kept by them: there is one for all rubrics, beside those of tests."""
        return len(self.by_first)

    def meant(self, stems: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Where in a sentence of `stems` a wording stands, and each stem it says without writing it.

        What it says is denied stands at its last word, which its own negator denies: "no relief" says "not help".
        """
        for at, first in enumerate(stems):
            for wording, means in self.by_first.get(first, ()):
                if tuple(stems[at : at + len(wording)]) == wording:
                    denied = DENIAL in means
                    yield from ((at + (len(wording) - 1) * denied, each) for each in means if each != DENIAL)
                    break

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems that are a wording by themselves, and those that others stand for."""
        rows = [row for found in self.by_first.values() for row in found]
        return frozenset(each for wording, means in rows for each in (*means, *(wording if len(wording) == 1 else ())))


def stems_of(wording: str) -> Stems:
    """A wording as the reader stems it."""
    return tuple(stem(each) for each in aliased(with_digits(wording.lower())).split())


def make_wordings(same: Iterable[Sequence[str]], implies: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Wordings:
    """Wordings from rows that mean one thing, and from special cases that say a general word as well."""
    means: dict[Stems, dict[str, None]] = {}
    for row in same:
        stems = [stems_of(each) for each in row]
        words = [each[0] for each in stems if len(each) == 1]
        for each in stems:
            means.setdefault(each, {}).update(dict.fromkeys(word for word in words if (word,) != each))
    for said, general in implies:
        words = [each for wording in general for each in stems_of(wording)]
        for each in map(stems_of, said):
            means.setdefault(each, {}).update(dict.fromkeys(words))
    by_first: dict[str, list[tuple[Stems, Stems]]] = {}
    for wording, added in means.items():
        if added:
            by_first.setdefault(wording[0], []).append((wording, tuple(added)))
    return Wordings({first: tuple(sorted(found, key=lambda each: -len(each[0]))) for first, found in by_first.items()})
