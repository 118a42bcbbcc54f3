"""What a run keeps for backward at the fullest moment of a step, where that is known to the per cent."""

from __future__ import annotations

from app.theory.planner import parse_estimate_request
from app.theory.planner.engine.memory import stage_memories
from app.theory.planner.engine.resolve import plan_of
from labs.spec import RunSpec

_NOT_HELD_AGAINST_RUNS = ("context", "pipeline", "expert")


def activation_bytes(spec: RunSpec) -> float | None:
    """Activations of one rank at their largest, by the planner's profile of the lab's own layers.

    None where that is not held against runs: of pipelines, long contexts and experts, where only some layers are
    recomputed, and of unfused attention but in fp32 on whole heads.
    """
    parallel, training = spec.parallel, spec.training
    others = any(getattr(parallel, axis) > 1 for axis in _NOT_HELD_AGAINST_RUNS)
    if others or spec.model.experts > 1 or training.recompute_every > 1 or not _knows_attention(spec):
        return None
    request = parse_estimate_request(
        {
            "model": spec.model.model_dump(),
            "training": {
                "sequence": training.sequence,
                "micro_batch": training.micro_batch,
                "precision": training.precision,
                "state_layout": training.state_layout,
                "recompute": training.recompute,
                "attention": training.attention,
                "global_batch": spec.global_batch,
            },
            "parallel": {
                "data": parallel.data,
                "zero": parallel.zero,
                "tensor": parallel.tensor,
                "sequence_parallel": parallel.sequence_parallel,
            },
            "profile": "rankzero-labs",
        }
    )
    return max(memory.activations for memory in stage_memories(plan_of(request)))


def _knows_attention(spec: RunSpec) -> bool:
    """Fused always; written out in full, where autocast makes no second copy of its weights."""
    training = spec.training
    plain = training.precision == "fp32" and training.recompute != "selective" and spec.parallel.tensor == 1
    return training.attention == "flash" or plain
