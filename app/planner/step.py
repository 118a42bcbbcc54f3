"""Where the seconds of a step go, one lane for each thing, each beginning where the one before it ends. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.charts import Scale, round_scale
from app.theory.planner import Estimate
from app.units import factor_of

# By process group: what its communication is called on its lane, and as what a step loses to it.
_AXES: Mapping[str, tuple[str, str]] = {
    "tensor": ("Tensor parallel", "tensor-parallel communication"),
    "context": ("Context parallel", "context-parallel communication"),
    "expert": ("Expert parallel", "expert-parallel communication"),
    "pipeline": ("Pipeline sends", "sending between stages"),
    "ends": ("Tied embeddings, first and last stage", "the tied table's all-reduce"),
    "data": ("Data parallel", "data-parallel communication"),
    "shard": ("Data parallel", "data-parallel communication"),
    "replicate": ("Data parallel", "data-parallel communication"),
}
_OTHER = ("Data parallel, experts", "data-parallel communication of experts")


@dataclass(frozen=True)
class Lane:
    """One part of a step: its seconds, where it starts, and its share. `loss` names it where it is time lost."""

    label: str
    kind: str
    seconds: float
    start_seconds: float
    share: float
    loss: str = ""

    @property
    def is_loss(self) -> bool:
        return bool(self.loss)


def lanes_of(estimate: Estimate) -> tuple[Lane, ...]:
    """The lanes of an Estimate; none where nothing was timed. Of communication only what no compute hides."""
    time = estimate.time
    if not time.step_seconds:
        return ()
    exposed: dict[tuple[str, str], float] = {}
    for row in estimate.communication:
        axis = _AXES.get(row.group, _OTHER)
        exposed[axis] = exposed.get(axis, 0.0) + (row.exposed_seconds or 0.0)
    parts = [
        ("Compute", "forward", time.compute_seconds, ""),
        ("Recompute", "weight", time.recompute_seconds, "recomputation"),
        ("Bubble", "idle", time.bubble_seconds, "pipeline bubble"),
        *((label, "communication", seconds, loss) for (label, loss), seconds in exposed.items()),
        ("Optimizer", "optimizer", time.optimizer_seconds, ""),
    ]
    lanes, start = [], 0.0
    for label, kind, seconds, loss in parts:
        if seconds is not None and seconds > 0:
            lanes.append(Lane(label, kind, seconds, start, seconds / time.step_seconds, loss))
            start += seconds
    return tuple(lanes)


def step_scale(lanes: Sequence[Lane]) -> Scale:
    """The axis of the lanes, in the unit that suits the whole step; `percent` takes seconds."""
    total = sum(lane.seconds for lane in lanes)
    unit = "s" if total >= 1 else "ms"  # an axis in minutes would not have round ticks
    size = factor_of(unit)
    scale = round_scale(total / size, unit)
    return Scale(scale.maximum * size, scale.ticks)
