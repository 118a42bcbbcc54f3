"""Theory's line for the time of a step: its arithmetic at the peak that the ranks themselves reached. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.lab.least_squares import fit
from app.lab.models import Run
from app.theory.compute import hardware_flops_utilisation
from app.units import digits, value_text
from labs.spec import RunSpec

_SOME = 0.1  # an utilisation to compare by
_UNKNOWN = 0.5  # of a slope: with a standard error beyond that nothing can be said


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


def said_of_steps(pairs: Sequence[tuple[float, float]]) -> str:
    """What is left between steps and their arithmetic: a factor, and what is there however small the step is."""
    ratios = [measured / theory for theory, measured in pairs]
    between = f"{digits(min(ratios), 2)} to {digits(max(ratios), 2)} times its arithmetic at this machine's peak"
    found = fit([(1.0, theory) for theory, _ in pairs], [measured for _, measured in pairs], relative=True)
    if found is None or None in found.errors:
        return f"{between}. A line takes three points."
    start, factor = found.coefficients
    start_error, error = (each or 0.0 for each in found.errors)
    if error > _UNKNOWN * abs(factor):
        return f"{between}. These steps scatter too much for a line: take more steps, or a quiet machine."
    line = f"{digits(factor, 2)} ± {digits(error, 2)} times its arithmetic at this machine's peak"
    if factor < 1:
        return f"{line}. No step is faster than the peak: the machine had other work when that was measured."
    if abs(start) <= 2 * start_error:
        return f"{line}. Whether a part of it is there however small the step is, these points do not tell."
    return (
        f"{value_text(start, 'seconds')} and {line}. The first part is there however small the step is: calls, the "
        "optimizer's loop and whatever does not grow with the FLOPs."
        if start > 0
        else f"{line}. It grows faster than the FLOPs: the larger steps fit the caches less."
    )
