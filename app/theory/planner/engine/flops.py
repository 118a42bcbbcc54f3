"""FLOPs of a token in training: what the model asks for (MFU), and what the hardware does (HFU).

Attention is counted over the whole sequence, causal or not, as in the published rows these are compared with
(Chowdhery et al. 2022, appendix B; Korthikanti et al. 2022, appendix A).
"""

from __future__ import annotations

from app.theory.planner.engine.placement import Stage
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.shapes import (
    ForwardFlops,
    forward_flops,
    head_flops,
    layer_flops,
    layer_kinds,
    linears,
    repeated,
)
from app.theory.planner.fields import MfuDefinition, Module
from app.theory.transformer import active_parameter_count

BACKWARD = 2.0  # a gradient for the input and one for the weight: two products for each of forward


def stage_flops(plan: Plan, stage: Stage) -> ForwardFlops:
    """FLOPs of one token's forward pass through the layers of `stage`, and the head where it has it."""
    kinds = [
        (count, layer_flops(plan.model, each.routed, plan.training.sequence)) for each, count in plan.layers_of(stage)
    ]
    return ForwardFlops(
        sum(count * each.matrices for count, each in kinds),
        sum(count * each.attention for count, each in kinds),
        head_flops(plan.model) if stage.last else 0.0,
    )


def model_flops(plan: Plan, definition: MfuDefinition = "attention") -> float:
    """FLOPs per token of forward and backward through the whole model: three times forward.

    `definition` is what MFU counts: `attention` over the whole sequence, as Megatron-LM, PaLM and torchtitan do;
    `causal-attention` the half a causal mask leaves; `6n` six for each parameter a token meets, without attention.
    """
    if definition == "6n":
        return (2.0 + 2.0 * BACKWARD) * active_parameter_count(plan.model, plan.training.sequence)
    forward = forward_flops(plan.model, plan.training.sequence)
    skipped = forward.attention / 2 if definition == "causal-attention" else 0.0
    return (1.0 + BACKWARD) * (forward.total - skipped)


def _repeated_flops(plan: Plan, modules: tuple[Module, ...]) -> float:
    """FLOPs per token of the products that are computed again, and of attention's own where that is."""
    model, found = plan.model, 0.0
    for routed, layers in layer_kinds(model):
        for each in linears(model, routed):
            copies = model.active_experts if each.routed else 1
            found += 2.0 * layers * each.into * each.out * copies * repeated(each, modules)
    core = forward_flops(model, plan.training.sequence).attention if "core_attn" in modules else 0.0
    return found + core


def hardware_flops(plan: Plan) -> float:
    """`model_flops` and what recomputation repeats: all layers, or what the profile's selective recomputation is.

    `recomputed_attention_booked` forwards of attention are booked for selective recomputation of attention: one is
    done, but Korthikanti et al. (section 5) book three, and their HFU is compared with.
    """
    forward = forward_flops(plan.model, plan.training.sequence)
    training, profile = plan.training, plan.profile
    if training.recompute == "full":
        return model_flops(plan) + forward.matrices + forward.attention
    if training.recompute == "selective" and training.recompute_modules is not None:
        return model_flops(plan) + _repeated_flops(plan, training.recompute_modules)
    if training.recompute == "selective" and profile.selective == "every-other-matmul":
        return model_flops(plan) + forward.matrices / 2 + (forward.attention if training.attention == "full" else 0.0)
    if training.recompute == "selective" and training.attention == "full":
        return model_flops(plan) + profile.recomputed_attention_booked * forward.attention
    return model_flops(plan)
