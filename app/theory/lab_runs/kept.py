"""What a run keeps for backward at the fullest moment of a step, where that is known to the per cent."""

from __future__ import annotations

from collections.abc import Mapping

from app.theory.planner import parse_estimate_request
from app.theory.planner.engine.kept import kept_tensors
from app.theory.planner.engine.memory import stage_memories
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.resolve import plan_of
from labs.spec import RunSpec

Terms = Mapping[tuple[str, bool], float]  # by tensor and whether it grows with the square: bytes a s·b·h, or a·s²·b
_PAPERS = {
    "model": {"layers": 1, "hidden": 1024, "heads": 16, "vocab": 51_200},  # of any shape: they cancel out
    "training": {
        "sequence": 1024,
        "micro_batch": 1,
        "attention": "full",
        "recompute": "none",
        "precision": "bf16-mixed",
    },
    "profile": "megatron",
}

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
    return max(memory.activations for memory in stage_memories(_plan(spec)))


def layer_terms(spec: RunSpec) -> Terms:
    """What one layer of it keeps where nothing is computed again, by tensor."""
    return _terms(_plan(spec))


def papers_layer_terms() -> Terms:
    """The same of the layer of Korthikanti et al. 2022, bf16 with dropout and its scores: sums of 34 and 5."""
    return _terms(plan_of(parse_estimate_request(_PAPERS)))


def _terms(plan: Plan) -> Terms:
    layer = plan.layer(routed=False)
    unit = {False: layer.model.hidden, True: layer.model.heads * layer.sequence}
    kept = kept_tensors(layer)
    return {(each.name, each.of_square): each.bytes_a_token / unit[each.of_square] for each in kept}


def _plan(spec: RunSpec) -> Plan:
    parallel, training = spec.parallel, spec.training
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
    return plan_of(request)


def _knows_attention(spec: RunSpec) -> bool:
    """Fused always; written out in full, where autocast makes no second copy of its weights."""
    training = spec.training
    plain = training.precision == "fp32" and training.recompute != "selective" and spec.parallel.tensor == 1
    return training.attention == "flash" or plain
