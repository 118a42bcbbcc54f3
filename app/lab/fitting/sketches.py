"""A law before anything was measured: what it says over the knob that its runs turn, by the registered formulas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from app.content.diagrams.drawing import Drawing, draw
from app.content.diagrams.schema import Curve

_SHAPE = "micro_batch=1, hidden=128, heads=4"
_SMALLEST = "transformer_parameters(layers=2, hidden=128, vocab=256)"
_LAWS: Mapping[str, Mapping[str, Any]] = {
    "link": {
        "title": "What the law says",
        "finding": "Small messages all take the start α, large ones take their bytes: the bend lies where both are "
        "alike. Here with 200 µs and 1 GB/s, as an example.",
        "x": {"name": "size", "label": "the knob: size of a message, kB", "from": 1, "to": 10_000, "log": True},
        "series": [
            {
                "label": "α + S/B",
                "y": "1e6 * transfer(size_bytes=1e3 * size, bytes_per_second=1e9, latency_seconds=2e-4)",
            },
            {"label": "S/B", "y": "1e6 * transfer(size_bytes=1e3 * size, bytes_per_second=1e9)"},
        ],
        "y_label": "time, µs",
        "y_log": True,
    },
    "activations": {
        "title": "What the law says",
        "finding": "Fused attention keeps what grows with the sequence, written out it keeps its square besides. "
        "Here of one layer of width 128, with the paper's 34 and 5.",
        "x": {"name": "sequence", "label": "the knob: sequence", "from": 64, "to": 512},
        "series": [
            {
                "label": f"attention {called}",
                "y": f"activation_layer(sequence=sequence, {_SHAPE}, flash={flash!r}) / 1e6",
            }
            for called, flash in (("written out", "no"), ("fused", "yes"))
        ],
        "y_label": "kept, MB",
    },
    "recomputation": {
        "title": "What the law says",
        "finding": "Of every step a third more, however large it is. Here of the lab's smallest model.",
        "x": {"name": "batch", "label": "the knob: micro-batch, sequences of 128", "from": 1, "to": 16},
        "series": [
            {"label": called, "y": f"{formula}(parameters={_SMALLEST}, tokens=128 * batch) / 1e9"}
            for called, formula in (("with it", "full_recompute_flops"), ("without", "training_flops"))
        ],
        "y_label": "GFLOP a step",
    },
    "scaling": {
        "title": "What the law says",
        "finding": "Between logarithms a straight line, and a flat one: ten times the parameters take "
        "{{ (1 - kaplan_loss_parameters(parameters=1e7) / kaplan_loss_parameters(parameters=1e6)) | pct(2) }} off the "
        "loss. Here Kaplan's.",
        "x": {"name": "size", "label": "the knob: parameters, M", "from": 1, "to": 1_000, "log": True},
        "series": [{"label": "loss", "y": "kaplan_loss_parameters(parameters=1e6 * size)"}],
        "y_label": "loss, nats",
        "y_log": True,
    },
}


@cache
def sketch(law: str) -> Drawing:
    """The picture of a law that nothing has been fitted to."""
    return draw(Curve.model_validate({"kind": "curve", **_LAWS[law]}))
