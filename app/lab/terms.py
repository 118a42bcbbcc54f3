"""What a quantity of a run is made of, term by term, for `app.reveal.gap` to find what a prediction left out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.content.structures import structure_of
from app.grading.omissions import Node
from app.reveal.gap import Term
from app.theory.lab_runs import parts_of_quantity
from labs.spec import RunSpec

_STATE = {"parameters": "the weights", "gradients": "the gradients", "optimizer": "the optimizer"}
_SENT = {"payload_bytes_per_step": "payload_bytes", "wire_bytes_per_step": "wire_bytes"}
_PHASES = ("forward", "backward")
_WHOLE = ("tensor", "context", "pipeline", "expert")  # axes that split the model itself: other formulas hold there


def terms_of(
    name: str,
    spec: RunSpec,
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
    elif spec.options is not None:
        parts = parts_of_quantity(spec.options, spec.parallel.world_size, name)
        found = tuple(Term(part, "communication", size, None) for part, size in parts.items())
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
