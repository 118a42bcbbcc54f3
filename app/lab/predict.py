"""From a RunSpec to theory, and from what a learner typed to a locked prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.core.errors import DomainError, Violation
from app.grading.quantities import Unreadable, read_quantity
from app.lab.quantities import dimension_of, quantities_of
from app.lab.records import Prediction, ProgramTheory, TrainingTheory
from app.theory.lab_runs import (
    activation_bytes,
    bytes_between_hosts,
    expected_of_program,
    fullest,
    link_seconds,
    rank_theory,
    world,
)
from app.units import EXAMPLES
from labs.spec import RunSpec

CONFIDENCES = (1.1, 1.5, 3.0)  # within which factor, as it is offered


def theory_record(spec: RunSpec) -> dict[str, Any]:
    """Theory for `spec` as the run row keeps it: what the page compared with stays what was computed then."""
    return theory_of(spec).to_json()


def theory_of(spec: RunSpec) -> TrainingTheory | ProgramTheory:
    """What theory expects of a run of `spec`."""
    if spec.options is not None:
        expected = expected_of_program(spec.options, spec.parallel.world_size)
        return ProgramTheory(expected.points, expected.quantities)
    ranks = [rank_theory(spec, place) for place in world(spec)]
    theory = fullest(ranks)
    return TrainingTheory(
        parameters=theory.parameters,
        state_layout=theory.state_layout,
        model_state_bytes=theory.state_total_bytes,
        model_state=theory.model_state_bytes,
        optimizer_bytes=theory.model_state_bytes["optimizer"],
        payload_bytes_per_step=max(each.payload_bytes_per_step for each in ranks),
        wire_bytes_per_step=max(each.wire_bytes_per_step for each in ranks),
        transfers=tuple(ranks[0].transfers),
        activation_bytes=activation_bytes(spec),
        bytes_between_hosts=bytes_between_hosts(spec, ranks) if spec.hosts > 1 else None,
        step_seconds=link_seconds(spec, ranks),
    )


def read_prediction(given: Mapping[str, Any] | None, spec: RunSpec) -> dict[str, Prediction] | None:
    """A prediction of `spec` as it was sent: {quantity: {value: "29.7 MB", within: 1.1}}.

    Raises DomainError with every mistake. Blank values are left out; a prediction without any is none.
    """
    if given is None:
        return None
    known = quantities_of(spec)
    violations: list[Violation] = []
    locked: dict[str, Prediction] = {}
    for name, entry in given.items():
        if name not in known:
            accepted = ", ".join(known) or "no quantity: this program has none"
            violations.append(Violation(f"prediction.{name}", name, "This cannot be predicted.", accepted))
            continue
        text, within, found = _read_entry(name, entry, known[name].dimension)
        violations += found
        if text and not found:
            quantity = read_quantity(text, known[name].dimension)
            locked[name] = Prediction(text, quantity.value, within)
    if violations:
        raise DomainError("The prediction cannot be read; nothing was started.", violations)
    return locked or None


def unreadable(given: Mapping[str, Any] | None) -> list[Violation]:
    """What is wrong with a prediction, whatever the run it is of may come to: for a run that is refused itself."""
    known = ((name, entry, dimension_of(name)) for name, entry in (given or {}).items())
    return [
        each
        for name, entry, dimension in known
        if dimension is not None
        for each in _read_entry(name, entry, dimension)[2]
    ]


def _read_entry(name: str, entry: object, dimension: str) -> tuple[str, float | None, list[Violation]]:
    field = f"prediction.{name}"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("value"), str | None):
        return "", None, [Violation(field, entry, "This is not a prediction.", '{"value": "14 GB", "within": 1.5}')]
    text = (entry.get("value") or "").strip()
    within = entry.get("within")
    found: list[Violation] = []
    if within is not None and within not in CONFIDENCES:
        offered = ", ".join(f"{each:g}" for each in CONFIDENCES)
        found.append(Violation(f"{field}.within", within, f"{within!r} is not offered.", f"{offered} or none"))
    if text:
        try:
            quantity = read_quantity(text, dimension)
            if quantity.value < 0:
                found.append(Violation(f"{field}.value", text, "This cannot be negative.", "0 or more"))
        except Unreadable as error:
            found.append(Violation(f"{field}.value", text, str(error), f"a quantity such as {EXAMPLES[dimension]}"))
    return text, within, found
