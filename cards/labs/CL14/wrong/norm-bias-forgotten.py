# mistake: norm-gradients-apart, also more-bytes
import torch
import torch.distributed as dist
from torch.nn.functional import gelu, linear


def gathered(x):
    """The ranks' tokens one after another."""
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts)


def scattered(x):
    """This rank's tokens of the sum over ranks."""
    parts = [part.contiguous() for part in x.chunk(dist.get_world_size())]
    own = torch.empty_like(parts[0])
    dist.reduce_scatter(own, parts)
    return own


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return gathered(x)

    @staticmethod
    def backward(ctx, gradient):
        return scattered(gradient)


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scattered(x)

    @staticmethod
    def backward(ctx, gradient):
        return gathered(gradient)


class SequenceParallel(torch.nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        whole = Gather.apply(self.block.norm(x))
        part = linear(gelu(self.block.column(whole)), self.block.row.weight)
        return x + Scatter.apply(part) + self.block.row.bias

    def finish(self):
        """What every rank holds whole has seen this rank's tokens alone."""
        for parameter in (self.block.norm.weight, self.block.row.bias):
            dist.all_reduce(parameter.grad)


def sequence_parallel(block):
    return SequenceParallel(block)
