"""A run's quantities, each on its scale with its terms and the gap that a prediction left. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.lab.terms import terms_of, tree_of
from app.reveal.comparison import Comparison
from app.reveal.gap import Gap, Term, find_gap
from app.reveal.meter import Meter, make_scale
from labs.spec import RunSpec

_ROOM = 1.5  # times theory a scale reaches, so that a measurement beyond it keeps its place
_KINDS = {
    "activation_bytes": "activations",
    "optimizer_bytes": "optimizer",
}  # colours of what is not added up; plain otherwise


@dataclass(frozen=True)
class Facts:
    """What is known of a run. `sent`: payload by a transfer's title, as it was measured. `says`: what a quantity is, by
    its name. `names`: what transfers are called, by title."""

    spec: RunSpec
    theory: Mapping[str, object]
    result: Mapping[str, object]
    sent: Mapping[str, float]
    says: Mapping[str, str]
    names: Mapping[str, str]
    is_ended: bool


def make_meter(row: Comparison, facts: Facts) -> Meter:
    terms: tuple[Term, ...] = ()
    if facts.is_ended:
        terms = terms_of(row.name, facts.spec, facts.theory, facts.result, facts.sent, facts.names)
    gap = None
    if facts.is_ended and row.predicted is not None and row.measured is not None:
        tree = tree_of(row.name, facts.spec, facts.theory)
        gap = Gap() if row.is_near else find_gap(row.predicted, row.measured, terms, tree)
    reach = (row.predicted or 0.0) * (row.within or 1.0)
    expected = _ROOM * row.theory if row.theory else 2 * (row.predicted or 0.0)
    scale = make_scale(reach, expected, row.measured or 0.0, row.dimension)
    return Meter(row, facts.says.get(row.name, ""), terms, gap, scale, _KINDS.get(row.name, "plain"), facts.is_ended)
