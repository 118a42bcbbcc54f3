# mistake: reduced-both-ways
import torch
import torch.distributed as dist
import torch.distributed.nn


def vocab_parallel_cross_entropy(logits, target):
    part = logits.shape[1]
    index = target - dist.get_rank() * part
    is_mine = (index >= 0) & (index < part)
    greatest = logits.detach().amax(1)
    dist.all_reduce(greatest, op=dist.ReduceOp.MAX)
    logits = logits - greatest[:, None]
    picked = logits.gather(1, index.where(is_mine, 0)[:, None]).squeeze(1) * is_mine
    picked = dist.nn.functional.all_reduce(picked)
    total = dist.nn.functional.all_reduce(logits.exp().sum(1))
    return total.log() - picked
