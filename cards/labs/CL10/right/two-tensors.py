# weight by rows and bias, each gathered by itself
import torch
import torch.distributed as dist
from torch import nn


def cut(value):
    """Rows filled up to a multiple of n, and this rank's."""
    n, rank = dist.get_world_size(), dist.get_rank()
    per = -(-len(value) // n)
    whole = torch.zeros(per * n, *value.shape[1:], dtype=value.dtype)
    whole[: len(value)] = value
    return whole, per


def gather(shard, rows):
    parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, shard.contiguous())
    return torch.cat(parts)[:rows]


def scatter(value):
    whole, per = cut(value)
    out = torch.empty(per, *value.shape[1:], dtype=value.dtype)
    dist.reduce_scatter(out, list(whole.split(per)))
    return out / dist.get_world_size()


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, rows, dtype):
        ctx.save_for_backward(x, weight)
        ctx.rows, ctx.dtype = rows, dtype
        return torch.addmm(gather(bias.to(dtype), rows), x, gather(weight.to(dtype), rows).T)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        whole = gather(weight.to(ctx.dtype), ctx.rows)
        return g @ whole, scatter(g.T @ x).to(weight.dtype), scatter(g.sum(0)).to(weight.dtype), None, None


class FSDPLinear:
    def __init__(self, linear, dtype):
        self.rows, self.dtype, rank = linear.out_features, dtype, dist.get_rank()
        self.shards = []
        for value in (linear.weight.data, linear.bias.data):
            whole, per = cut(value)
            self.shards.append(nn.Parameter(whole[rank * per : (rank + 1) * per].clone()))

    def parameters(self):
        return self.shards

    def __call__(self, x):
        return Affine.apply(x, *self.shards, self.rows, self.dtype)

    def full(self):
        return tuple(gather(shard.data, self.rows) for shard in self.shards)
