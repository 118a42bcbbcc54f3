"""What a quantity of a run is made of, and what a prediction of it left out. Pure.

The search is the one that practice explains answers with (`app.grading.omissions`): terms that are missing from a sum,
and formulas that were taken for another case of themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.content.structures import structure_of
from app.grading.omissions import Node, explained, left_out
from labs.spec import RunSpec

NAMED_WITHIN = 1.06  # as near, without some of the terms, those are what it lacks
_TOLERANCE = 0.01  # relative, of the right value in the search for other slips

_STATE = {"parameters": "the weights", "gradients": "the gradients", "optimizer": "the optimizer"}
_SENT = {"payload_bytes_per_step": "payload_bytes", "wire_bytes_per_step": "wire_bytes"}
_PHASES = ("forward", "backward")
_WHOLE = ("tensor", "context", "pipeline", "expert")  # axes that split the model itself: other formulas hold there


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
    """Between a prediction and the measurement: `missing` terms, or the slip that leads there, or neither.

    `finding` says it as a sentence without its full stop; empty where no name fits.
    """

    finding: str = ""
    missing: tuple[Term, ...] = ()

    @property
    def label(self) -> str:
        return " and ".join(term.short for term in self.missing)


def terms_of(
    name: str,
    theory: Mapping[str, Any],
    result: Mapping[str, Any],
    sent: Mapping[str, float],
    names: Mapping[str, str],
) -> tuple[Term, ...]:
    """The parts of quantity `name`, in the order they come to be; none where it is not a sum that theory adds up.

    `sent`: the payload measured by transfer's title. `names`: what an experiment calls a transfer, by its title.
    """
    if name == "model_state_bytes":
        found = _state_terms(theory, result)
    elif name in _SENT:
        found = _sent_terms(name, theory, sent if name == "payload_bytes_per_step" else {}, names)
    else:
        return ()
    whole = theory.get(name) or 0.0
    return found if abs(sum(term.theory for term in found) - whole) <= 1e-6 * whole else ()


def _state_terms(theory: Mapping[str, Any], result: Mapping[str, Any]) -> tuple[Term, ...]:
    held = result.get("model_state") or {}
    expected = theory.get("model_state") or {}
    return tuple(Term(_STATE[kind], kind, size, held.get(kind)) for kind, size in expected.items() if size)


def _sent_terms(
    name: str, theory: Mapping[str, Any], sent: Mapping[str, float], names: Mapping[str, str]
) -> tuple[Term, ...]:
    sizes: dict[str, float] = {}
    for each in theory.get("transfers", ()):
        sizes[each["title"]] = sizes.get(each["title"], 0.0) + each[_SENT[name]]
    return tuple(
        Term(names.get(title) or spoken(title), "communication", size, sent.get(title))
        for title, size in sizes.items()
        if size
    )


def spoken(title: str) -> str:
    """A transfer as one speaks of it: `All-gather, backward` is the all-gather in backward."""
    operation, _, what = title.partition(", ")
    named = f"the {operation[:1].lower()}{operation[1:]}"
    if not what:
        return named
    return f"{named} in {what}" if what in _PHASES else f"{named} of {what}"


def find_gap(predicted: float, measured: float, terms: Sequence[Term], tree: Node | None) -> Gap:
    """What a prediction that is off lacks. `tree`: what the key is built from, for slips that are no missing term."""
    if predicted < measured and len(terms) > 1:
        nodes = [Node(term.name, term.value) for term in terms]
        by_node = {id(node): term for node, term in zip(nodes, terms, strict=True)}
        whole = Node("", sum(term.value for term in terms), terms=tuple((1, node) for node in nodes))
        lacking = left_out(whole, predicted, NAMED_WITHIN)
        if lacking:
            missing = tuple(by_node[id(node)] for node in lacking)
            return Gap("You left out " + _listed([term.name for term in missing]), missing)
    says = explained(tree, predicted, _TOLERANCE) if tree else None
    return Gap(says[0].upper() + says[1:]) if says else Gap()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def tree_of(name: str, spec: RunSpec, theory: Mapping[str, object]) -> Node | None:
    """The formula a quantity of a training run follows, as the search takes it."""
    parallel = spec.parallel
    if name != "model_state_bytes" or spec.options is not None:
        return None
    if any(getattr(parallel, axis) > 1 for axis in _WHOLE) or parallel.shard not in (None, parallel.data):
        return None
    key = "zero_state(parameters=parameters, ranks=ranks, stage=stage, layout=layout)"
    values = {
        "parameters": theory["parameters"],
        "ranks": parallel.data,
        "stage": parallel.zero,
        "layout": theory["state_layout"],
    }
    return structure_of(key, {}, values)
