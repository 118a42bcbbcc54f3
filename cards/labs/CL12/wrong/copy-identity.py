# mistake: missing-backward-reduce, also more-calls
import torch
import torch.distributed as dist
from torch.nn.functional import linear


class CopyToRanks(torch.autograd.Function):
    """x as it is; its gradient is the sum of what the ranks' columns give."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class SumOverRanks(torch.autograd.Function):
    """The sum of the ranks' parts; each part's gradient is that of the sum."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def own_part(tensor, dim):
    """This rank's part, with memory of its own."""
    part = tensor.chunk(dist.get_world_size(), dim)[dist.get_rank()]
    return torch.nn.Parameter(part.clone())


class ColumnLinear(torch.nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight = own_part(weight, 0)
        self.bias = None if bias is None else own_part(bias, 0)

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


class RowLinear(torch.nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight = own_part(weight, 1)
        self.bias = None if bias is None else torch.nn.Parameter(bias)

    def forward(self, x):
        y = SumOverRanks.apply(linear(x, self.weight))
        return y if self.bias is None else y + self.bias
