"""What a number lacks of the right one, found by the search that practice explains answers with. Pure.

See `app.grading.omissions`: terms that are missing from a sum, and formulas taken for another case of themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.grading.omissions import Node, explained, left_out
from app.words import capital, listed

NAMED_WITHIN = 1.06  # as near, without some of the terms, those are what it lacks
_TOLERANCE = 0.01  # relative, of the right value in the search for other slips


@dataclass(frozen=True)
class Term:
    """A part of a quantity in base units; `kind` is its colour. Measured is None where only the whole was."""

    name: str
    kind: str
    theory: float
    measured: float | None

    @property
    def value(self) -> float:
        return self.theory if self.measured is None else self.measured

    @property
    def short(self) -> str:
        return self.name.removeprefix("the ")


@dataclass(frozen=True)
class Gap:
    """Between a number and the right one: `missing` terms, or the slip that leads there, or neither.

    `finding` says it as a sentence without its full stop; empty where no name fits. `slip` names in few words what is
    no missing term.
    """

    finding: str = ""
    missing: tuple[Term, ...] = ()
    slip: str = ""

    @property
    def label(self) -> str:
        return listed([term.short for term in self.missing]) or self.slip


def find_gap(predicted: float, measured: float, terms: Sequence[Term], tree: Node | None) -> Gap:
    """What a prediction that is off lacks. `tree`: what the key is built from, for slips that are no missing term."""
    if predicted < measured and len(terms) > 1:
        nodes = [Node(term.name, term.value) for term in terms]
        by_node = {id(node): term for node, term in zip(nodes, terms, strict=True)}
        whole = Node("", sum(term.value for term in terms), terms=tuple((1, node) for node in nodes))
        ways = [[by_node[id(node)] for node in way] for way in left_out(whole, predicted, NAMED_WITHIN)][:2]
        if ways:
            return lacking_one_of(ways, sum(term.value for term in ways[0]))
    says = explained(tree, predicted, _TOLERANCE) if tree else None
    return Gap(capital(says)) if says else Gap()


def lacking_one_of(ways: Sequence[Sequence[Term]], lacks: float) -> Gap:
    """The gap of terms that were left out. Where it may be those or others, it is one term that bears both names and
    is none of the whole's: no picture shows which."""
    names = [listed([term.name for term in way]) for way in ways]
    name = (", or " if any(len(way) > 1 for way in ways) else " or ").join(names)
    missing = tuple(ways[0]) if len(ways) == 1 else (Term(name, ways[0][0].kind, lacks, lacks),)
    return Gap(f"You left out {name}", missing)
