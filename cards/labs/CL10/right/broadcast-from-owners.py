# shards of unequal length: every rank broadcasts its own, gradients are reduced to their owners
import torch
import torch.distributed as dist
from torch import nn


def bounds(length):
    n = dist.get_world_size()
    return [length * r // n for r in range(n + 1)]


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.save_for_backward(x, shard)
        ctx.layer = layer
        weight, bias = layer.whole(shard.to(layer.dtype))
        return x.mm(weight.t()).add(bias)

    @staticmethod
    def backward(ctx, g):
        x, shard = ctx.saved_tensors
        weight, _ = ctx.layer.whole(shard.to(ctx.layer.dtype))
        flat = torch.cat([g.t().mm(x).reshape(-1), g.sum(0)]) / dist.get_world_size()
        for owner, (start, stop) in enumerate(zip(ctx.layer.bounds, ctx.layer.bounds[1:])):
            part = flat[start:stop].clone()
            dist.reduce(part, owner)
            if owner == dist.get_rank():
                mine = part
        return g.mm(weight), mine.to(shard.dtype), None


class FSDPLinear:
    def __init__(self, linear, dtype):
        self.dtype, self.shape = dtype, linear.weight.shape
        flat = torch.cat([linear.weight.data.reshape(-1), linear.bias.data])
        self.bounds = bounds(len(flat))
        rank = dist.get_rank()
        self.shard = nn.Parameter(flat[self.bounds[rank] : self.bounds[rank + 1]].clone())

    def whole(self, own):
        flat = own.new_empty(self.bounds[-1])
        for owner, (start, stop) in enumerate(zip(self.bounds, self.bounds[1:])):
            if owner == dist.get_rank():
                flat[start:stop] = own
            dist.broadcast(flat[start:stop], owner)
        return flat[: self.shape.numel()].view(self.shape), flat[self.shape.numel() :]

    def parameters(self):
        return [self.shard]

    def __call__(self, x):
        return Function.apply(x, self.shard, self)

    def full(self):
        return self.whole(self.shard.data)
