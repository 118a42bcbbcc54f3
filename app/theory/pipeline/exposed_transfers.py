"""What sends between stages add to a step, played out: closed forms leave them out."""

from __future__ import annotations

from functools import lru_cache

from app.theory.pipeline.catalogue import order
from app.theory.pipeline.simulation import ChunkSeconds, simulate_pipeline

SENT_BY = ("gpipe", "1f1b", "interleaved")
_TRANSFER = 2.0**-7  # of a stage's forward: short enough that no order of events changes, and exact in binary


@lru_cache(maxsize=256)
def exposed_transfers(schedule: str, stages: int, micro_batches: int, virtual_stages: int = 1) -> float:
    """F21: how many transfers' time sends between equal stages add to a step, by playing it with and without them.

    Sends occupy links and no rank; backward takes twice forward. What filling and draining show does not grow with the
    micro-batches; 1F1B's steady state has no slack, so there it does. Raises SpecError for a combination the
    schedule does not take.
    """
    plan = order(schedule, stages, micro_batches, virtual_stages)
    share = 1.0 / virtual_stages
    seconds = [ChunkSeconds(share, share, share)] * (stages * virtual_stages)
    with_them = simulate_pipeline(plan, seconds, _TRANSFER).step_seconds
    return (with_them - simulate_pipeline(plan, seconds).step_seconds) / _TRANSFER
