"""How many micro-batches' activations a stage of a pipeline holds, in closed form."""

from __future__ import annotations

from app.theory.pipeline.bubble import ZERO_BUBBLES
from labs.spec import SpecError, Violation, schedule_violations

CLOSED_FORM_SCHEDULES = ("gpipe", "1f1b", "interleaved")


def interleaved_activation_factor(stages: int, virtual_stages: int) -> float:
    """F23: the first stage's activations under interleaving over those under 1F1B, 1 + (p−1)/(pv) for v ≥ 2.

    Source: Korthikanti et al. 2022, section 4.2.3.
    """
    return 1.0 if virtual_stages == 1 else 1 + (stages - 1) / (stages * virtual_stages)


def zero_bubble_in_flight(stages: int, variant: str = "zb-h1") -> int:
    """F24: micro-batches whose activations the fullest stage holds: p under ZB-H1 and ZB-V, 2p−1 under ZB-H2.

    Source: Qi et al. 2023, sections 2 and 6.
    """
    record = ZERO_BUBBLES[variant]
    return record.memory_stages * stages + record.memory_rest


def in_flight_micro_batches(
    schedule: str, stages: int, micro_batches: int, stage: int = 0, virtual_stages: int = 1
) -> float:
    """F25: micro-batches whose activations `stage` (from 0) holds at its peak.

    GPipe: m. 1F1B: min(m, p−i). Interleaved: min(v·m, 2(p−i−1) + (v−1)p + 1) chunks, its
    warm-up and one more, each 1/v of a micro-batch.
    Raises SpecError for a stage or a number of chunks the schedule does not have.
    Source: Narayanan et al. 2021, section 2.2.
    """
    _check_stage(schedule, stages, stage, virtual_stages)
    if schedule == "gpipe":
        return float(micro_batches)
    if schedule == "1f1b":
        return float(min(micro_batches, stages - stage))
    warm_up = 2 * (stages - stage - 1) + (virtual_stages - 1) * stages
    return min(virtual_stages * micro_batches, warm_up + 1) / virtual_stages


def _check_stage(schedule: str, stages: int, stage: int, virtual_stages: int) -> None:
    if stage >= stages:
        raise SpecError([Violation("stage", stage, f"There are only {stages} stages.", f"0 to {stages - 1}")])
    wrong = schedule_violations(schedule, stages, None, virtual_stages)
    if wrong:
        raise SpecError(wrong)


def in_flight_layers(
    schedule: str, stages: int, micro_batches: int, layers: int, stage: int = 0, virtual_stages: int = 1
) -> float:
    """F25: activations `stage` holds at its peak, counted in layers of one micro-batch: L/p times its micro-batches.

    Under 1F1B the first stage holds L, as many as one GPU without a pipeline. Raises SpecError as F25 does, and where
    the layers are not divided evenly.
    """
    if layers % (stages * virtual_stages):
        chunks = stages * virtual_stages
        message = f"{layers} layers are not divided evenly into {chunks} chunks."
        raise SpecError([Violation("layers", layers, message, f"a multiple of {chunks}")])
    return in_flight_micro_batches(schedule, stages, micro_batches, stage, virtual_stages) * layers / stages
