"""A number that was answered to a question, beside the right one: the reveal of problems and scorecards. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.grading.grade import Grade
from app.grading.numbers import OMISSION
from app.grading.omissions import ONE_TOLERANCE, Mistake, Node, mistakes, ways_left_out
from app.grading.questions import NumberQuestion
from app.reveal.comparison import Comparison
from app.reveal.gap import Gap, Term, find_gap
from app.reveal.meter import Meter, make_scale
from app.units import SCALES
from app.words import capital, listed

# In times the right answer: what a scale reaches at least, the largest number that it holds (a factor of eight is a
# slip to see), and where it ends for one that lies beyond.
_ROOM, _HELD, _REACH = 1.25, 8.5, 3.0
# Colours by what a term's name speaks of, the first that fits; plain where none does.
_KINDS = (
    ("gradient", "gradients"),
    ("optimizer", "optimizer"),
    ("moment", "optimizer"),
    ("master", "optimizer"),
    ("activation", "activations"),
    ("gathered", "temporary"),
    ("weight", "parameters"),
)


@dataclass(frozen=True)
class SaidNumber:
    """A wrong number and the right one, in base units: `text` as it was typed, `terms` of the right one.

    It is stored with the scorecard of a sitting, whose question may be revised later.
    """

    text: str
    value: float
    key: float
    unit: str
    terms: tuple[Term, ...]
    gap: Gap

    def meter(self, title: str) -> Meter:
        """The two on one scale."""
        dimension = SCALES[self.unit][0]
        row = Comparison(
            title, dimension, self.text, self.value, None, self.key, None, unit=self.unit, is_computed=True
        )
        reach = self.value if self.value <= _HELD * self.key else _REACH * self.key
        scale = make_scale(reach, _ROOM * self.key, 0.0, dimension, self.unit)
        return Meter(row, "", self.terms, self.gap, scale, "plain", True)

    def to_json(self) -> dict[str, object]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SaidNumber:
        """What `to_json` stored."""
        gap = stored["gap"]
        found = Gap(gap["finding"], tuple(Term(**each) for each in gap["missing"]), gap["slip"])
        terms = tuple(Term(**each) for each in stored["terms"])
        return cls(stored["text"], stored["value"], stored["key"], stored["unit"], terms, found)


def said_number(question: NumberQuestion, text: str, grade: Grade) -> SaidNumber | None:
    """What there is to draw of an answer to `question`; None of one that was right, not read, or below nothing."""
    if grade.status != "wrong" or grade.value is None or min(grade.value, question.key) <= 0:
        return None
    tree = question.structure() if question.structure is not None else None
    terms = _terms(tree) if tree is not None else ()
    return SaidNumber(text, grade.value, question.key, question.unit, terms, _gap(question, grade, terms, tree))


def slip_of(said: SaidNumber | None, grade: Grade) -> str:
    """What went wrong, as a title says it: the gap by its name, else the grade's; empty where it has none."""
    return (said.gap.finding if said else "") or capital(grade.title or "")


def _terms(tree: Node) -> tuple[Term, ...]:
    """The terms of a sum; none of anything else, nor where something is taken away."""
    if len(tree.terms) < 2 or any(sign < 0 or term.value <= 0 for sign, term in tree.terms):
        return ()
    return tuple(_term(term.label, term.value) for _, term in tree.terms)


def _term(label: str, value: float) -> Term:
    name = label.partition(",")[0]
    return Term(name, next((kind for word, kind in _KINDS if word in name), "plain"), value, value)


def _gap(question: NumberQuestion, grade: Grade, terms: tuple[Term, ...], tree: Node | None) -> Gap:
    """The mistake that the grade names; where it names none, the terms without which the number is near."""
    assert grade.value is not None, "asked of wrong numbers alone"
    if grade.misconception == OMISSION and tree is not None:
        found = mistakes(tree, grade.value, question.tolerance)
        found = found or mistakes(tree, grade.value, question.tolerance, two=True)
        if found:
            return _named(found, question.key)
    if grade.title:
        return Gap(capital(grade.title), _beside(grade.title, grade.value, terms), grade.title)
    return find_gap(grade.value, question.key, terms, None)


def _beside(title: str, value: float, terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms that a number lacks which is called by what it has, as “weights only”: those without which the rest is
    of the kinds that the title speaks of. None where it fits no way, or more than one."""
    kinds = {kind for word, kind in _KINDS if word in title.lower()}
    nodes = [Node(term.name, term.value) for term in terms]
    whole = Node("", sum(term.value for term in terms), terms=tuple((1, node) for node in nodes))
    ways = [
        [term for term, node in zip(terms, nodes, strict=True) if any(node is each for each in way)]
        for way in ways_left_out(whole, value, 1 + ONE_TOLERANCE)
    ]
    fitting = [way for way in ways if {term.kind for term in terms if term not in way} <= kinds]
    return tuple(fitting[0]) if len(fitting) == 1 else ()


def _named(mistakes: Sequence[Mistake], key: float) -> Gap:
    """The gap of mistakes that lead to one number. Terms that were left out come before a formula taken for another."""
    only_terms = [each for each in mistakes if all(slip.term for slip in each.slips)]
    alike = list({each.says: each for each in only_terms or mistakes}.values())[:2]
    says = ", or ".join(each.says for each in alike)
    terms = [[_term(slip.term.label, slip.term.value) for slip in each.slips if slip.term] for each in alike]
    lacks = key - alike[0].value
    if any(len(left_out) < len(each.slips) for left_out, each in zip(terms, alike, strict=True)) or lacks <= 0:
        shorts = {slip.short for slip in alike[0].slips}
        return Gap(
            capital(says), slip=shorts.pop() if len(shorts) == 1 and all(shorts) else alike[0].says.removeprefix("you ")
        )
    name = " or ".join(listed([term.name for term in left_out]) for left_out in terms)
    return Gap(f"You left out {name}", (Term(name, terms[0][0].kind, lacks, lacks),))
