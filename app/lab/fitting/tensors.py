"""The two terms of activation memory taken apart, tensor by tensor: the paper's layer beside the lab's. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.theory.lab_runs import activation_bytes, layer_terms, papers_layer_terms
from app.units import digits
from labs.spec import RunSpec

_NOTHING = "–"
_UNITS = {False: "k, for each of s·b·h", True: "c, for each of a·s²·b"}


@dataclass(frozen=True)
class TensorRow:
    """What is kept, in bytes for each of s·b·h, or of a·s²·b: by the paper, and in the lab."""

    name: str
    published: str
    here: str
    is_sum: bool = False


def tensor_rows(spec: RunSpec) -> tuple[TensorRow, ...]:
    """Both terms, each before its parts: of the paper's layer, and of trainings of the shape of `spec` with either kind
    of attention."""
    fused, full = (_with_attention(spec, attention) for attention in ("flash", "full"))
    published, here = papers_layer_terms(), {**layer_terms(full), **layer_terms(fused)}
    rows = list[TensorRow]()
    for of_square, unit in _UNITS.items():
        beside = 0.0 if of_square else _beside_layers(fused)
        of_paper = sum(each for (_, square), each in published.items() if square is of_square)
        rows.append(TensorRow(unit, _text(of_paper), _text(counted(spec)[of_square]), is_sum=True))
        for name in dict.fromkeys(name for name, square in (*published, *here) if square is of_square):
            key = (name, of_square)
            rows.append(TensorRow(name, _text(published.get(key)), _text(here.get(key))))
        if beside:
            name = f"final norm, head and logits, once for {spec.model.layers} layers"
            rows.append(TensorRow(name, _NOTHING, _text(beside)))
    return tuple(rows)


def counted(spec: RunSpec) -> tuple[float, float]:
    """k and c of trainings of the shape of `spec`, by the count: the sums of the lab's column above."""
    fused, full = (_with_attention(spec, attention) for attention in ("flash", "full"))
    here = {**layer_terms(full), **layer_terms(fused)}
    k, c = (sum(each for (_, square), each in here.items() if square is of_square) for of_square in (False, True))
    return k + _beside_layers(fused), c


def _beside_layers(spec: RunSpec) -> float:
    """What is kept outside the layers, as if each layer had its share."""
    training, model = spec.training, spec.model
    every = (activation_bytes(spec) or 0.0) / (training.sequence * training.micro_batch * model.hidden * model.layers)
    return every - sum(layer_terms(spec).values())


def _with_attention(spec: RunSpec, attention: str) -> RunSpec:
    return spec.model_copy(update={"training": spec.training.model_copy(update={"attention": attention})})


def _text(value: float | None) -> str:
    return _NOTHING if value is None else digits(value, 4)
