"""Theory's line for the time of a step: its arithmetic at the peak that the ranks themselves reached. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.lab.models import Run
from app.theory.compute import hardware_flops_utilisation
from labs.spec import RunSpec

_SOME = 0.1  # an utilisation to compare by


def at_peak(runs: Sequence[Run]) -> Mapping[int, float]:
    """Seconds of each run's step if all were matrix products at the peak: FLOPs, those of recomputation among them,
    over the highest of the peaks that runs on as many ranks measured after their last step. Others' work on the machine
    makes a peak lower, never higher."""
    flops: dict[int, float] = {}
    peaks: dict[int | None, float] = {}
    ranks = {run.id: (run.result or {}).get("world_size") for run in runs}
    for run in runs:
        result = run.result or {}
        peak, mfu, seconds = (result.get(name) for name in ("peak_flops_per_second", "mfu", "step_seconds"))
        if peak and mfu and seconds:
            flops[run.id] = _with_recomputation(RunSpec.model_validate(run.spec)) * mfu * peak * seconds
            peaks[ranks[run.id]] = max(peak, peaks.get(ranks[run.id], 0.0))
    return {run_id: each / peaks[ranks[run_id]] for run_id, each in flops.items()}


def _with_recomputation(spec: RunSpec) -> float:
    """FLOPs done, over those of the model."""
    return hardware_flops_utilisation(_SOME, spec.training.recompute) / _SOME
