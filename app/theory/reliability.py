"""Failures of large jobs, checkpoints against them, and what is left as useful time (F47–F50).

Failures are taken as independent and equally likely at any time (exponential), and any one stops the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, expm1, sqrt

from app.units import factor_of
from labs.spec import SpecError, Violation

HOUR_SECONDS = factor_of("h")


@dataclass(frozen=True)
class FailureRate:
    """GPU time per failure that somebody measured."""

    name: str
    title: str
    gpu_seconds_per_failure: float
    source: str

    @property
    def said(self) -> str:
        """The rate in words: "one in 8,090 GPU-hours"."""
        return f"one in {self.gpu_seconds_per_failure / HOUR_SECONDS:,.0f} GPU-hours"


_KOKOLIS = "Kokolis et al. 2024 (Revisiting Reliability in Large-Scale Machine Learning Research Clusters)"
FAILURE_RATES: Mapping[str, FailureRate] = {
    rate.name: rate
    for rate in (
        # 419 unexpected interruptions in 54 days of 16,384 H100
        FailureRate(
            "llama-3",
            "Llama 3 405B, 16,384 H100",
            16384 * 54 * 24 * HOUR_SECONDS / 419,
            "Llama team 2024 (The Llama 3 Herd of Models), section 3.3.4",
        ),
        # 6.50 failures per 1,000 node-days, nodes of 8 A100
        FailureRate(
            "rsc-1",
            "Research cluster RSC-1, 16,000 A100, all jobs",
            8 * 24 * HOUR_SECONDS * 1000 / 6.50,
            f"{_KOKOLIS}, section III",
        ),
        # mean time to failure 7.9 hours
        FailureRate(
            "rsc-1024", "Research clusters, jobs of 1,024 A100", 1024 * 7.9 * HOUR_SECONDS, f"{_KOKOLIS}, section III"
        ),
    )
}


def mtbf_seconds(gpus: int, gpu_seconds_per_failure: float) -> float:
    """F47: mean time between failures of a job on `gpus`, Θ/G."""
    return gpu_seconds_per_failure / gpus


def failure_count(seconds: float, mtbf_seconds: float) -> float:
    """F47: failures expected in `seconds`, t/M."""
    return seconds / mtbf_seconds


def survival_probability(seconds: float, mtbf_seconds: float) -> float:
    """F47: probability that a job runs for `seconds` without a failure, e^(−t/M)."""
    return exp(-seconds / mtbf_seconds)


def checkpoint_interval_seconds(checkpoint_seconds: float, mtbf_seconds: float, rule: str = "young") -> float:
    """F48: the time of work between checkpoints that loses least, for δ = `checkpoint_seconds` and M = `mtbf_seconds`.

    `young`: √(2δM). `daly`: √(2δM) − δ. `daly-higher-order`: √(2δM)(1 + √(δ/2M)/3 + δ/18M) − δ, and M from δ = 2M on.
    Raises SpecError where `daly` leaves nothing (δ ≥ 2M).
    Source: Young 1974; Daly 2006, equation 37 for the higher order.
    """
    young = sqrt(2 * checkpoint_seconds * mtbf_seconds)
    if rule == "young":
        return young
    if rule == "daly-higher-order":
        if checkpoint_seconds >= 2 * mtbf_seconds:
            return mtbf_seconds
        ratio = checkpoint_seconds / (2 * mtbf_seconds)
        return young * (1 + sqrt(ratio) / 3 + ratio / 9) - checkpoint_seconds
    if checkpoint_seconds >= 2 * mtbf_seconds:
        message = "A checkpoint takes longer than twice the time between failures."
        accepted = f"less than {2 * mtbf_seconds:g}"
        raise SpecError([Violation("checkpoint_seconds", checkpoint_seconds, message, accepted)])
    return young - checkpoint_seconds


def checkpoint_overhead(checkpoint_seconds: float, mtbf_seconds: float) -> float:
    """F48: share lost at Young's interval to checkpoints and repeated work, √(2δ/M), restarts left out.

    Raises SpecError where it is no longer a share: the first-order formula needs δ well below M.
    """
    lost = sqrt(2 * checkpoint_seconds / mtbf_seconds)
    if lost >= 1:
        message = "The job would make no progress."
        accepted = f"less than {mtbf_seconds / 2:g}"
        raise SpecError([Violation("checkpoint_seconds", checkpoint_seconds, message, accepted)])
    return lost


def lost_fraction(
    interval_seconds: float, checkpoint_seconds: float, mtbf_seconds: float, restart_seconds: float
) -> float:
    """F49: share of time lost to checkpoints, repeated work and restarts, δ/τ + (τ/2 + R)/M.

    Raises SpecError where it reaches 1: the first-order formula needs τ + R well below M; `goodput` has no such limit.
    """
    if checkpoint_seconds >= interval_seconds:
        message = "Writing a checkpoint takes as long as the work it saves."
        accepted = f"more than {checkpoint_seconds:g}"
        raise SpecError([Violation("interval_seconds", interval_seconds, message, accepted)])
    lost = checkpoint_seconds / interval_seconds + (interval_seconds / 2 + restart_seconds) / mtbf_seconds
    return _share(lost, mtbf_seconds)


def lost_fraction_at_best(checkpoint_seconds: float, mtbf_seconds: float, restart_seconds: float) -> float:
    """F49: share of time lost at Young's interval, √(2δ/M) + R/M. Raises SpecError where it reaches 1."""
    return _share(sqrt(2 * checkpoint_seconds / mtbf_seconds) + restart_seconds / mtbf_seconds, mtbf_seconds)


def _share(lost: float, mtbf_seconds: float) -> float:
    if lost >= 1:
        message = "Failures follow so quickly that the first-order formula leaves no useful time."
        raise SpecError([Violation("mtbf_seconds", mtbf_seconds, message, "a longer time between failures")])
    return lost


def goodput(interval_seconds: float, checkpoint_seconds: float, mtbf_seconds: float, restart_seconds: float) -> float:
    """F49: useful share of time, τ/(M e^(R/M) (e^((τ+δ)/M) − 1)), for any ratio of the times.

    Failures may strike while a checkpoint is written and during a restart. Source: Daly 2006, equation 20.
    """
    segment = (interval_seconds + checkpoint_seconds) / mtbf_seconds
    survives = exp(-(restart_seconds / mtbf_seconds + segment))  # written with e^−x: e^x may exceed any float
    return interval_seconds / mtbf_seconds * survives / -expm1(-segment)


# F50: bytes per parameter of what a checkpoint holds for Adam.
CHECKPOINTS: Mapping[str, float] = {
    "weights-and-optimizer": 14.0,  # bf16 weights, fp32 master weights and both moments
    "optimizer": 12.0,  # without the bf16 copy, which is rounded from the master weights
    "weights": 2.0,  # for serving
}


def pair_lost_probability(nodes: int) -> float:
    """F67: chance that two nodes that fail together are partners, 1/(N−1), where partners hold each other's state.

    By hand: N/2 pairs of N(N−1)/2. Source: Wang et al. 2023 (GEMINI), its placement in groups of two.
    """
    return 1 / (nodes - 1)


def replica_downtime(mtbf_seconds: float, repair_seconds: float, replicas: int) -> float:
    """F67: share of throughput lost while failed replicas are away and the others go on, D/(M·r).

    The rate is the whole job's. Raises SpecError where repairs take longer than there is time between failures.
    """
    return _share(repair_seconds / (mtbf_seconds * replicas), mtbf_seconds)


def checkpoint_bytes(parameters: float, content: str = "weights-and-optimizer") -> float:
    """F50: bytes of a checkpoint, 14N; `content` is a key of `CHECKPOINTS`. Sharded or whole, the sum is the same."""
    return CHECKPOINTS[content] * parameters


def checkpoint_seconds(parameters: float, bytes_per_second: float, content: str = "weights-and-optimizer") -> float:
    """F50: time to write a checkpoint at the storage's aggregate bandwidth."""
    return checkpoint_bytes(parameters, content) / bytes_per_second
