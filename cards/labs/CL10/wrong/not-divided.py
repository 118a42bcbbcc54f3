# mistake: sum-for-mean, also other-parameters
import torch
import torch.distributed as dist
from torch import nn


class Linear(torch.autograd.Function):
    """Gathers to compute, and keeps nothing that was gathered."""

    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.save_for_backward(x, shard)
        ctx.layer = layer
        weight, bias = layer.gathered(shard.to(layer.dtype))
        return x @ weight.T + bias

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        weight, _ = ctx.layer.gathered(shard.to(ctx.layer.dtype))
        flat = torch.cat([(gradient.T @ x).flatten(), gradient.sum(0)])
        return gradient @ weight, ctx.layer.scattered(flat).to(shard.dtype), None


class FSDPLinear:
    """Weight and bias as one flat tensor, filled up to a multiple of the ranks, of which a rank keeps its slice."""

    def __init__(self, linear, dtype):
        self.n, self.dtype, self.shape = dist.get_world_size(), dtype, linear.weight.shape
        flat = torch.cat([linear.weight.data.flatten(), linear.bias.data])
        self.shard = nn.Parameter(self.padded(flat).chunk(self.n)[dist.get_rank()].clone())

    def padded(self, flat):
        return torch.cat([flat, flat.new_zeros(-len(flat) % self.n)])

    def gathered(self, own):
        flat = own.new_empty(self.n * len(own))
        dist.all_gather_single(flat, own)
        weights = self.shape.numel()
        return flat[:weights].view(self.shape), flat[weights : weights + self.shape[0]]

    def scattered(self, flat):
        own = flat.new_empty(len(self.shard))
        dist.reduce_scatter_single(own, self.padded(flat))
        return own

    def parameters(self):
        return [self.shard]

    def __call__(self, x):
        return Linear.apply(x, self.shard, self)

    def full(self):
        return self.gathered(self.shard.data)
