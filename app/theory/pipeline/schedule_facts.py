"""Which closed forms each schedule follows. What it takes is in `labs.spec.schedules`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.theory.pipeline.held_activations import in_flight_micro_batches
from labs.spec import Schedule


@dataclass(frozen=True)
class ScheduleFacts:
    """`keeps` is how many micro-batches a rank has in flight, `idles` which closed form its fill and drain follow."""

    keeps: Literal["all", "stages", "as F25 says"]
    idles: Literal["1f1b", "breadth-first", "zb-h1", "v"]


# Narayanan et al. 2021; Lamy-Poirier 2022; Qi et al. 2023 (ZB-H1, ZB-V); DeepSeek-AI 2024 for the pairs of DualPipe-V.
FACTS: Mapping[Schedule, ScheduleFacts] = {
    "gpipe": ScheduleFacts("all", "1f1b"),
    "1f1b": ScheduleFacts("as F25 says", "1f1b"),
    "interleaved": ScheduleFacts("as F25 says", "1f1b"),
    "looped-bfs": ScheduleFacts("all", "breadth-first"),
    "zero-bubble": ScheduleFacts("stages", "zb-h1"),
    "zbv": ScheduleFacts("stages", "v"),
    "dualpipev": ScheduleFacts("stages", "v"),
}


def in_flight(schedule: Schedule, stage: int, pipeline: int, micro_batches: int, virtual_stages: int = 1) -> float:
    """Micro-batches alive on stage `stage`, from 0, in units of that stage's whole layers: fractions are single chunks.

    Schedules that put off weight gradients keep what these need: every rank holds as many as the first.
    Source: Narayanan et al. 2021 (Megatron-LM), section 2.2; Qi et al. 2023 (zero bubble), section 2.
    """
    if pipeline == 1:
        return 1.0
    keeps = FACTS[schedule].keeps
    if keeps == "all":
        return float(micro_batches)
    if keeps == "stages":
        a_pair = 0.5 if schedule == "dualpipev" and micro_batches > pipeline else 0.0
        return float(min(micro_batches, pipeline)) + a_pair
    return in_flight_micro_batches(schedule, pipeline, micro_batches, stage, virtual_stages)
