"""What a first guess left out, found among the terms of the formula: the omissions that practice looks for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.content.structures import structure_of
from app.first.numbers import GPU, LAYOUT, PARAMETERS, TOTAL_BYTES, gb
from app.grading.omissions import Node, left_out
from app.theory.state import training_state_bytes
from app.units import digits
from app.words import listed

RIGHT_WITHIN = 1.15  # a diamond dragged along three powers of ten is no finer
NAMED_WITHIN = 1.2
EXACT_WITHIN = 1.06

_WEIGHTS, _GRADIENTS, _MASTER, _MOMENTS = (
    "the weights",
    "the gradients",
    "the fp32 master copy",
    "the optimizer's moments",
)


@dataclass(frozen=True)
class Finding:
    """`title` is the finding; `says` why; `off` the distance in words."""

    title: str
    says: str
    off: str


def finding(guess_bytes: float) -> Finding:
    """What to say of a guess of the bytes that training keeps."""
    title, says = _named(guess_bytes)
    return Finding(title, says, _off(guess_bytes))


def _off(guess_bytes: float) -> str:
    factor = TOTAL_BYTES / guess_bytes
    if max(factor, 1 / factor) < EXACT_WITHIN:
        return "right"
    return f"{digits(factor, 2)} × too low" if factor > 1 else f"{digits(1 / factor, 2)} × too high"


def _named(guess_bytes: float) -> tuple[str, str]:
    each, counted = LAYOUT.total, digits(guess_bytes / PARAMETERS, 2)
    if 1 / RIGHT_WITHIN < guess_bytes / TOTAL_BYTES < RIGHT_WITHIN:
        return f"You counted all {each:g} bytes", (
            f"Weights {LAYOUT.parameters:g}, gradients {LAYOUT.gradients:g}, optimizer {LAYOUT.optimizer:g}. It still "
            f"does not fit: one H100 holds {gb(GPU.marketing_bytes)}."
        )
    if guess_bytes > TOTAL_BYTES:
        if guess_bytes < 2.5 * TOTAL_BYTES:
            says = "Perhaps fp32 gradients, or activations: those come on top and depend on the batch."
            return f"You counted {counted} bytes a parameter; {each:g} stay", says
        says = "Sixteen bytes stay for each parameter. Activations come on top and depend on the batch."
        return f"That is {digits(guess_bytes / TOTAL_BYTES, 2)} times the state", says
    weights_bytes = training_state_bytes(PARAMETERS, LAYOUT.name, "parameters")
    if guess_bytes < weights_bytes / NAMED_WITHIN:
        times = digits(LAYOUT.optimizer / LAYOUT.parameters)
        return "That is less than the weights alone", (
            f"The weights take {gb(weights_bytes)} in bf16. The optimizer takes {times} times as much again."
        )
    return _left_out(guess_bytes, counted)


def lacking(guess_bytes: float) -> frozenset[str]:
    """Which parts of the state a guess left out whole, as `numbers.PARTS` calls them; none where no name fits."""
    weights_bytes = training_state_bytes(PARAMETERS, LAYOUT.name, "parameters")
    if not weights_bytes / NAMED_WITHIN <= guess_bytes <= TOTAL_BYTES / RIGHT_WITHIN:
        return frozenset()
    ways = _ways_left_out(guess_bytes)
    names = {_short(term) for term in ways[0]} if len(ways) == 1 else set()
    if len(names & {_MASTER, _MOMENTS}) == 1:
        return frozenset()  # half of the optimizer's state is none of its parts
    parts = {_WEIGHTS: "parameters", _GRADIENTS: "gradients", _MOMENTS: "optimizer"}
    return frozenset(part for name, part in parts.items() if name in names)


def _ways_left_out(guess_bytes: float) -> list[tuple[Node, ...]]:
    tree = structure_of(f"training_state(parameters={PARAMETERS!r})", {}, {})
    assert tree is not None
    return left_out(tree, guess_bytes, NAMED_WITHIN)


def _left_out(guess_bytes: float, counted: str) -> tuple[str, str]:
    ways = _ways_left_out(guess_bytes)
    terms = ways[0] if ways else ()
    names = {_short(term) for term in terms}
    optimizer = (
        f"Adam keeps {LAYOUT.optimizer:g} bytes for each parameter: an fp32 copy of the weight, a mean and a variance, "
        "4 bytes each."
    )
    if not names:
        return f"You have {counted} of the {LAYOUT.total:g} bytes", optimizer
    if names == {_GRADIENTS, _MASTER, _MOMENTS}:
        return "You counted the weights alone", (
            f"Gradients take {LAYOUT.gradients:g} bytes more and Adam {LAYOUT.optimizer:g}: an fp32 copy of the "
            "weight, a mean and a variance."
        )
    if names == {_MASTER, _MOMENTS}:
        return "You counted weights and gradients, not the optimizer", optimizer
    missing = sum(term.value for term in terms)
    said = (", or " if len(names) > 1 else " or ").join(listed([_short(term) for term in way]) for way in ways)
    if names == {_MASTER}:
        return "Close: you left out the fp32 copy", (
            f"Adam updates an fp32 copy of the weights, 4 bytes beside its mean and variance: {gb(missing)} here."
        )
    return f"You left out {said}", f"That is {gb(missing)} of the {gb(TOTAL_BYTES)}. {optimizer}"


def _short(term: Node) -> str:
    return term.label.partition(",")[0]
