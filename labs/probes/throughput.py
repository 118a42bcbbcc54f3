"""How much of the machine's arithmetic a run used: model FLOPs utilisation.

MFU is the FLOPs the model's mathematics needs, over what the devices could have done in the same time. Recomputation
and waiting lower it; neither counts as useful. (Chowdhery et al. 2022, PaLM, section 4.1 and appendix B.)

A product of matrices with N weights takes 2N FLOPs a token forward and twice that backward. Attention's own two
products take 4·T·H a token and layer forward for T positions, counted over the whole sequence although the causal mask
leaves half, as is the convention.

What a GPU can do is in its data sheet, and less than that is what it does; of a CPU nobody knows. So it is measured, by
multiplying matrices on all ranks at once: ranks on a CPU share its cores, GPUs of a node their power and cooling.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from labs.spec import Model

_SIDE = 512
_MEASURE_SECONDS = 0.15
_TRIES = 4
_GPU_SIDE, _WARM_UP, _PRODUCTS = 4096, 3, 20


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


def timed_peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """The same on a GPU, in the type that the run computes in. Products are queued: events on the GPU time them."""
    left, right = (torch.randn(_GPU_SIDE, _GPU_SIDE, device=device, dtype=dtype) for _ in range(2))
    for _ in range(_WARM_UP):
        left @ right
    dist.barrier()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(_PRODUCTS):
        left @ right
    end.record()
    end.synchronize()
    seconds = float(start.elapsed_time(end)) / 1e3
    return _PRODUCTS * 2.0 * _GPU_SIDE**3 / seconds


def peak_of_all_ranks(device: torch.device, dtype: torch.dtype = torch.float32, reached: float = 0.0) -> float:
    """The ranks' measured peaks added up, the best of several tries where the run's own steps `reached` more FLOP/s
    than the first: other work had part of the machine then. Collective."""
    on_gpu = device.type == "cuda"
    goal = torch.tensor([reached], dtype=torch.float64, device=device)
    dist.all_reduce(goal, dist.ReduceOp.MAX)  # ranks time their steps themselves, and must stop together
    best = 0.0
    for _ in range(_TRIES):
        each = timed_peak_flops_per_second(device, dtype) if on_gpu else measured_peak_flops_per_second(device)
        peak = torch.tensor([each], dtype=torch.float64, device=device)
        dist.all_reduce(peak)
        best = max(best, float(peak.item()))
        if best >= goal.item():
            break
    return best
