"""How long the steps of a training will take here, by those of earlier trainings that are most like it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Any

from app.lab.models import Run
from app.theory.compute import training_flops
from app.units import seconds_text
from labs.spec import RunSpec

LOOKED_AT = 20  # finished runs, whose pace is this machine's
_AS_NEAR = 1.25  # times as far as the nearest of them: nearly as much like it


@dataclass(frozen=True)
class Pace:
    """Seconds of a step: `least` at the FLOPs a second that those most like it reached, `most` where it is smaller than
    theirs and takes as long, for what a step costs besides its arithmetic does not shrink with it."""

    least: float
    most: float
    flops_per_second: float


@dataclass(frozen=True)
class _Timed:
    apart: float
    rate: float
    seconds: float


def pace_of(spec: RunSpec, theory: Mapping[str, Any], finished: Sequence[Run]) -> Pace | None:
    """By the trainings among `finished` that are most like it: in FLOPs of a step, in ranks and in what a rank sends.
    None for what is no training, and where none has been timed."""
    if spec.options is not None:
        return None
    flops = training_flops(theory["parameters"], spec.tokens_per_step)
    timed = [each for run in finished if (each := _timed(run, spec, theory, flops)) is not None]
    if not timed:
        return None
    nearest = min(each.apart for each in timed) + log(_AS_NEAR)
    alike = [each for each in timed if each.apart <= nearest]
    rate = median(each.rate for each in alike)
    least, as_long = flops / rate, median(each.seconds for each in alike)
    return Pace(least, max(least, as_long), rate)


def _timed(run: Run, spec: RunSpec, theory: Mapping[str, Any], flops: float) -> _Timed | None:
    result, parameters = run.result or {}, run.theory.get("parameters")
    if not parameters or not result.get("tokens_per_second") or not result.get("step_seconds"):
        return None
    rate = training_flops(parameters, result["tokens_per_second"])
    ranks = result.get("world_size") or spec.parallel.world_size
    sent, wanted = (1 + (each.get("wire_bytes_per_step") or 0) for each in (run.theory, theory))
    ratios = (rate * result["step_seconds"] / flops, ranks / spec.parallel.world_size, sent / wanted)
    return _Timed(sum(abs(log(each)) for each in ratios), rate, result["step_seconds"])


def about(least: float, most: float) -> str:
    """A time in words, to two digits, for no pace is known better: a range where its ends differ."""
    low, high = (seconds_text(float(f"{each:.2g}")) for each in (least, most))
    return low if most < _AS_NEAR * least else f"{low} to {high}"
