# the logits changed in place, the gradient made from them
import torch
import torch.distributed as dist


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        size = logits.size(1)
        start = size * dist.get_rank()
        outside = (target < start) | (target >= start + size)
        target = (target - start).masked_fill(outside, 0)
        top = logits.max(1)[0]
        dist.all_reduce(top, dist.ReduceOp.MAX)
        x = logits.data.sub_(top.unsqueeze(1))
        chosen = x[torch.arange(len(target)), target].masked_fill(outside, 0.0)
        sums = torch.stack([chosen, torch.exp(x, out=x).sum(1)])
        dist.all_reduce(sums)
        x.div_(sums[1].unsqueeze(1))
        ctx.x, ctx.target, ctx.outside = x, target, outside
        return sums[1].log() - sums[0]

    @staticmethod
    def backward(ctx, gradient):
        ctx.x[torch.arange(len(ctx.target)), ctx.target] -= 1.0 - ctx.outside.double()
        return ctx.x.mul_(gradient.unsqueeze(1)), None


def vocab_parallel_cross_entropy(logits, target):
    return Loss.apply(logits, target)
