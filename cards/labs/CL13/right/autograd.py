# autograd, with a sum over ranks whose backward is the identity
import torch
import torch.distributed as dist


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def vocab_parallel_cross_entropy(logits, target):
    top = logits.detach().max(dim=-1).values
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    logits = logits - top.unsqueeze(-1)
    first = logits.shape[-1] * dist.get_rank()
    words = torch.arange(first, first + logits.shape[-1])
    picked = (logits * (words == target.unsqueeze(-1))).sum(-1)
    both = SumOverRanks.apply(torch.stack([logits.exp().sum(-1), picked]))
    return both[0].log() - both[1]
