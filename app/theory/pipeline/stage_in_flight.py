"""How many micro-batches a stage keeps activations of at once (F25), by schedule."""

from __future__ import annotations

from app.theory.pipeline.closed_form import in_flight_micro_batches
from app.theory.pipeline.schedule_facts import FACTS, effective


def in_flight(schedule: str, stage: int, pipeline: int, micro_batches: int, virtual_stages: int = 1) -> float:
    """Micro-batches alive on stage `stage`, from 0, in units of that stage's whole layers: fractions are single chunks.

    Schedules that put off weight gradients keep what these need: every rank holds as many as the first.
    Source: Narayanan et al. 2021 (Megatron-LM), section 2.2; Qi et al. 2023 (zero bubble), section 2.
    """
    name = effective(schedule, virtual_stages)
    if pipeline == 1:
        return 1.0
    keeps = FACTS[name].keeps
    if keeps == "all":
        return float(micro_batches)
    if keeps == "stages":
        return float(min(micro_batches, pipeline)) + (0.5 if name == "dualpipev" and micro_batches > pipeline else 0.0)
    return in_flight_micro_batches(name, pipeline, micro_batches, stage, virtual_stages)
