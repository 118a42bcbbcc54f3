"""Theory's line for the time of a step: its arithmetic at the peak that the ranks themselves reached. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from app.lab.least_squares import fit
from app.lab.models import Run
from app.theory.compute import hardware_flops_utilisation
from app.units import digits, value_text
from labs.spec import RunSpec, SpecError

_UNKNOWN = 0.5  # of a slope: with a standard error beyond that nothing can be said


def at_peak(runs: Sequence[Run]) -> Mapping[int, float]:
    """Seconds of each run's step if all were matrix products at the peak: FLOPs, those of recomputation among them,
    over the median of the peaks that runs on as many ranks measured after their last step."""
    flops: dict[int, float] = {}
    peaks: dict[int | None, list[float]] = {}
    for run in runs:
        result = run.result or {}
        peak, mfu, seconds = (result.get(name) for name in ("peak_flops_per_second", "mfu", "step_seconds"))
        if not (peak and mfu and seconds):
            continue
        try:
            used = hardware_flops_utilisation(mfu, RunSpec.model_validate(run.spec).training.recompute)
        except SpecError:  # its own peak was measured while something else was running
            continue
        flops[run.id] = used * peak * seconds
        peaks.setdefault(result.get("world_size"), []).append(peak)
    ranks = {run.id: (run.result or {}).get("world_size") for run in runs}
    return {run_id: each / median(peaks[ranks[run_id]]) for run_id, each in flops.items()}


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
    if abs(start) <= 2 * start_error:
        return f"{line}. Whether a part of it is there however small the step is, these points do not tell."
    return (
        f"{value_text(start, 'seconds')} and {line}. The first part is there however small the step is: calls, the "
        "optimizer's loop and whatever does not grow with the FLOPs."
        if start > 0
        else f"{line}. It grows faster than the FLOPs: the larger steps fit the caches less."
    )
