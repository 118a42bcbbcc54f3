"""The cards on what was predicted wrong of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.content.catalogue import Catalogue
from app.content.schemas import Experiment
from app.lab.terms import spoken
from app.reveal.meter import Meter
from labs.spec import RunSpec

_AXES = ("data", "tensor", "context", "pipeline", "expert")


@dataclass(frozen=True)
class Cures:
    """Ids of cards: on what numbers lack, where that has a name; else on how a quantity that was missed comes about."""

    named: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def cards(self) -> tuple[str, ...]:
        """All of them, those on what has a name first."""
        return tuple(dict.fromkeys((*self.named, *self.others)))


def find_cures(content: Catalogue, spec: RunSpec, item: Experiment | None, meters: Sequence[Meter]) -> Cures:
    """The cards on what was missed, first what was furthest off, as the title has it. A run of one's own takes those of
    the experiment that is most like it."""
    missed = sorted((meter for meter in meters if meter.missed), key=lambda meter: -(meter.row.off_by or 0.0))
    of_terms = _cures_of_terms(content)
    cures = _cures_of_quantities(content, spec, item, [meter.row.name for meter in missed])
    named, others = list[str](), list[str]()
    for meter in missed:
        lacking = [term.name for term in meter.gap.missing] if meter.gap else []
        found = [of_terms[name] for name in lacking if name in of_terms]
        of_quantity = [cures[meter.row.name]] if meter.row.name in cures else []
        if meter.gap and meter.gap.finding:
            named += found or of_quantity
        others += of_quantity
    return Cures(tuple(dict.fromkeys(named)), tuple(dict.fromkeys(each for each in others if each not in named)))


def _cures_of_terms(content: Catalogue) -> dict[str, str]:
    """The cards on single terms, by what those are called."""
    return {
        name: card
        for each in content.experiments.values()
        for title, card in each.cures.items()
        for name in (each.names.get(title), spoken(title))
        if name
    }


def _cures_of_quantities(
    content: Catalogue, spec: RunSpec, item: Experiment | None, names: Sequence[str]
) -> dict[str, str]:
    asking = [item] if item else sorted(list_alike(content, spec, names), key=lambda each: -_likeness(each.spec, spec))
    return {quantity.id: quantity.cure for each in reversed(asking) for quantity in each.quantities}


def list_alike(content: Catalogue, spec: RunSpec, names: Sequence[str]) -> Iterator[Experiment]:
    """The experiments of a run's program that ask for one of the quantities `names`."""
    for each in content.experiments.values():
        is_same = each.spec.get("program", "train") == spec.program
        if is_same and set(names) & {quantity.id for quantity in each.quantities}:
            yield each


def _likeness(asked: Mapping[str, Any], spec: RunSpec) -> int:
    """In how much of what its numbers go by an experiment is like a run: what a parameter holds, and how it is cut."""
    training, parallel = asked.get("training", {}), asked.get("parallel", {})
    layout = training.get("state_layout", type(spec.training)().state_layout)
    alike = [layout == spec.training.state_layout, bool(parallel.get("zero")) == bool(spec.parallel.zero)]
    alike += [(parallel.get(axis, 1) > 1) == (getattr(spec.parallel, axis) > 1) for axis in _AXES]
    return sum(alike)
