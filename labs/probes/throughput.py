"""How much of the machine's arithmetic a run used: model FLOPs utilisation.

MFU is the FLOPs the model's mathematics needs, over what the devices could have done in the same time. Recomputation
and waiting lower it; neither counts as useful. (Chowdhery et al. 2022, PaLM, section 4.1 and appendix B.)

A product of matrices with N weights takes 2N FLOPs a token forward and twice that backward. Attention's own two
products take 4·T·H a token and layer forward for T positions, counted over the whole sequence although the causal mask
leaves half, as is the convention.

What a GPU can do is in its data sheet. Of a CPU nobody knows: so it is measured, by multiplying matrices on all ranks
at once, for they share its cores.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from labs.spec import Model

_SIDE = 512
_MEASURE_SECONDS = 0.15


def model_flops_per_token(model: Model, sequence: int) -> float:
    """FLOPs of one token's training step: forward once, backward twice that."""
    head = model.head_dim or model.hidden // model.heads
    attention = model.hidden * head * (2 * model.heads + 2 * model.kv_heads)
    scores = 2 * sequence * model.heads * head
    products = (3 if model.gated_mlp else 2) * model.hidden
    dense = products * model.ffn_hidden
    routed = products * (model.expert_ffn_hidden or model.ffn_hidden) * (model.active_experts + model.shared_experts)
    with_experts = model.layers - model.dense_layers if model.experts > 1 else 0
    router = model.hidden * model.experts
    layers = model.layers * (attention + scores) + (model.layers - with_experts) * dense
    return 6.0 * (layers + with_experts * (routed + router) + model.hidden * model.vocab)


def measured_peak_flops_per_second(device: torch.device) -> float:
    """What this rank can do in fp32 matrix products while all ranks do the same. Collective."""
    left, right = (torch.randn(_SIDE, _SIDE, device=device) for _ in range(2))
    left @ right  # the first call sets its threads up
    dist.barrier()
    products, began = 0, time.perf_counter()
    while time.perf_counter() - began < _MEASURE_SECONDS:
        left @ right
        products += 1
    return products * 2.0 * _SIDE**3 / (time.perf_counter() - began)


def peak_of_all_ranks(device: torch.device) -> float | None:
    """The ranks' measured peaks added up; none on a GPU, where queued work would be timed instead. Collective."""
    if device.type != "cpu":
        return None
    peak = torch.tensor([measured_peak_flops_per_second(device)], dtype=torch.float64)
    dist.all_reduce(peak)
    return float(peak.item())
